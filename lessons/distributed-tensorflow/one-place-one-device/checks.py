"""Checks of "One place, one device": variables that several replicas update, and a program for any strategy."""

from __future__ import annotations

import numpy as np

from runners.checks import Work, check, close, equal, untouched


def compare_means(work: Work, count: int, batch: int) -> None:
    untouched(work, "feature_means", "central", "weight")
    pixels = work.rng.integers(100, 256, size=(count, int(work.rng.integers(2, 6))), dtype="uint8")
    means, counted = work.call("feature_means", pixels, batch)
    steps = -(-count // batch)
    equal(
        counted,
        count,
        mistakes={
            "This is the number of batches.": steps,
            "Each replica counts its calls: count the examples of its share.": 4 * steps,
            "This is a quarter of the examples: the counts of the replicas are averaged, not added up.": count // 4,
        },
    )
    overflowed: object = None  # what a replica's sum of uint8 comes to, where the shares are easy to tell
    if count % batch == 0:
        overflowed = (
            pixels.reshape(-1, batch // 4, pixels.shape[1]).sum(axis=1, dtype="uint8").sum(axis=0) / count
        ).astype("float32")
    close(
        means,
        pixels.mean(axis=0, dtype="float32"),
        dtype=True,
        mistakes={
            "A sum of uint8 starts again at 0 after 255: convert the pixels before you add them up.": overflowed,
            "The total is kept as uint8, and starts again at 0 after 255.": (
                pixels.sum(axis=0, dtype="uint8") / np.float32(count)
            ),
            "The totals of the replicas are averaged, not added up.": pixels.mean(axis=0, dtype="float32") / 4,
        },
    )


@check(
    "mean-in-one-place",
    "Batches that four replicas share equally",
    xp=10,
    hints=[
        "An update from several replicas needs an `aggregation`: what should become of four numbers?",
        "What is 200 + 100 in `uint8`?",
    ],
)
def equal_shares(work: Work) -> None:
    batch = 4 * int(work.rng.choice([2, 3, 5]))  # with 16, a quarter of the examples is four times the steps
    compare_means(work, batch * int(work.rng.integers(2, 5)), batch)


@check(
    "mean-in-one-place", "Batches of any size", xp=10, hints=["In a short batch, some replicas have no example at all."]
)
def any_size(work: Work) -> None:
    batch = int(work.rng.integers(8, 12))
    compare_means(work, 2 * batch + int(work.rng.integers(1, 4)), batch)


def hidden_training(work: Work) -> tuple[np.ndarray, np.ndarray, int, float]:
    batch = 4 * int(work.rng.integers(2, 5))
    count = batch * int(work.rng.integers(2, 5))
    inputs = work.rng.normal(size=(count, int(work.rng.integers(2, 5)))).astype("float32")
    return inputs, work.rng.normal(size=count).astype("float32"), batch, float(work.rng.uniform(0.02, 0.08))


def trained(work: Work, name: str, examples: tuple[np.ndarray, np.ndarray, int, float]) -> tuple[object, object]:
    """What the submission reaches under a strategy: weights, and the number of steps."""
    untouched(work, "train_on", "strategies")
    weights, steps = work.call("train_on", name, *examples)
    return weights, steps


def linear_epoch(inputs: np.ndarray, targets: np.ndarray, batch: int, rate: float, factor: float) -> list[np.ndarray]:
    """One epoch in NumPy, with gradients that are ``factor`` times those of the mean."""
    inputs = np.hstack([inputs, np.ones((len(inputs), 1))])
    weights = np.zeros(inputs.shape[1])
    for start in range(0, len(targets), batch):
        x, y = inputs[start : start + batch], targets[start : start + batch]
        weights = weights - rate * factor * 2 * x.T @ (x @ weights - y) / batch
    return [weights[:-1, None], weights[-1:]]


@check(
    "any-strategy",
    "The same weights under every strategy",
    xp=15,
    hints=["Which number is the same on one replica and on four: the size of a share, or that of the global batch?"],
)
def same_weights(work: Work) -> None:
    examples = hidden_training(work)
    want, _ = work.reference("train_on", "default", *examples, topology="cpu")
    for name in ("one device", "central storage", "mirrored"):
        weights, _ = trained(work, name, examples)
        close(
            weights,
            want,
            mistakes={
                "With four replicas the steps are four times too long: the loss is divided by the replica's share.": (
                    linear_epoch(*examples, factor=4)
                ),
                "The steps are too short by the number of replicas: the loss is divided twice.": linear_epoch(
                    *examples, factor=1 / 4
                ),
                "The losses are added up, but not divided by the global batch size.": linear_epoch(
                    *examples, factor=examples[2]
                ),
            },
        )


@check(
    "any-strategy",
    "The same number of steps",
    xp=10,
    hints=["Where must a variable be made, so that four replicas change it once in a step?"],
)
def same_steps(work: Work) -> None:
    examples = hidden_training(work)
    steps = len(examples[1]) // examples[2]
    for name in ("one device", "mirrored"):
        _, counted = trained(work, name, examples)
        equal(
            counted,
            steps,
            mistakes={"The counter counts each step once for every replica.": 4 * steps, "The counter stays at 0.": 0},
        )
