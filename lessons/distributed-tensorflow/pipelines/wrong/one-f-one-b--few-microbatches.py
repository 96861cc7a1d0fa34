# diagnosis: has to go forward once and come back once
def one_f_one_b(stage, stages, microbatches):
    letters = string.ascii_uppercase[:microbatches]
    first = stages - stage
    order = letters[:first]
    for number in range(microbatches - first):
        order += letters[number].lower() + letters[first + number]
    return order + letters[microbatches - first :].lower()
