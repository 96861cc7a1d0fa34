# diagnosis: come more than once in an epoch
import numpy as np


def batch_of(step, count, size):
    """The numbers in the batch of a step; steps count from 0, through all epochs."""
    start = size * step % count
    return np.random.permutation(count)[start : start + size]


for step in (0, 1, 2, 3, 1):
    print(f"step {step}:", batch_of(step, count=8, size=4))
