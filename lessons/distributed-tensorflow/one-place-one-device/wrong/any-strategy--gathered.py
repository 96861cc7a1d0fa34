# diagnosis: used for judging
import numpy as np


def train_on(name, inputs, targets, batch, rate):
    """The weights from NumPy, without a strategy."""
    inputs = np.hstack([inputs, np.ones((len(inputs), 1))])
    weights, steps = np.zeros(inputs.shape[1]), len(targets) // batch
    for x, y in zip(np.split(inputs, steps), np.split(targets, steps)):
        weights -= rate * 2 * x.T @ (x @ weights - y) / batch
    return [weights[:-1, None], weights[-1:]], steps
