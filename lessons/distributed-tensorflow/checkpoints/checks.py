"""Checks of "Checkpoints": data of a step, and training that a failure does not change."""

from __future__ import annotations

import ast

import numpy as np

from runners.checks import Work, check, close, equal, fail


def hidden_sizes(work: Work) -> tuple[int, int]:
    size = int(work.rng.integers(3, 7))
    return size * int(work.rng.integers(3, 6)), size


def batch_of(work: Work, step: int, count: int, size: int) -> list[int]:
    batch = work.call("batch_of", step, count, size)
    if isinstance(batch, list) and all(type(number) is int for number in batch):
        batch = np.array(batch, dtype=object)
    if not isinstance(batch, np.ndarray) or batch.shape != (size,) or batch.dtype.kind not in "iuO":
        fail("batch_of has to return {size} whole numbers.", size=size)
    return [int(number) for number in np.asarray(batch)]


@check(
    "batch-of-step",
    "Every epoch shows each number once",
    xp=10,
    hints=["In which epoch is a step, and which batch of that epoch is it? `divmod` answers both."],
)
def each_once(work: Work) -> None:
    count, size = hidden_sizes(work)
    steps = count // size
    for epoch in (0, int(work.rng.integers(1, 4))):
        asked = [int(step) for step in epoch * steps + work.rng.permutation(steps)]
        seen = [number for step in asked for number in batch_of(work, step, count, size)]
        if repeated := len(seen) - len(set(seen)):
            fail("{count} numbers come more than once in an epoch, and others never.", count=repeated)
        equal(sorted(seen), list(range(count)))


