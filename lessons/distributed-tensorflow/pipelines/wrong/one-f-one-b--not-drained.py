# diagnosis: has to go forward once and come back once
def one_f_one_b(stage, stages, microbatches):
    letters = string.ascii_uppercase[:microbatches]
    first = min(stages - stage, microbatches)
    order = letters[:first]
    for number, letter in enumerate(letters[first:]):
        order += letters[number].lower() + letter
    return order
