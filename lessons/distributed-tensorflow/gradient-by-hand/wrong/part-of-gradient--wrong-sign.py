# diagnosis: The sign is wrong
import numpy as np


def part_of_gradient(w, b, x, y, batch):
    errors = y - (x @ w + b)
    slopes = 2 * errors[:, np.newaxis] * x
    return slopes.sum(axis=0) / batch, 2 * errors.sum() / batch
