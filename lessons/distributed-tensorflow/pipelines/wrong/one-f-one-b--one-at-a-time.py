# diagnosis: waits for a gradient while it could go forward
def one_f_one_b(stage, stages, microbatches):
    letters = string.ascii_uppercase[:microbatches]
    return "".join(letter + letter.lower() for letter in letters)
