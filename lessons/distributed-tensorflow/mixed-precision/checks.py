"""Checks of "Mixed precision": a scale that fits float16, and one verdict for all replicas."""

from __future__ import annotations

import numpy as np

from runners.checks import Work, check, close, equal, fail, untouched

EDGES = ((1.0, 1.0), (1.1, 1.4), (1.5, 1.9))
"""The largest gradient is a power of two times a number between these: 65,536 would do for all but the first of them,
and rounding to the nearest power for the last."""


def hidden_gradients(rng, size_of_largest):
    """Arrays of random shapes whose largest number, by its absolute value, is given. It is negative; others are not."""
    arrays = [
        rng.uniform(-1, 0.2, size=rng.integers(1, 6, size=int(rng.integers(1, 4))))
        for _ in range(int(rng.integers(2, 5)))
    ]
    arrays[int(rng.integers(len(arrays)))].flat[0] = -1.5
    arrays.append(rng.uniform(0.05, 0.2, size=int(rng.integers(1, 6))))
    return [(array / 1.5 * size_of_largest).astype("float32") for array in arrays]


def compare_scale(work: Work, exponent: int, low: float, high: float) -> None:
    largest = float(work.rng.uniform(low, high) * 2.0**exponent)
    gradients = hidden_gradients(work.rng, largest)
    want = 2.0 ** np.floor(np.log2(65504 / largest))
    signed = max(float(gradient.max()) for gradient in gradients)
    mistakes = {
        "This scale is twice too large: a gradient becomes infinite.": 2 * want,
        "There is room for a larger scale: even the double would not overflow.": want / 2,
        "This is not a power of two.": 65504 / largest,
        "Negative gradients overflow, too.": 2.0 ** np.floor(np.log2(65504 / signed)),
    }
    got = work.call("largest_scale", gradients)
    close(got, float(want), rtol=1e-9, atol=0.0, mistakes={text: float(value) for text, value in mistakes.items()})


@check(
    "largest-scale",
    "Small gradients",
    xp=10,
    hints=["Which single number among all gradients decides?", "`float16` ends at 65,504."],
)
def small(work: Work) -> None:
    for low, high in EDGES:
        compare_scale(work, int(work.rng.integers(-30, 0)), low, high)


@check("largest-scale", "Large gradients", xp=5, hints=["A power of two can have a negative exponent."])
def large(work: Work) -> None:
    for low, high in EDGES:
        compare_scale(work, int(work.rng.integers(17, 30)), low, high)


def hidden_shares(work: Work) -> None:
    """A scale, and the scaled gradients of two replicas; without the scale they do not fit into float16."""
    scale = float(2.0 ** work.rng.integers(12, 16))
    size = int(work.rng.integers(8, 14))
    return [work.rng.uniform(1e-4, 4e-4, size=size).astype("float16") for _ in range(2)], scale


def agreed(work: Work, shares: list[np.ndarray], scale: float) -> tuple[list[np.ndarray], list[bool], list]:
    """The sum and the verdict of each replica, and those of replica 0 if the other one brings nothing."""
    untouched(work, "agree", "two")
    graph = work.graph("agree", np.stack(shares), np.array(scale, "float32"), alone=True)
    result = graph.result
    if not isinstance(result, list) or len(result) != 4:
        fail("agreed_gradient has to return a sum and a verdict.")
    sums, verdicts = result[:2], result[2:]
    if any(np.shape(total) != shares[0].shape or total.dtype.kind != "f" for total in sums):
        fail("There has to be a sum from each of the two replicas.")
    if any(np.shape(verdict) != () or np.asarray(verdict).dtype != bool for verdict in verdicts):
        fail("There has to be a verdict from each of the two replicas.")
    return sums, [bool(verdict) for verdict in verdicts], [graph.alone[0], bool(graph.alone[2])]


def all_count(verdicts: list[bool]) -> None:
    equal(verdicts, [True, True], mistakes={"All gradients are finite, but the step does not count.": [False, False]})


@check(
    "one-verdict",
    "Finite gradients are unscaled and added up",
    xp=10,
    hints=["What is 0.0002 / 32768 in `float16`?", "How many digits does a sum in `float16` keep?"],
)
def finite(work: Work) -> None:
    shares, scale = hidden_shares(work)
    sums, verdicts, (alone, _) = agreed(work, shares, scale)
    all_count(verdicts)
    want = (shares[0].astype("float32") + shares[1].astype("float32")) / np.float32(scale)
    halves = [(share / np.float16(scale)).astype("float32") for share in shares]
    added_in_half = (shares[0] + shares[1]).astype("float32") / np.float32(scale)
    for index, got in enumerate(sums):
        equal(str(got.dtype), "float32", mistakes={"The sum is in float16.": "float16"})
        # Compared after multiplying with the scale: a tolerance needs numbers near 1.
        close(
            got * scale * 1e4,
            want * scale * 1e4,
            mistakes={
                "The division happens in float16, and small gradients become zero.": (halves[0] + halves[1])
                * scale
                * 1e4,
                "The sum is computed in float16, and loses digits.": added_in_half * scale * 1e4,
                "The gradients are not divided by the scale.": want * scale**2 * 1e4,
                "This is the gradient of one replica, not the sum.": shares[index].astype("float32") * 1e4,
                "The gradients are averaged, not added up.": want / 2 * scale * 1e4,
            },
        )
    if np.allclose(alone * scale * 1e4, sums[0] * scale * 1e4):
        fail("The sum does not come from the exchange: it changes nothing.")


@check(
    "one-verdict",
    "One overflow stops both replicas",
    xp=15,
    hints=[
        "What does replica 0 know of the gradients of replica 1?",
        "An all-reduce adds numbers. Which number can each replica bring?",
    ],
)
def overflow(work: Work) -> None:
    first = int(work.rng.integers(2))
    _, verdicts, (_, alone) = agreed(work, *hidden_shares(work))
    all_count(verdicts)
    heard = not alone  # replica 0 misses the yes of the other one, or, below, its no
    for number, bad in enumerate(work.rng.permutation([np.inf, -np.inf, np.nan])):
        shares, scale = hidden_shares(work)
        place = (first + number) % 2
        shares[place][-1 if number else 0] = bad
        sums, verdicts, (_, alone) = agreed(work, shares, scale)
        heard = heard or (place == 1 and alone)
        equal(
            sorted(verdicts),
            [False, False],
            mistakes={
                "The replica without an overflow says that the step counts: the two have not agreed.": [False, True],
                "Both replicas say that the step counts.": [True, True],
            },
        )
        for got in sums:
            if np.any(got != 0):
                fail("A step that does not count has to return zeros on every replica.")
    if not heard:
        fail("The verdict does not come from the exchange: it changes nothing.")
