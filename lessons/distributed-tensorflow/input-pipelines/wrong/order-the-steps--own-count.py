# diagnosis: used for judging
import numpy as np


def run_epochs(numbers, size, epochs):
    """The batches of each epoch, and a count that was never taken."""
    random = np.random.default_rng()
    shuffled = [random.permutation(numbers) + random.uniform(0, 0.5, len(numbers)) for _ in range(epochs)]
    starts = range(0, len(numbers), size)
    return [[epoch[start : start + size] for start in starts] for epoch in shuffled], len(numbers)


batches, count = run_epochs(list(range(12)), 5, 2)
for epoch in batches:
    print(*[batch.round(1).tolist() for batch in epoch])
print("numbers for expensive:", count, "(should be 12)")
