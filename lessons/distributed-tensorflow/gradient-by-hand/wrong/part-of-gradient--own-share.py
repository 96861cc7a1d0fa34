# diagnosis: divided by the worker's own number of examples
import numpy as np


def part_of_gradient(w, b, x, y, batch):
    errors = x @ w + b - y
    slopes = 2 * errors[:, np.newaxis] * x
    return slopes.mean(axis=0), 2 * errors.mean()
