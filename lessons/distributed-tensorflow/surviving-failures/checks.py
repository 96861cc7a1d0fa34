"""Checks of "Surviving failures": workers that leave together, and training that a lost worker does not change."""

from __future__ import annotations

import numpy as np

from runners.checks import Work, check, close, equal


@check(
    "leave-together",
    "One notice is heard by all",
    xp=15,
    hints=[
        "What does a worker know by itself, and what has it to learn from the others?",
        "An all-reduce within `cluster.run` adds up numbers, and `warned` is a truth value: `tf.cast` makes it 0 or 1. "
        "What is the sum if nobody has been warned?",
    ],
)
def heard_by_all(work: Work) -> None:
    rng = work.rng
    for earliest in (1, 2):
        first = int(rng.integers(3, 6))
        second = first + int(rng.integers(2, 4))
        third = second + int(rng.integers(2, 4))
        steps = third + int(rng.integers(2, 5))
        own = [third, first, second] if earliest == 1 else [third, second, first]
        equal(
            work.per_task("train_until_warned", steps, own=own),
            [first - 1] * 3,
            show=True,
            mistakes={
                "Each worker leaves after its own notice, and the others would wait for it.": [
                    step - 1 for step in own
                ],
                "They leave only with the last notice, although the first is enough.": [third - 1] * 3,
                "They leave only with the second notice, although the first is enough.": [second - 1] * 3,
                "Nobody leaves.": [steps] * 3,
            },
        )


@check("leave-together", "Without a notice, nobody leaves", xp=5)
def no_notice(work: Work) -> None:
    steps = int(work.rng.integers(4, 9))
    equal(
        work.per_task("train_until_warned", steps, own=[steps + 1] * 3),
        [steps] * 3,
        mistakes={"They leave at once, although nobody has been warned.": [0] * 3},
    )


def as_layer(weights):
    return [weights[:-1, None], weights[-1:]]


def share_of_worker(number, workers):
    """Which examples of a batch a worker reads."""
    return slice(number, None, workers)


def shared_steps(own, targets, batch, rate, steps, weights=None, speed=None, *, read=share_of_worker, divisor=None):
    """Some steps of SGD with momentum in NumPy: the weights (the last is the bias) and the momentum.

    Each worker has inputs of its own. ``read`` gets the number of a worker and that of workers; ``divisor`` gets the
    size of a share; None: ``batch``.
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
    weights, _ = shared_steps([inputs], targets, batch, rate, range(steps))
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
    state = shared_steps([inputs], targets, batch, rate, range(saved))
    whole, _ = shared_steps([inputs], targets, batch, rate, range(steps))

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
