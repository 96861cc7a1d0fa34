"""Checks of "TPUStrategy": shapes that stand still, and one compilation."""

from __future__ import annotations

import numpy as np

from runners.checks import Work, check, close, equal, fail, untouched

REPLICAS = 8


def pair(value: object, name: str) -> tuple[object, object]:
    if not isinstance(value, (list, tuple)) or len(value) != 2:
        fail("{name} has to return two things.", name=name)
    return value[0], value[1]


def hidden_values(work: Work) -> tuple[np.ndarray, int]:
    """Values far from 0, and a batch size that does not divide their number.

    Those of the short batch are larger, so that its mean counts as much as that of the others only by mistake.
    """
    batch = REPLICAS * int(work.rng.integers(1, 4))
    short = int(work.rng.integers(1, batch))
    values = work.rng.uniform(1, 5, size=2 * batch + short)
    values[-short:] += 5
    return values.astype("float32"), batch


@check(
    "pad-the-batch",
    "The data set promises its shapes",
    xp=10,
    hints=["`tf.pad` cannot know the size that comes out; `tf.ensure_shape` states it."],
)
def static_shapes(work: Work) -> None:
    untouched(work, "filled", "promised", "contents", "mean_of")
    values, batch = hidden_values(work)
    equal(
        work.call("promised", values, batch),
        [[batch], [batch]],
        mistakes={
            "The size of a batch is not known before it comes: state it with tf.ensure_shape.": [[None], [None]],
            "The values have a fixed size, but the weights have not.": [[batch], [None]],
            "The weights have a fixed size, but the values have not.": [[None], [batch]],
        },
    )


@check(
    "pad-the-batch",
    "The mean is that of all examples",
    xp=15,
    hints=["What is the weight of a number that was only filled in?"],
)
def exact_mean(work: Work) -> None:
    untouched(work, "filled", "promised", "contents", "mean_of")
    values, batch = hidden_values(work)
    count = len(values)
    filled = -(-count // batch) * batch
    mean, counted = pair(work.call("mean_of", values, batch), "mean_of")
    full = count // batch * batch
    equal(
        counted,
        float(count),
        mistakes={
            "What was filled in is counted, too: count by the weights.": float(filled),
            "The last, short batch is missing.": float(full),
        },
    )
    close(mean, float(values.mean(dtype="float64")), rtol=1e-5)
    pairs = [pair(item, "fill_up") for item in work.call("contents", values, batch)]
    batches = [values[start : start + batch] for start in range(0, count, batch)]
    kept = [np.asarray(got)[np.asarray(weights) != 0] for got, weights in pairs if np.shape(got) == np.shape(weights)]
    if len(kept) != len(batches) or not all(map(np.array_equal, kept, batches)):
        fail("Keep the values as they are, and fill up with numbers whose weight is 0.")


def descended(start: float, rates: list[float], factor: float = 1.0) -> list[float]:
    """The weight after each step."""
    return [start * float(left) for left in np.cumprod([1 - factor * rate for rate in rates])]


def hidden_descent(work: Work) -> tuple[float, list[float], list[object], object]:
    """A start, rates, the weights that the submission reached with them, and how often it was compiled."""
    untouched(work, "descend")
    start = float(work.rng.uniform(1, 3))
    rates = [float(rate) for rate in work.rng.uniform(0.1, 0.4, size=int(work.rng.integers(4, 8)))]
    path, compilations = pair(work.call("descend", start, rates), "descend")
    if not isinstance(path, list) or len(path) != len(rates):
        fail("take_steps has to make one step with each rate.")
    return start, rates, path, compilations


@check("compile-once", "The weight is right", xp=5)
def right_weight(work: Work) -> None:
    start, rates, path, _ = hidden_descent(work)
    close(
        path,
        descended(start, rates),
        mistakes={
            "Every step has the first rate: it has become a constant of the program.": descended(
                start, [rates[0]] * len(rates)
            ),
            "Every step has the last rate.": descended(start, [rates[-1]] * len(rates)),
        },
    )


@check(
    "compile-once",
    "One compilation for all rates",
    xp=15,
    hints=["Is the rate a part of the program, or an input of it?"],
)
def one_compilation(work: Work) -> None:
    _, rates, _, compilations = hidden_descent(work)
    equal(compilations, 1, mistakes={"The step is compiled again for every new rate.": len(rates)})
