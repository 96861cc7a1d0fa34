"""Checks of "Fitting into memory": count bytes, and accumulate gradients that equal those of the whole batch."""

from __future__ import annotations

import numpy as np

from runners.checks import Work, check, close, equal


def hidden_machine(work, activation_bytes):
    rng = work.rng
    weights, slots = int(rng.integers(10_000, 10_000_000)), int(rng.integers(0, 3))
    activations, replicas = int(rng.integers(10_001, 1_000_000)), int(rng.integers(2, 9))
    room = activation_bytes * activations * int(rng.integers(2, 200)) + int(rng.integers(1, activations))
    memory = 4 * weights * (2 + slots) + room
    return memory, weights, slots, activations, activation_bytes, replicas


def answers(memory, weights, slots, activations, activation_bytes, replicas):
    """The right answer, and what usual mistakes give instead."""

    def fit(fixed_numbers, devices=replicas, example=activation_bytes * activations):
        return devices * ((memory - 4 * weights * fixed_numbers) // example)

    return fit(2 + slots), {
        "The gradients take room, too: as much as the weights.": fit(1 + slots),
        "The optimizer's slots take room, too.": fit(2),
        "This is the batch of one replica: the global batch has that many on each.": fit(2 + slots, devices=1),
        "Replicas do not share one copy of the weights: every device pays for its own.": (
            (replicas * memory - 4 * weights * (2 + slots)) // (activation_bytes * activations)
        ),
        "An activation does not always take 4 bytes.": fit(2 + slots, example=4 * activations),
        "Round down on each device first, and then multiply.": int(
            replicas * (memory - 4 * weights * (2 + slots)) / (activation_bytes * activations)
        ),
    }


@check(
    "largest-batch",
    "A model that fits",
    xp=10,
    hints=["Write down what has to be there before the first example comes: three or four things for each weight."],
)
def fits(work: Work) -> None:
    for activation_bytes in (4, 2, 4, 2):
        machine = hidden_machine(work, activation_bytes)
        want, mistakes = answers(*machine)
        equal(
            work.call("largest_batch", *machine), want, mistakes={text: n for text, n in mistakes.items() if n != want}
        )


@check(
    "largest-batch",
    "A model that does not fit",
    xp=5,
    hints=["Less than nothing left for activations is still nothing."],
)
def does_not_fit(work: Work) -> None:
    _, *machine = hidden_machine(work, 4)
    memory = int(4 * machine[0] * (2 + machine[1]) * work.rng.uniform(0.2, 0.9))
    equal(work.call("largest_batch", memory, *machine), 0)


def linear_steps(inputs, targets, part, rate, updates, divisor, resets=True):
    """Accumulate as the exercise does, in NumPy; ``divisor`` gives the number that a part of that size divides by."""
    inputs = np.hstack([inputs, np.ones((len(inputs), 1))])
    weights = np.zeros(inputs.shape[1])
    total = np.zeros_like(weights)
    for _ in range(updates):
        for start in range(0, len(targets), part):
            x, y = inputs[start : start + part], targets[start : start + part]
            total = total + 2 * x.T @ (x @ weights - y) / divisor(len(y))
        weights = weights - rate * total
        total = np.zeros_like(weights) if resets else total
    return [weights[:-1, None], weights[-1:]]


def compare_training(work, updates):
    part = int(work.rng.integers(3, 6))
    count = 2 * part + int(work.rng.integers(1, part))
    inputs = work.rng.normal(size=(count, int(work.rng.integers(2, 5)))).astype("float32")
    targets = work.rng.normal(size=count).astype("float32")
    rate = float(work.rng.uniform(0.02, 0.1))
    parts = -(-count // part)

    def mistaken(divisor, resets=True):
        return linear_steps(inputs, targets, part, rate, updates, divisor, resets)

    mistakes = {
        "Every part is divided by the size of a part: the sum is as many times too large as there are parts.": mistaken(
            lambda size: part
        ),
        "Every part is divided by its own size: the sum is too large, and a short last part counts too much.": mistaken(
            lambda size: size
        ),
        "This is the mean of the parts' means: a short last part counts too much.": mistaken(lambda size: size * parts),
        "The gradients are divided by the number of replicas once more.": mistaken(lambda size: 2 * count),
        "The gradients are added up, but not divided by the number of examples.": mistaken(lambda size: 1),
    }
    if updates > 1:
        mistakes["The sums are not set back to zero: the second update repeats the first."] = mistaken(
            lambda size: count, resets=False
        )
    close(
        work.call("train_in_parts", inputs, targets, part, rate, updates),
        work.reference("train_in_parts", inputs, targets, count, rate, updates, topology="cpu"),
        mistakes=mistakes,
    )


@check(
    "accumulate-parts",
    "One update equals one large batch",
    xp=15,
    hints=["How much should one example of the last, short part count, next to one of the first part?"],
)
def one_update(work: Work) -> None:
    compare_training(work, updates=1)


@check("accumulate-parts", "So do several", xp=15, hints=["What do the sums hold when the second update begins?"])
def several_updates(work: Work) -> None:
    compare_training(work, updates=int(work.rng.integers(2, 5)))
