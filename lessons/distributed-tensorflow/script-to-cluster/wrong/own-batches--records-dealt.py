# diagnosis: read by more than one worker
import numpy as np


def batches_of(lengths, epoch, start, worker, workers, size):
    numbers = np.random.default_rng(epoch).permutation(sum(lengths))
    steps = -(-len(numbers[::workers]) // size)
    plan = np.full(steps * size, -1)
    own = numbers[worker::workers]
    plan[: len(own)] = own
    return plan.reshape(steps, size)[start:]
