"""Checks of "Surviving failures": data of a step, and training that neither a failure nor a lost worker changes."""

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


def share_of_worker(number, workers):
    """Which examples of a batch a worker reads."""
    return slice(number, None, workers)


def shared_steps(own, targets, batch, rate, steps, weights=None, speed=None, *, read=share_of_worker, divisor=None):
    """The same as ``momentum_steps`` by several workers, each with inputs of its own.

    ``read`` gets the number of a worker and that of workers; ``divisor`` gets the size of a share; None: ``batch``.
    """
    own = [np.hstack([inputs, np.ones((len(inputs), 1))]) for inputs in own]
    weights = np.zeros(own[0].shape[1]) if weights is None else weights
    speed = np.zeros_like(weights) if speed is None else speed
    for step in steps:
        slope = np.zeros_like(weights)
        for number, inputs in enumerate(own):
            here = np.arange(step * batch, (step + 1) * batch)[read(number, len(own))]
            x, y = inputs[here], targets[here]
            slope += 2 * x.T @ (x @ weights - y) / (divisor(len(here)) if divisor else batch)
        speed = 0.9 * speed - rate * slope
        weights = weights + speed
    return weights, speed


def inputs_of_workers(work: Work, inputs: np.ndarray, batch: int, left: list[int], first: int = 0) -> list[np.ndarray]:
    """For each of three workers its inputs: only its own share can be trusted, from the step ``first`` on."""
    own = []
    for worker in range(3):
        given = work.rng.normal(size=inputs.shape).astype("float32")
        if worker in left:
            for step in range(first, len(inputs) // batch):
                here = np.arange(step * batch, (step + 1) * batch)[share_of_worker(left.index(worker), len(left))]
                given[here] = inputs[here]
        own.append(given)
    return own


def hidden_training(work: Work, batch: int, steps: int) -> tuple[np.ndarray, np.ndarray, float]:
    """Inputs, targets and a learning rate."""
    rng = work.rng
    inputs = rng.normal(size=(steps * batch, int(rng.integers(2, 5)))).astype("float32")
    return inputs, rng.normal(size=steps * batch).astype("float32"), float(rng.uniform(0.06, 0.1))


@check("go-on-with-two", "Three workers", xp=10)
def three_workers(work: Work) -> None:
    batch, steps = 3 * int(work.rng.integers(3, 6)), int(work.rng.integers(3, 5))
    inputs, targets, rate = hidden_training(work, batch, steps)
    own = inputs_of_workers(work, inputs, batch, [0, 1, 2])
    folder = f"three-{work.rng.integers(10**9)}"
    weights, _ = momentum_steps(inputs, targets, batch, rate, range(steps))
    alike = [
        as_layer(shared_steps(own, targets, batch, rate, range(steps), read=lambda number, workers: slice(None))[0])
    ] * 3
    close(
        work.per_task("train", folder, [0, 1, 2], batch, rate, steps + 1, targets, own=own),
        [as_layer(weights)] * 3,
        atol=1e-5,
        mistakes={"Each worker reads the whole batch.": alike},
    )


@check(
    "go-on-with-two",
    "One is lost, and two go on",
    xp=30,
    hints=[
        "Which numbers of your code are wrong once there are two workers?",
        "The sum of all losses of the global batch is divided by its size. How many workers share it doesn't matter.",
        "Both of them restore from `folder`.",
    ],
)
def two_go_on(work: Work) -> None:
    rng = work.rng
    batch = int(rng.choice([3, 9]))  # three divides it, two does not, and the two shares differ much
    lost, every = int(rng.integers(1, 3)), int(rng.integers(2, 4))
    left = [worker for worker in range(3) if worker != lost]
    saved = every * int(rng.integers(1, 3))
    kill_at = saved + 1
    steps = kill_at + int(rng.integers(1, 3))
    inputs, targets, rate = hidden_training(work, batch, steps)
    folder = f"fewer-{rng.integers(10**9)}"
    later = inputs.copy()  # what comes later is not there yet
    later[kill_at * batch :] = rng.normal(size=later[kill_at * batch :].shape)
    work.call("train", folder, [0, 1, 2], batch, rate, every, targets, later, kill=f"worker {lost}", at_step=kill_at)

    own = inputs_of_workers(work, inputs, batch, left, saved)
    got = work.per_task("train", folder, left, batch, rate, every, targets, own=own)

    of_the_left = [own[worker] for worker in left]
    state = momentum_steps(inputs, targets, batch, rate, range(saved))
    whole, _ = momentum_steps(inputs, targets, batch, rate, range(steps))

    def ended(first, *begin, **mistake):
        end, _ = shared_steps(of_the_left, targets, batch, rate, range(first, steps), *begin, **mistake)
        return [as_layer(end)] * 2

    def old_share(number, workers):
        return slice(left[number], None, 3)

    close(
        [got[worker] for worker in left],
        [as_layer(whole)] * 2,
        atol=1e-5,
        mistakes={
            "The two begin from the first step: they restore nothing.": ended(0),
            "The loss is still divided as if there were three workers.": ended(
                saved, *state, divisor=lambda size: 3 * size
            ),
            "Each worker divides by the size of its share and by the number of workers, and the shares differ.": ended(
                saved, *state, divisor=lambda size: 2 * size
            ),
            "The gradients of both are added, but each worker divides by the size of its share.": ended(
                saved, *state, divisor=lambda size: size
            ),
            "The share of the lost worker is not read: the others keep their numbers and shares.": ended(
                saved, *state, read=old_share
            ),
            "The weights come back, but the optimizer has forgotten its momentum.": ended(saved, state[0]),
        },
    )
