# diagnosis: The factor 2 is missing, and so is the division
def part_of_gradient(w, b, x, y, batch):
    errors = x @ w + b - y
    return errors @ x, errors.sum()
