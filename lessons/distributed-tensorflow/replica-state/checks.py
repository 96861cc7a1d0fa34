"""Checks of "The state of a replica": moments over all replicas, and a dropout mask for each example."""

from __future__ import annotations

import numpy as np

from runners.checks import Work, check, close, fail, untouched

REPLICAS = 4
WIDTH = 64
"""Activations of an example: enough that no two masks are equal by chance."""


def moments(values: np.ndarray) -> list[np.ndarray]:
    """Mean and variance of each feature."""
    return [values.mean(axis=0), values.var(axis=0)]


def lost_digits(variances: list[np.ndarray], count: int) -> bool:
    """Whether they are differences of large squares: beyond 2**25, neighboring float32 numbers are 4 apart or more."""
    quarters = np.array(variances, "float64") * count / 4
    return bool(np.allclose(quarters, np.round(quarters), rtol=0, atol=0.01))


def compare_moments(work: Work, sizes: list[int], far: float = 0.0) -> None:
    """Compare the moments of hidden shares of these sizes, whose numbers lie around ``far`` and ``far + 4``."""
    untouched(work, "statistics")
    features = int(work.rng.integers(2, 5))
    shares = [
        far + work.rng.normal(number, 1.0 + number / 4, size=(size, features)) for number, size in enumerate(sizes)
    ]
    values = np.concatenate(shares).astype("float32")
    cuts = np.cumsum([0, *sizes]).astype("int32")
    exact = np.split(values.astype("float64"), cuts[1:-1])
    own = [moments(share) for share in exact if len(share)]
    weights = np.array([size for size in sizes if size]) / sum(sizes)
    mean, variance = moments(np.concatenate(exact))
    of_own_means, of_own_variances = (np.array(part) for part in zip(*own, strict=True))

    graph = work.graph("statistics", values, cuts, alone=True)
    if not isinstance(graph.result, list) or len(graph.result) != 2 * REPLICAS:
        fail("moments_of_all has to return a mean and a variance on each of the {count} replicas.", count=REPLICAS)
    means, variances = graph.result[:REPLICAS], graph.result[REPLICAS:]
    close(
        means,
        [mean] * REPLICAS,
        rtol=1e-5 if far else 1e-4,  # far from zero, the means of the shares are nearly equal
        mistakes={
            "Each replica returns the mean of its own share.": list(of_own_means),
            "This is the mean of the replicas' means: a small share counts as much as a large one.": [
                of_own_means.mean(axis=0)
            ]
            * REPLICAS,
        },
    )
    for got in variances:
        if not isinstance(got, np.ndarray) or got.shape != variance.shape or got.dtype.kind != "f":
            fail("The variance has to have a number for each feature.")
    if far and not np.allclose(variances, variance, rtol=1e-2) and lost_digits(variances, len(values)):
        fail("The mean is right, but the variance has lost its digits: subtract the mean before you square.")
    close(
        variances,
        [variance] * REPLICAS,
        rtol=1e-3,
        mistakes={
            "Each replica returns the variance of its own share.": list(of_own_variances),
            "The variance lacks how far the means of the shares lie apart.": [weights @ of_own_variances] * REPLICAS,
            "This is the mean of the replicas' variances.": [of_own_variances.mean(axis=0)] * REPLICAS,
            "This is the mean over the replicas, not over the examples: a small share counts as much as a large one.": [
                np.mean([((share - mean) ** 2).mean(axis=0) for share in exact if len(share)], axis=0)
            ]
            * REPLICAS,
        },
    )
    if not graph.collectives:
        fail("The replicas did not exchange anything: let `moments_of_all` ask for sums with an all-reduce.")
    if np.allclose(graph.alone, graph.result, rtol=1e-3):
        fail("The moments do not come from the exchange: it changes nothing.")


def hidden_sizes(work: Work) -> list[int]:
    """Sizes of shares that grow or shrink from replica to replica, as the numbers in them grow."""
    sizes = [int(size) for size in np.array([2, 5, 8, 12]) + work.rng.integers(0, 3)]
    return sizes[:: int(work.rng.choice([1, -1]))]


@check(
    "moments-of-all",
    "The moments of shares of different sizes",
    xp=15,
    hints=[
        "Which sums do you need for a mean? Each replica adds up its own, and `all_reduce` adds up the rest.",
        "Measure every example from the mean of all, not from that of its share.",
    ],
)
def different_shares(work: Work) -> None:
    compare_moments(work, hidden_sizes(work))


