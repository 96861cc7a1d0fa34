"""Checks of "Batch size and learning rate": estimates from hidden gradients, and a loss bound on hidden problems."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from runners.checks import Work, check, close, fail

FEATURES, WIDTH, CLASSES, HIDDEN_LAYERS = 16, 32, 4, 6
EXAMPLES, BASE_BATCH, PROBLEMS = 8192, 32, 10
MOST_DIVERGED = 2  # of 10: right schedules diverge on one problem in a hundred, those without a warm-up on nearly all


def estimates(gradients: np.ndarray, batch: int) -> tuple[float, float, int]:
    """The variance over the replicas, the square of their mean, and how many they are."""
    return float(gradients.var(axis=0, ddof=1).sum()), float((gradients.mean(axis=0) ** 2).sum()), len(gradients)


def compare_estimates(work: Work, replicas: int) -> None:
    # With 2 replicas, or as many examples as replicas, some mistakes would give the same numbers.
    batch, weights = int(work.rng.integers(9, 15)), int(work.rng.integers(30, 50))
    gradients = work.rng.uniform(0.5, 1.0, weights) + 1.5 * work.rng.normal(size=(replicas, weights))
    got = work.call("noise_and_signal", gradients, batch)
    if not (isinstance(got, list | tuple) or (isinstance(got, np.ndarray) and got.ndim)) or len(got) != 2:
        fail("noise_and_signal has to return two numbers: the noise and the signal.")
    trace, signal = work.reference("noise_and_signal", gradients, batch)
    spread, square, count = estimates(gradients, batch)
    close(
        got[0],
        trace,
        rtol=1e-6,
        mistakes={
            "The first number is the variance of a mean over a share. One example has more.": spread,
            "A mean of N gradients is nearer to them than the true one: divide by N - 1.": trace * (count - 1) / count,
            "The first number is the variance of a mean over a share, and divided by N instead of N - 1.": (
                spread * (count - 1) / count
            ),
            "The first number is a sum over the replicas that is not divided by anything.": spread * (count - 1),
            "The first number is not divided by N - 1.": trace * (count - 1),
            "The examples of all replicas are counted, but the variance is that of one share.": count * trace,
            "Add up the variances of all weights.": trace / weights,
            "The first number is not the expected one.": got[0],
        },
    )
    close(
        got[1],
        signal,
        rtol=1e-6,
        mistakes={
            "The square of the mean contains noise, so it is too large on average.": square,
            "The mean over all replicas has less noise than one replica has.": square - spread,
            "What is subtracted from the square of the mean was divided by N: divide it by N - 1 first.": (
                square - spread * (count - 1) / count**2
            ),
            "What is subtracted from the square of the mean is the noise of one example, and its share has less.": (
                square - trace / count
            ),
            "The first number is right, but the second is not the expected one.": got[1],
        },
    )


@check(
    "noise-and-signal",
    "Eight replicas",
    xp=20,
    hints=[
        "The replicas differ only by their noise. "
        "How large is the variance of a mean over `batch` examples, compared with that of one example?",
        "The mean over N replicas has an Nth of the noise of one replica. What does that add to its square?",
    ],
)
def eight_replicas(work: Work) -> None:
    compare_estimates(work, 8)


@check("noise-and-signal", "Other numbers of replicas", xp=10, hints=["np.var has an argument ddof."])
def other_numbers(work: Work) -> None:
    for replicas in (3, int(work.rng.integers(4, 8))):
        compare_estimates(work, replicas)


class Trainings:
    """The networks of the lesson on hidden problems, all trained at once. Weights: (problems, inputs, outputs)"""

    def __init__(self, rng: np.random.Generator) -> None:
        sizes = [FEATURES, *HIDDEN_LAYERS * [WIDTH], CLASSES]
        self._x = rng.normal(size=(PROBLEMS, EXAMPLES, FEATURES)).astype("float32")
        hidden = np.maximum(self._x @ rng.normal(size=(PROBLEMS, FEATURES, 8)), 0)
        scores = hidden @ rng.normal(size=(PROBLEMS, 8, CLASSES))
        labels = np.argmax(scores - scores.mean(axis=1, keepdims=True), axis=2)
        guessed = rng.random(labels.shape) < 0.1
        labels = np.where(guessed, rng.integers(0, CLASSES, labels.shape), labels)
        self._wanted = np.eye(CLASSES, dtype="float32")[labels]
        self._first = [
            (1.5 * rng.normal(size=(PROBLEMS, *pair)) * np.sqrt(2 / pair[0])).astype("float32")
            for pair in pairwise(sizes)
        ]
        self._seed = int(rng.integers(1 << 30))

    def losses(self, rates: list[float], batch: int) -> np.ndarray:
        """The loss of each problem after a step of plain SGD for each rate. NaN where a training diverges."""
        weights, rng = [weight.copy() for weight in self._first], np.random.default_rng(self._seed)
        batches: list[np.ndarray] = []
        with np.errstate(all="ignore"):
            for rate in rates:
                if not batches:
                    batches = np.split(rng.permutation(EXAMPLES), EXAMPLES // batch)
                chosen = batches.pop()
                activations = self._activations(weights, self._x[:, chosen])
                slope = (softmax(activations[-1]) - self._wanted[:, chosen]) / np.float32(batch)
                for layer in reversed(range(len(weights))):
                    gradient = activations[layer].swapaxes(1, 2) @ slope
                    if layer:
                        slope = (slope @ weights[layer].swapaxes(1, 2)) * (activations[layer] > 0)
                    weights[layer] -= np.float32(rate) * gradient
            likely = softmax(self._activations(weights, self._x)[-1])
            losses: np.ndarray = -np.log((likely * self._wanted).sum(axis=2)).mean(axis=1)
            return losses

    @staticmethod
    def _activations(weights: list[np.ndarray], x: np.ndarray) -> list[np.ndarray]:
        """What each layer gets, and the logits."""
        activations = [x]
        for weight in weights[:-1]:
            activations.append(np.maximum(activations[-1] @ weight, 0))
        return [*activations, activations[-1] @ weights[-1]]


def softmax(logits: np.ndarray) -> np.ndarray:
    powers = np.exp(logits - logits.max(axis=2, keepdims=True))
    result: np.ndarray = powers / powers.sum(axis=2, keepdims=True)
    return result


def compare_losses(work: Work, base_rate: float, factor: int, epochs: int, most: float) -> None:
    """Train with the rates of the submission, and compare with the small batch and the base rate."""
    steps = epochs * EXAMPLES // (BASE_BATCH * factor)
    rates = work.call("schedule", steps, base_rate, factor)
    try:
        numbers = np.asarray(rates, dtype="float64")
    except (OverflowError, TypeError, ValueError):
        numbers = np.array(np.nan)
    if numbers.shape != (steps,) or not np.isfinite(numbers).all():
        fail("schedule has to return a list of {count} rates, one for each step.", count=steps)
    small = np.array(np.nan)
    while not np.isfinite(small).all():  # the task says that the base rate works, and it does nearly always
        trainings = Trainings(work.rng)
        small = trainings.losses(factor * steps * [base_rate], BASE_BATCH)
    large = trainings.losses(numbers.tolist(), factor * BASE_BATCH)
    converged = np.isfinite(large)
    diverged = int(np.sum(~converged))
    if diverged > MOST_DIVERGED:
        fail(
            "With {factor} times the batch, {number} of {count} training runs diverge. "
            "The rate in the first step is {rate}.",
            factor=factor,
            number=diverged,
            count=PROBLEMS,
            rate=float(numbers[0]),
        )
    ratio = float(np.mean((large / small)[converged]))
    if not ratio < most:
        fail(
            "With {factor} times the batch, the loss is {ratio} times that of small batches. It has to be below "
            "{most} times. The largest rate is {times} times the base rate.",
            factor=factor,
            ratio=round(ratio, 2),
            most=most,
            times=round(float(numbers.max()) / base_rate, 1),
        )


@check(
    "schedule",
    "Eight times the batch, on hidden problems",
    xp=20,
    hints=[
        "Which rate is known to work in the first step? Which one does the linear rule give?",
        "Grow from one to the other in a straight line, during a part of the steps, and then stay.",
    ],
)
def eight_times(work: Work) -> None:
    compare_losses(work, base_rate=0.04, factor=8, epochs=4, most=1.25)


@check(
    "schedule",
    "Another rate and another factor",
    xp=10,
    hints=["If the warm-up takes all of the training, its steps are only half as long on average."],
)
def four_times(work: Work) -> None:
    compare_losses(work, base_rate=float(work.rng.uniform(0.03, 0.04)), factor=4, epochs=5, most=1.13)
