"""Checks of the capstone: a worker's plan of an epoch, a step with one exchange, a training that a failure spares."""

from __future__ import annotations

import ast
import itertools

import numpy as np

from runners.checks import Work, check, close, equal, fail, untouched

RATE = 0.5
"""Of ``sgd`` in "train-steps"."""
REPLICAS = 4
CLASSES = 3


# --- the plan of an epoch ------------------------------------------------------------------------------------------


def hidden_files(work: Work) -> tuple[list[int], int, int]:
    """Lengths of files, the number of workers, and a batch size."""
    workers = int(work.rng.integers(2, 4))
    lengths = [int(length) for length in work.rng.integers(2, 30, size=4 * workers + int(work.rng.integers(workers)))]
    return lengths, workers, int(work.rng.integers(4, 8))


def plans_of(work: Work, lengths: list[int], epoch: int, start: int, workers: int, size: int) -> list[np.ndarray]:
    """What each worker answers: whole numbers in rows of ``size``."""
    plans = []
    for worker in range(workers):
        plan = work.call("batches_of", lengths, epoch, start, worker, workers, size)
        if not isinstance(plan, np.ndarray) or plan.ndim != 2 or plan.shape[1] != size or plan.dtype.kind not in "iu":
            fail("batches_of has to return an array of whole numbers, with `size` columns.")
        plans.append(plan.astype(int))
    return plans


def shares_of(plans: list[np.ndarray], lengths: list[int]) -> list[list[int]]:
    """The records of each worker, complete and disjoint."""
    total = sum(lengths)
    shares = [plan[plan != -1].tolist() for plan in plans]
    read = [number for share in shares for number in share]
    if any(not 0 <= number < total for number in read):
        fail("A number of the plan is neither that of a record nor -1.")
    if repeated := len(read) - len(set(read)):
        fail("{count} records are read more than once. Do all workers have the same order of files?", count=repeated)
    if missing := total - len(set(read)):
        fail("{count} of {all} records are read by no worker.", count=missing, all=total)
    return shares


def deal_of(shares: list[list[int]], lengths: list[int]) -> list[tuple[int, ...]]:
    """The workers that read from each file."""
    first = np.cumsum([0, *lengths])
    return [
        tuple(worker for worker, share in enumerate(shares) if any(low <= number < high for number in share))
        for low, high in itertools.pairwise(first)
    ]


@check(
    "own-batches",
    "Each record once, each file with one worker",
    xp=10,
    hints=["All workers need the same order of files. What can it depend on?"],
)
def each_once(work: Work) -> None:
    lengths, workers, size = hidden_files(work)
    for epoch in (int(work.rng.integers(1, 50)), int(work.rng.integers(50, 99))):
        shares = shares_of(plans_of(work, lengths, epoch, 0, workers, size), lengths)
        if shared := sum(len(readers) > 1 for readers in deal_of(shares, lengths)):
            fail("{count} files are read by more than one worker.", count=shared)


