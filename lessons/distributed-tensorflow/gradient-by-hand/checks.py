"""Checks of "A gradient by hand": the part of one worker, and the whole from what several report."""

from __future__ import annotations

import numpy as np

from runners.checks import Work, check, close


def compare_part(work: Work, share: int, batch: int) -> None:
    """Compare the part of a worker that has ``share`` of ``batch`` hidden examples."""
    features = int(work.rng.integers(2, 5))
    w, b = work.rng.uniform(0.5, 1.5, size=features), float(work.rng.uniform(0.5, 1.5))
    x = work.rng.uniform(0.5, 1.5, size=(share, features))
    y = x @ w + b + work.rng.choice([-1.0, 1.0]) * work.rng.uniform(1.0, 3.0, size=share)
    errors = x @ w + b - y
    sums = 2 * errors @ x, 2 * errors.sum()

    def divided_by(divisor: float) -> tuple[np.ndarray, float]:
        return sums[0] / divisor, sums[1] / divisor

    mistakes = {
        "The part is divided by the worker's own number of examples, not by the size of the batch.": divided_by(
            max(share, 1)
        ),
        "The factor 2 is missing: the derivative of e² is 2e.": divided_by(2 * batch),
        "The factor 2 is missing, and so is the division by the size of the batch.": divided_by(2),
        "The sum is not divided by the size of the batch.": divided_by(1),
        "The sign is wrong: the error is the output minus the target.": divided_by(-batch),
        "The part for the bias lacks the factor 2.": (sums[0] / batch, sums[1] / 2 / batch),
    }
    close(
        work.call("part_of_gradient", w, b, x, y, batch),
        divided_by(batch),
        mistakes=mistakes if share else {},
    )


@check(
    "part-of-gradient",
    "The part of a worker that shares the batch",
    xp=15,
    hints=[
        "What does one example contribute to the weights, and what to the bias? Add that up over the rows of `x`.",
        "By what does the whole batch divide? The parts are only added afterwards.",
    ],
)
def shared_batch(work: Work) -> None:
    share = int(work.rng.integers(3, 7))  # with 2, a missing factor would look like a division
    compare_part(work, share, share + int(work.rng.integers(3, 20)))


@check("part-of-gradient", "A worker that has the whole batch", xp=5)
def whole_batch(work: Work) -> None:
    share = int(work.rng.integers(3, 9))
    compare_part(work, share, share)


@check(
    "part-of-gradient",
    "A worker without examples contributes zeros",
    xp=5,
    hints=["A sum over no examples is 0. A mean over no examples is 0 / 0."],
)
def no_examples(work: Work) -> None:
    compare_part(work, 0, int(work.rng.integers(4, 20)))


def compare_whole(work: Work, counts: list[int]) -> None:
    """Let hidden workers with these numbers of examples report, and compare the gradient of all."""
    weights = int(work.rng.integers(2, 6))
    shares = [
        work.rng.uniform(low, low + 0.5, size=(count, weights)) for low, count in enumerate(counts, start=1) if count
    ]
    means = iter([share.mean(axis=0) for share in shares])
    reports = [(next(means) if count else np.full(weights, np.nan), count) for count in counts]
    of_the_busy = np.array([share.mean(axis=0) for share in shares])
    slopes = np.concatenate(shares)
    close(
        work.call("whole_gradient", reports),
        slopes.mean(axis=0),
        mistakes={
            "This is the mean of the means: a worker with few examples counts as much as one with many.": (
                of_the_busy.mean(axis=0)
            ),
            **(
                {"The mean of the means counts a worker without examples, too.": of_the_busy.sum(axis=0) / len(counts)}
                if 0 in counts
                else {}
            ),
            "The means are added up without their counts.": of_the_busy.sum(axis=0),
            "The sum over all examples is not divided by their number.": slopes.sum(axis=0),
            "The sum is divided by the number of workers, not by the number of examples.": slopes.sum(axis=0)
            / len(counts),
        },
    )


@check(
    "whole-gradient",
    "Workers with different numbers of examples",
    xp=15,
    hints=["A mean times its count is a sum. What do you do with the sums?"],
)
def different_counts(work: Work) -> None:
    few = int(work.rng.integers(1, 4))
    compare_whole(work, [few + int(work.rng.integers(4, 12)), few, 2 * few + int(work.rng.integers(8, 12))])


@check(
    "whole-gradient",
    "A worker without examples changes nothing",
    xp=10,
    hints=["What is `float('nan') * 0`?"],
)
def idle_worker(work: Work) -> None:
    few = int(work.rng.integers(1, 4))
    compare_whole(work, [few + int(work.rng.integers(4, 12)), 0, few])
