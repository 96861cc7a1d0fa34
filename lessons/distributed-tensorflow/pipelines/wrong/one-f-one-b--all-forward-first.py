# diagnosis: are enough
def one_f_one_b(stage, stages, microbatches):
    letters = string.ascii_uppercase[:microbatches]
    return letters + letters.lower()
