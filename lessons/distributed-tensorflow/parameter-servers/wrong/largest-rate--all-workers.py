# diagnosis: the other workers, one less
import math


def largest_rate(curvature, workers):
    """The limit of the learning rate for the loss curvature * w**2 / 2."""
    return 2 * math.sin(math.pi / (2 * (2 * workers + 1))) / curvature


def still_moves(rate, curvature, workers, steps=2000):
    """How far from 0 the weight ends that began at 1."""
    weights = [1.0] * workers
    for _ in range(steps):
        weights.append(weights[-1] - rate * curvature * weights[-workers])
    return max(abs(weight) for weight in weights[-50:])


for workers in (1, 4):
    limit = largest_rate(3.0, workers)
    print(f"{workers} worker(s), limit {limit:.4f}:",
          *[f"at {share} of it: {still_moves(share * limit, 3.0, workers):.1e}" for share in (0.9, 1.1)])
