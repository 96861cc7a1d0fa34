# diagnosis: are enough
def one_f_one_b(stage, stages, microbatches):
    letters = string.ascii_uppercase[:microbatches]
    first = min(stages, microbatches)
    order = letters[:first]
    for number, letter in enumerate(letters.lower()):
        order += letter + letters[first + number : first + number + 1]
    return order