@check(
    "own-batches",
    "As many batches for all, and no more than needed",
    xp=10,
    hints=["Each worker can compute the shares of all others. Which of them decides the number of batches?"],
)
def as_many(work: Work) -> None:
    for _ in range(3):
        lengths, workers, size = hidden_files(work)
        plans = plans_of(work, lengths, int(work.rng.integers(1, 99)), 0, workers, size)
        held = [len(share) for share in shares_of(plans, lengths)]
        equal(
            [len(plan) for plan in plans],
            [-(-max(held) // size)] * workers,
            mistakes={
                "The workers have different numbers of batches: those with fewer stop the others.": [
                    -(-own // size) for own in held
                ],
                "There are more batches than the largest share needs.": [-(-sum(lengths) // size)] * workers,
            },
        )


@check(
    "own-batches",
    "Other files in other epochs, and the same after a restart in the middle",
    xp=10,
    hints=["A generator with the number of the epoch as its seed gives the same order in every process."],
)
def restarted(work: Work) -> None:
    lengths, workers, size = hidden_files(work)
    first = int(work.rng.integers(1, 50))
    epochs = [plans_of(work, lengths, epoch, 0, workers, size) for epoch in range(first, first + 3)]
    deals = [deal_of(shares_of(plans, lengths), lengths) for plans in epochs]
    if deals[0] == deals[1] == deals[2]:
        fail("Each worker has the same files in every epoch.")
    start = int(work.rng.integers(1, len(epochs[2][0])))
    again = plans_of(work.fresh(), lengths, first + 2, start, workers, size)
    for plan, whole in zip(again, epochs[2], strict=True):
        equal(
            plan.tolist(),
            whole[start:].tolist(),
            mistakes={
                "After a restart, the plan begins with the first batch again.": whole.tolist(),
                "The plan begins in the wrong place: `start` counts batches.": whole.ravel()[start:].tolist(),
            },
        )


# --- a quiet step --------------------------------------------------------------------------------------------------


def classify(features, labels, weights, batch, *, divisor=None, unweighted=False, replicas=range(REPLICAS)):
    """Train as the exercise does, in NumPy: the weights, and what each replica has in ``totals``.

    ``divisor`` gets the weights of a share, ``replicas`` are those whose gradients count.
    """
    kernel, bias = np.zeros((features.shape[1], CLASSES)), np.zeros(CLASSES)
    rows = np.zeros((REPLICAS, 3))
    for start in range(0, len(labels), batch):
        steps = [np.zeros_like(kernel), np.zeros_like(bias)]
        for replica in range(REPLICAS):
            share = slice(start + replica, start + batch, REPLICAS)
            own = np.ones_like(weights[share]) if unweighted else weights[share]
            logits = features[share] @ kernel + bias
            odds = np.exp(logits - logits.max(axis=1, keepdims=True))
            odds /= odds.sum(axis=1, keepdims=True)
            slopes = (odds - np.eye(CLASSES)[labels[share]]) * own[:, None]
            slopes = slopes / (batch if divisor is None else divisor(own))
            if replica in replicas:
                steps[0] += features[share].T @ slopes
                steps[1] += slopes.sum(axis=0)
            each = -np.log(odds[np.arange(len(own)), labels[share]])
            right = logits.argmax(axis=1) == labels[share]
            rows[replica] += (own * each).sum(), (own * right).sum(), own.sum()
        kernel, bias = kernel - RATE * steps[0], bias - RATE * steps[1]
    return [kernel, bias], rows


def hidden_batches(work: Work):
    """Two or three batches with at least two examples for each replica; in the last, some are filler."""
    untouched(work, "train_steps", "strategy")
    rng = work.rng
    batch, steps = REPLICAS * int(rng.integers(2, 4)), int(rng.integers(2, 4))
    features = rng.normal(size=(batch * steps, 2)).astype("float32") + rng.uniform(0.5, 1, size=2).astype("float32")
    labels = rng.integers(0, CLASSES, size=batch * steps).astype("int32")
    weights = np.ones(batch * steps, "float32")
    weights[batch * steps - int(rng.integers(batch // 2 + 1, batch)) :] = 0
    return features, labels, weights, batch


@check(
    "quiet-step",
    "The weights are those of one device",
    xp=10,
    hints=["`sgd.apply` adds up the gradients of the replicas. By what must each replica's sum be divided?"],
)
def same_weights(work: Work) -> None:
    case = hidden_batches(work)
    want, _ = classify(*case)
    graph = work.graph("train_steps", *case, alone=True)
    got = graph.result[:2] if isinstance(graph.result, (list, tuple)) else graph.result
    close(
        got,
        want,
        atol=1e-5,
        mistakes={
            "The weights have not changed.": [np.zeros_like(part) for part in want],
            "Each replica divides by the size of its own share.": classify(*case, divisor=len)[0],
            "Each replica divides by the size of its own share, and filler counts.": classify(
                *case, divisor=len, unweighted=True
            )[0],
            "Filler counts: examples of weight 0 must not change anything.": classify(*case, unweighted=True)[0],
            "The losses are divided twice: by global_batch and by the number of replicas.": classify(
                *case, divisor=lambda own: REPLICAS * case[3]
            )[0],
        },
    )
    close(
        graph.alone[:2] if isinstance(graph.alone, (list, tuple)) else graph.alone,
        classify(*case, replicas=[0])[0],
        atol=1e-5,
        mistakes={"The weights do not depend on what the replicas exchange.": want},
    )


@check(
    "quiet-step",
    "Each replica keeps the totals of its own share",
    xp=10,
    hints=["What goes into `totals` is added up over the replicas when it is read."],
)
def own_totals(work: Work) -> None:
    case = hidden_batches(work)
    graph = work.graph("train_steps", *case)
    got = graph.result[2] if isinstance(graph.result, (list, tuple)) and len(graph.result) == 3 else None
    _, rows = classify(*case)
    divided = rows / [case[3], 1, 1]
    everybody = np.tile(rows.sum(axis=0), (REPLICAS, 1))
    close(
        got,
        rows,
        atol=1e-4,
        mistakes={
            "Each replica has the sums of all, so together they count everything four times.": everybody,
            "The loss is divided by global_batch: collect the sum.": divided,
            "Each replica has the sums of all, and the loss is divided.": np.tile(divided.sum(axis=0), (REPLICAS, 1)),
            "Nothing is collected.": np.zeros_like(rows),
        },
    )


@check(
    "quiet-step",
    "One all-reduce a step",
    xp=10,
    hints=["Which lines exchange numbers, besides `sgd.apply`?"],
)
def one_exchange(work: Work) -> None:
    case = hidden_batches(work)
    steps = len(case[1]) // case[3]
    graph = work.graph("train_steps", *case)
    close(graph.result[:2] if isinstance(graph.result, (list, tuple)) else graph.result, classify(*case)[0], atol=1e-5)
    if graph.collectives > REPLICAS * steps:
        fail(
            "The replicas exchange numbers {got} times in {steps} steps.",
            got=graph.collectives // REPLICAS,
            steps=steps,
        )
    if graph.count("While", "StatelessWhile"):
        fail("Write the step without a loop, so that its exchanges can be counted.")


# --- recovery ------------------------------------------------------------------------------------------------------


def descend(inputs, targets, rate, numbers, weights=None, speed=None, total=0.0):
    """Steps of SGD with momentum in NumPy: the weights (the last is the bias), the momentum, the sum of squares.

    ``numbers`` count through all epochs; ``total`` begins at zero in each.
    """
    steps, batch, width = inputs.shape[1:]
    weights = np.zeros(width + 1) if weights is None else weights
    speed = np.zeros_like(weights) if speed is None else speed
    for number in numbers:
        epoch, step = divmod(number, steps)
        x = np.hstack([inputs[epoch, step], np.ones((batch, 1))])
        errors = x @ weights - targets[epoch, step]
        total = (0.0 if step == 0 else total) + (errors**2).sum()
        speed = 0.9 * speed - rate * 2 * x.T @ errors / batch
        weights = weights + speed
    return weights, speed, total


def answer(inputs, state):
    """What ``train`` returns for a state after the last step."""
    weights, _, total = state
    return [weights[:-1, None], weights[-1:], total / (inputs.shape[1] * inputs.shape[2])]


def hidden_training(work: Work, steps: int, epochs: int = 2):
    shape = (epochs, steps, 2 * REPLICAS, int(work.rng.integers(2, 4)))
    inputs = work.rng.normal(size=shape).astype("float32")
    targets = 1 + work.rng.normal(size=shape[:3]).astype("float32")
    return inputs, targets, float(work.rng.uniform(0.03, 0.06))


@check("recover", "Without a failure", xp=10)
def undisturbed(work: Work) -> None:
    inputs, targets, rate = hidden_training(work, int(work.rng.integers(2, 4)))
    numbers = range(inputs.shape[0] * inputs.shape[1])
    close(
        work.call("train", f"whole-{work.rng.integers(10**9)}", inputs, targets, rate, 2),
        answer(inputs, descend(inputs, targets, rate, numbers)),
        atol=1e-5,
    )


@check(
    "recover",
    "A failure changes neither the weights nor the loss of the epoch",
    xp=30,
    hints=[
        "Four things have a state: the layer, the optimizer, the position and the total.",
        "All workers save, but only one of them into `folder`. From where do the others restore?",
        "After a restart, the loop begins in the middle, and the total must not begin at zero there.",
    ],
)
def failure(work: Work) -> None:
    rng = work.rng
    every = int(rng.integers(2, 4))
    steps = 2 * every + int(rng.integers(1, 3))
    saved = -(-(steps + 1) // every) * every + every * int(rng.integers(0, 2))  # in the second epoch
    saved = min(saved, (2 * steps - 2) // every * every)
    kill_at = saved + 1
    inputs, targets, rate = hidden_training(work, steps)
    folder = f"state-{rng.integers(10**9)}"
    # What comes later is not there yet, and what the first steps used is no longer there: nobody has all of it at once.
    later, gone = inputs.copy(), inputs.copy()
    flat = (2 * steps, *inputs.shape[2:])
    later.reshape(flat)[kill_at:] = rng.normal(size=flat)[kill_at:]
    gone.reshape(flat)[:saved] = rng.normal(size=flat)[:saved]
    work.call("train", folder, later, targets, rate, every, kill="worker 1", at_step=kill_at)

    got = work.call("train", folder, gone, targets, rate, every)

    numbers = range(2 * steps)
    weights, speed, total = descend(inputs, targets, rate, range(saved))

    def resumed(first, *state, data=gone):
        return answer(inputs, descend(data, targets, rate, range(first, 2 * steps), *state))

    close(
        got,
        answer(inputs, descend(inputs, targets, rate, numbers)),
        atol=1e-5,
        mistakes={
            "The second attempt begins from the first step: it restores nothing, or nothing was saved.": resumed(0),
            "The weights come back, but the optimizer has forgotten its momentum.": resumed(
                saved, weights, None, total
            ),
            "The loss is that of the steps after the failure only: the total belongs to the state.": resumed(
                saved, weights, speed, 0.0
            ),
            "Only the weights come back: neither the momentum nor the total.": resumed(saved, weights),
            "The state comes back, but the data begins from the start.": resumed(0, weights, speed),
            "Only the weights come back, and the data begins from the start.": resumed(0, weights),
            "This computes everything again from the data of the first attempt: restore the state instead.": resumed(
                0, data=later
            ),
        },
    )
    used = {node.attr for node in ast.walk(work.tree) if isinstance(node, ast.Attribute)}
    if not used & {"Checkpoint", "CheckpointManager"}:
        fail("Save the state with a tf.train.Checkpoint, and restore it from there.")
