# diagnosis: are read more than once
import numpy as np


def batches_of(lengths, epoch, start, worker, workers, size):
    """An array with a row of `size` numbers for each batch of this worker in this epoch, from batch `start` on."""
    first = np.cumsum([0, *lengths])  # file n holds the numbers from first[n] to first[n + 1] - 1
    order = np.random.default_rng().permutation(len(lengths))
    shares = [
        np.concatenate([np.arange(first[file], first[file + 1]) for file in order[other::workers]])
        for other in range(workers)
    ]
    steps = -(-max(len(share) for share in shares) // size)
    plan = np.full(steps * size, -1)
    plan[: len(shares[worker])] = shares[worker]
    return plan.reshape(steps, size)[start:]
