"""Checks of "Fitting into memory": count bytes, and accumulate gradients that equal those of the whole batch."""

from __future__ import annotations

import numpy as np

from runners.checks import Work, check, close, equal, fail, untouched

REPLICAS = 2


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
        mistakes: dict[str, int] = {}
        while len(set(mistakes.values())) < max(len(mistakes), 4):  # each mistake shows, and as no other one does
            machine = hidden_machine(work, activation_bytes)
            want, mistaken = answers(*machine)
            mistakes = {text: n for text, n in mistaken.items() if n != want}
        equal(work.call("largest_batch", *machine), want, mistakes=mistakes)


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


def linear_steps(inputs, targets, part, updates, divisor, resets=True, replicas=1):
    """Accumulate as the exercise does, in NumPy, but of several replicas only what the first one contributes.

    ``divisor`` gives the number that a part of that size divides by.
    """
    weights, total = np.zeros(3), np.zeros(3)
    for _ in range(updates):
        for start in range(0, len(targets), part):
            share = slice(start, start + part, replicas)
            x, y = inputs[share], targets[share]
            total = total + 2 * x.T @ (x @ weights - y) / divisor(len(y))
        weights = weights - 0.1 * total
        total = np.zeros_like(weights) if resets else total
    return weights


def compare_training(work, updates):
    untouched(work, "train_in_parts", "two")
    part = int(work.rng.integers(3, 6))
    count = 2 * part + int(work.rng.integers(1, part))
    inputs = work.rng.normal(size=(count, 3)).astype("float32")
    targets = work.rng.normal(size=count).astype("float32")
    parts = -(-count // part)

    def trained(divisor, resets=True, replicas=1):
        return linear_steps(inputs, targets, part, updates, divisor, resets, replicas)

    mistakes = {
        "Every part is divided by the size of a part: the sum is as many times too large as there are parts.": trained(
            lambda size: part
        ),
        "Every part is divided by its own size: the sum is too large, and a short last part counts too much.": trained(
            lambda size: size
        ),
        "This is the mean of the parts' means: a short last part counts too much.": trained(lambda size: size * parts),
        "The gradients are divided by the number of replicas once more.": trained(lambda size: 2 * count),
        "The gradients are added up, but not divided by the number of examples.": trained(lambda size: 1),
    }
    if updates > 1:
        mistakes["The sums are not set back to zero: the second update repeats the first."] = trained(
            lambda size: count, resets=False
        )
    graph = work.graph("train_in_parts", inputs, targets, part, updates, alone=True)
    close(graph.result, trained(lambda size: count), atol=1e-5, mistakes=mistakes)
    if graph.collectives > REPLICAS * updates:
        fail("Something crosses between the replicas in every part: only the update needs an all-reduce.")
    close(
        graph.alone,
        trained(lambda size: count, replicas=REPLICAS),
        atol=1e-5,
        mistakes={
            "The weights do not depend on what the replicas exchange.": trained(lambda size: count),
            "A replica contributes more than the gradient of its own share.": trained(lambda size: REPLICAS * count),
        },
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
    compare_training(work, updates=2)
