# diagnosis: wait for each other forever
def one_f_one_b(stage, stages, microbatches):
    letters = string.ascii_uppercase[:microbatches]
    first = min(stage + 1, microbatches)
    order = letters[:first]
    for number, letter in enumerate(letters.lower()):
        order += letter + letters[first + number : first + number + 1]
    return order
