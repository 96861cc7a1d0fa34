# diagnosis: The factor 2 is missing
import numpy as np


def part_of_gradient(w, b, x, y, batch):
    errors = x @ w + b - y
    slopes = errors[:, np.newaxis] * x
    return slopes.sum(axis=0) / batch, errors.sum() / batch