@check(
    "moments-of-all",
    "A replica without examples",
    xp=5,
    hints=["A sum over no examples is 0. A mean over no examples is 0 / 0."],
)
def empty_share(work: Work) -> None:
    sizes = hidden_sizes(work)
    sizes[int(work.rng.integers(1, REPLICAS))] = 0
    compare_moments(work, sizes)


@check(
    "moments-of-all",
    "Numbers far from zero keep their digits",
    xp=15,
    hints=["Two rounds: first agree on the mean, then add up the squares of what is left after subtracting it."],
)
def far_from_zero(work: Work) -> None:
    compare_moments(work, hidden_sizes(work), far=float(work.rng.uniform(8_000, 12_000)))


def dropped(work: Work, share: np.ndarray, first: int, step: int, rate: float) -> np.ndarray:
    """What ``drop`` makes of a share: an array of the share's shape."""
    result = work.call("drop", share, first, step, rate)
    if not isinstance(result, np.ndarray) or result.shape != share.shape or result.dtype.kind != "f":
        fail("drop has to return the share with some of its numbers set to 0.")
    return result


def hidden_batch(work: Work, examples: int) -> tuple[np.ndarray, int, float]:
    """A batch without zeros, the number of the step, and the rate."""
    batch = work.rng.uniform(0.5, 1.5, size=(examples, WIDTH)).astype("float32")
    return batch, int(work.rng.integers(1, 1000)), float(work.rng.uniform(0.15, 0.35))


@check(
    "mask-for-each-example",
    "The result does not depend on the number of replicas",
    xp=15,
    hints=[
        "Which two numbers name an example of a step, whatever replica it is on?",
        "Draw the mask of one example with `seed=[step, number]`, and do that for all examples of the share.",
    ],
)
def any_number_of_replicas(work: Work) -> None:
    batch, step, rate = hidden_batch(work, 8)
    whole = dropped(work, batch, 0, step, rate)
    for parts in (2, 4):
        size = len(batch) // parts
        shares = [dropped(work, batch[first : first + size], first, step, rate) for first in range(0, 8, size)]
        masks = [share != 0 for share in shares]
        if all(np.array_equal(masks[0], mask) for mask in masks):
            fail("All replicas draw the same mask.")
        if not np.allclose(np.concatenate(shares), whole, rtol=1e-4):
            fail("Cut into {count} shares, the batch gets other masks than in one piece.", count=parts)


@check(
    "mask-for-each-example",
    "Every example of every step has its own mask",
    xp=10,
    hints=["If two masks have the same seed, they are the same mask."],
)
def own_masks(work: Work) -> None:
    batch, step, rate = hidden_batch(work, 6)
    masks = [dropped(work, batch, 0, now, rate) != 0 for now in (step, step + 1)]
    masks.append(dropped(work, batch, len(batch), step, rate) != 0)
    if len({mask.tobytes() for mask in masks[0]}) < len(batch):
        fail("Some examples of a batch have the same mask.")
    if np.array_equal(masks[0], masks[1]):
        fail("The masks of two steps are the same.")
    if len({mask.tobytes() for step_masks in masks for mask in step_masks}) < len(masks) * len(batch):
        fail("Masks come back: an example has the mask that another one had, or has in another step.")


@check(
    "mask-for-each-example",
    "The rate is kept, and the mean stays",
    xp=10,
    hints=["With a rate of 0.25, three quarters of the numbers stay, each divided by 0.75."],
)
def rate_and_scale(work: Work) -> None:
    batch, step, rate = hidden_batch(work, 96)
    result = dropped(work, batch, 0, step, rate)
    kept = result != 0
    close(
        result,
        np.where(kept, batch / (1 - rate), 0),
        mistakes={
            "What is kept is not divided by 1 - rate.": np.where(kept, batch, 0),
            "What is kept is divided by the rate.": np.where(kept, batch / rate, 0),
            "What is kept is multiplied by 1 - rate.": np.where(kept, batch * (1 - rate), 0),
        },
    )
    if abs(kept.mean() - (1 - rate)) > 0.04:
        fail("A share of {part} is kept, and it should be about {wanted}.", part=kept.mean(), wanted=1 - rate)