@check(
    "batch-of-step",
    "Another process says the same",
    xp=5,
    hints=["What does a `shuffle` without a seed do in a new process?"],
)
def repeatable(work: Work) -> None:
    count, size = hidden_sizes(work)
    steps = [int(step) for step in work.rng.integers(0, 4 * count // size, size=3)]
    here = [batch_of(work, step, count, size) for step in steps]
    there = work.fresh()
    batch_of(there, 0, count, size)  # what was asked before must not matter
    if here != [batch_of(there, step, count, size) for step in steps]:
        fail("The batch of a step is another one in a new process.")


@check("batch-of-step", "Each epoch has its own order", xp=5, hints=["What in your function depends on the epoch?"])
def own_order(work: Work) -> None:
    size, steps = int(work.rng.integers(5, 8)), 4
    count = steps * size
    epochs = [
        [batch_of(work, epoch * steps + step, count, size) for step in range(steps)]
        for epoch in (0, *(int(epoch) for epoch in work.rng.choice(range(1, 9), size=2, replace=False)))
    ]
    orders = [[number for batch in batches for number in batch] for batches in epochs]
    for order in orders:
        equal(sorted(order), list(range(count)))
        if np.bincount(np.diff(order) % count).max() > count // 2:
            fail("The numbers of an epoch follow a pattern, such as their natural order: shuffle them.")
    if len({tuple(order) for order in orders}) < len(orders):
        fail("Two epochs have the same order.")
    if len({frozenset(map(frozenset, batches)) for batches in epochs}) < len(epochs):
        fail("Two epochs have the same batches: shuffle the numbers, not the batches.")


def momentum_steps(inputs, targets, batch, rate, steps, weights=None, speed=None):
    """Some steps of SGD with momentum in NumPy: the weights (the last is the bias) and the momentum."""
    inputs = np.hstack([inputs, np.ones((len(inputs), 1))])
    weights = np.zeros(inputs.shape[1]) if weights is None else weights
    speed = np.zeros_like(weights) if speed is None else speed
    for step in steps:
        x, y = inputs[step * batch : (step + 1) * batch], targets[step * batch : (step + 1) * batch]
        speed = 0.9 * speed - rate * 2 * x.T @ (x @ weights - y) / batch
        weights = weights + speed
    return weights, speed


def apart(inputs, targets, batch, rate, steps, first, weights, speed):
    """The weights of the chief if only it goes on after ``first`` steps, and the other worker begins again.

    Each computes the gradient of its half of another batch, with weights of its own, and both apply the sum. The chief
    has empty batches at the end, until the other one has made all steps.
    """
    inputs = np.hstack([inputs, np.ones((len(inputs), 1))])
    states = [(weights, speed), (np.zeros_like(weights), np.zeros_like(weights))]
    for step in range(steps):
        slope = np.zeros_like(weights)
        for (own, _), begin in zip(states, ((first + step) * batch, step * batch + batch // 2), strict=True):
            x, y = inputs[begin : begin + batch // 2], targets[begin : begin + batch // 2]
            slope += 2 * x.T @ (x @ own - y) / batch
        speeds = [0.9 * speed - rate * slope for _, speed in states]
        states = [(own + speed, speed) for (own, _), speed in zip(states, speeds, strict=True)]
    return states[0][0]


def as_layer(weights):
    return [weights[:-1, None], weights[-1:]]


@check("resume-training", "Without a failure", xp=10)
def undisturbed(work: Work) -> None:
    rng, batch = work.rng, 4
    steps = int(rng.integers(3, 5))
    inputs = rng.normal(size=(steps * batch, 3)).astype("float32")
    targets, rate = rng.normal(size=steps * batch).astype("float32"), float(rng.uniform(0.02, 0.06))
    weights, _ = momentum_steps(inputs, targets, batch, rate, range(steps))
    close(
        work.call("train", f"whole-{rng.integers(10**9)}", inputs, targets, batch, rate, 2),
        as_layer(weights),
        atol=1e-5,
    )


@check(
    "resume-training",
    "A failure changes nothing",
    xp=30,
    hints=[
        "What else has a state, besides the weights?",
        "All workers save, but only one of them into `folder`. From where do the others restore?",
        "The second attempt has to begin in the middle of the data.",
    ],
)
def failure(work: Work) -> None:
    rng, batch = work.rng, 4
    every = int(rng.integers(2, 4))
    saved = every * int(rng.integers(1, 3))
    kill_at = saved + 1
    steps = kill_at + int(rng.integers(1, 3))
    inputs = rng.normal(size=(steps * batch, int(rng.integers(2, 5)))).astype("float32")
    targets, rate = rng.normal(size=steps * batch).astype("float32"), float(rng.uniform(0.02, 0.06))
    folder = f"state-{rng.integers(10**9)}"
    # What comes later is not there yet, and what the first steps used is no longer there: nobody has all of it at once.
    later, gone = inputs.copy(), inputs.copy()
    later[kill_at * batch :] = rng.normal(size=later[kill_at * batch :].shape)
    gone[: saved * batch] = rng.normal(size=gone[: saved * batch].shape)
    work.call("train", folder, later, targets, batch, rate, every, kill="worker 1", at_step=kill_at)

    got = work.call("train", folder, gone, targets, batch, rate, every)

    whole, _ = momentum_steps(inputs, targets, batch, rate, range(steps))
    weights, speed = momentum_steps(inputs, targets, batch, rate, range(saved))

    def resumed(data, first, *state):
        return as_layer(momentum_steps(data, targets, batch, rate, range(first, steps), *state)[0])

    close(
        got,
        as_layer(whole),
        atol=1e-5,
        mistakes={
            "The second attempt begins from the first step: it restores nothing, or nothing was saved.": resumed(
                gone, 0
            ),
            "The weights come back, but the optimizer has forgotten its momentum.": resumed(gone, saved, weights),
            "Only the chief goes on. The other worker restores nothing and begins from the first step.": as_layer(
                apart(gone, targets, batch, rate, steps, saved, weights, speed)
            ),
            "The state comes back, but the data begins from the start.": resumed(gone, 0, weights, speed),
            "Only the weights come back, and the data begins from the start.": resumed(gone, 0, weights),
            "This computes everything again from the data of the first attempt: restore the state instead.": resumed(
                later, 0
            ),
        },
    )
    used = {node.attr for node in ast.walk(work.tree) if isinstance(node, ast.Attribute)}
    if not used & {"Checkpoint", "CheckpointManager"}:
        fail("Save the state with a tf.train.Checkpoint, and restore it from there.")
