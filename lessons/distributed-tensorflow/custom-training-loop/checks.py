"""Checks of "A custom training loop": one step on two replicas, one trace for all batches, and a whole checkpoint."""

from __future__ import annotations

import ast

import numpy as np

from runners.checks import Work, check, close, equal, fail, untouched

RATE = 0.5
"""Of ``sgd`` in the lesson."""
MOST_FILES = 50
"""Of a saved state; a checkpoint has three."""


def softmax_regression(features, labels, batch_size, divisor, replicas=(0, 1)):
    """Train as the exercise does, in NumPy: the losses of the steps, and the weights after them.

    ``divisor`` gives what one replica divides its losses by, ``replicas`` those whose gradients count.
    """
    kernel, bias = np.zeros((features.shape[1], 3)), np.zeros(3)
    losses = []
    for start in range(0, len(labels), batch_size):
        kernel_step, bias_step, loss = np.zeros_like(kernel), np.zeros_like(bias), 0.0
        for replica in replicas:
            share = slice(start + replica, start + batch_size, 2)
            logits = features[share] @ kernel + bias
            odds = np.exp(logits - logits.max(axis=1, keepdims=True))
            odds /= odds.sum(axis=1, keepdims=True)
            slopes = (odds - np.eye(3)[labels[share]]) / divisor(len(odds))
            kernel_step += features[share].T @ slopes
            bias_step += slopes.sum(axis=0)
            loss -= np.log(odds[np.arange(len(odds)), labels[share]]).sum() / divisor(len(odds))
        kernel -= RATE * kernel_step
        bias -= RATE * bias_step
        losses.append(loss)
    return losses, [kernel, bias]


def hidden_examples(work: Work) -> tuple[np.ndarray, np.ndarray, int]:
    untouched(work, "train_one_epoch")
    batch_size = int(work.rng.choice([5, 7]))  # odd: otherwise the part of replica 0 would be half of the loss
    count = 2 * batch_size + int(work.rng.integers(2, batch_size))
    features = work.rng.normal(size=(count, 2)).astype("float32")
    return features, work.rng.integers(0, 3, size=count).astype("int32"), batch_size


def trained(work: Work, examples: tuple, *, alone: bool = False) -> tuple[list, list, list]:
    """The losses and the weights of one epoch, and the weights that replica 0 reaches alone."""
    graph = work.graph("train_one_epoch", *examples, alone=alone)
    return graph.result[:-2], graph.result[-2:], (graph.alone or [])[-2:]


@check(
    "write-the-step",
    "The weights are those of one device",
    xp=15,
    hints=[
        "`optimizer.apply` adds up the gradients of the replicas. By what must each loss be divided?",
        "The gradients come from `tape.gradient(loss, classifier.trainable_variables)`, after the `with` block.",
    ],
)
def same_weights(work: Work) -> None:
    examples = hidden_examples(work)
    batch_size = examples[2]
    _, weights, alone = trained(work, examples, alone=True)

    def weights_with(divisor, **replicas):
        return softmax_regression(*examples, divisor, **replicas)[1]

    want = weights_with(lambda share: batch_size)
    halves = weights_with(lambda share: 2 * batch_size)
    close(
        weights,
        want,
        atol=1e-5,
        mistakes={
            "The weights have not changed: apply the gradients.": [np.zeros_like(weight) for weight in want],
            "Each replica divides by the size of its own share, so each step is too long.": weights_with(
                lambda share: share
            ),
            "Each share counts the same, however many examples it has.": weights_with(lambda share: 2 * share),
            "The losses are added up, but not divided by batch_size.": weights_with(lambda share: 1),
            "The losses are divided twice: by batch_size and by the number of replicas.": halves,
        },
    )
    averaged = weights_with(lambda share: 2 * batch_size, replicas=[0])  # by a step that adds up once more
    if all(np.allclose(*pair, atol=1e-5) for pair in zip(alone, averaged, strict=True)):
        return
    close(
        alone,
        weights_with(lambda share: batch_size, replicas=[0]),
        atol=1e-5,
        mistakes={
            "The weights do not depend on what the replicas exchange.": want,
            "A replica contributes more than the gradient of its own share.": halves,
        },
    )


@check(
    "write-the-step",
    "One loss for the whole batch",
    xp=15,
    hints=["Each replica returns its part of the mean. What makes one number of the parts?"],
)
def one_loss(work: Work) -> None:
    examples = hidden_examples(work)
    losses, weights, _ = trained(work, examples)
    want, right_weights = softmax_regression(*examples, lambda share: examples[2])
    first = -(-examples[2] // 2) / examples[2]
    if any(np.shape(loss) != () for loss in losses) or len(losses) != len(want):
        fail("There has to be one loss for each of the {count} batches.", count=len(want))
    if not all(np.allclose(*pair, atol=1e-5) for pair in zip(weights, right_weights, strict=True)):
        close(
            losses,
            want,
            mistakes={"The step is wrong, and so is the loss: look at the message of the first check.": losses},
        )
    close(
        losses[:1],
        want[:1],
        mistakes={
            "This is the mean of the parts: the parts of a mean have to be added up.": [want[0] / 2],
            "This is the part of replica 0 only.": [want[0] * first],
            "This is too large by the number of replicas: each replica returns a mean of its own share.": [want[0] * 2],
        },
    )
    close(losses, want)


def momentum_steps(features, targets, rate, steps, weights=None, speed=None):
    """Train as the exercise does, in NumPy: the weights (the last one is the bias) and the momentum."""
    inputs = np.hstack([features, np.ones((len(features), 1))])
    weights = np.zeros(inputs.shape[1]) if weights is None else weights
    speed = np.zeros_like(weights) if speed is None else speed
    for _ in range(steps):
        slope = 2 * inputs.T @ (inputs @ weights - targets) / len(targets)
        speed = 0.9 * speed - rate * slope
        weights = weights + speed
    return weights, speed


def as_layer(weights):
    return [weights[:-1, None], weights[-1:]]


def with_rates(features, targets, batch_size, rates):
    """Train as the exercise does, in NumPy: the weights (the last one is the bias)."""
    inputs = np.hstack([features, np.ones((len(features), 1))])
    weights = np.zeros(inputs.shape[1])
    for step, rate in enumerate(rates):
        here = slice(step * batch_size, (step + 1) * batch_size)
        weights = weights - rate * 2 * inputs[here].T @ (inputs[here] @ weights - targets[here]) / batch_size
    return weights


def counted_training(work: Work) -> tuple[object, object, tuple, list[float]]:
    """The weights and the traces of a submission, the hidden data and its rates.

    The rates are three, and the batches have two sizes, in four pairs: each usual mistake has its own number of traces.
    """
    untouched(work, "train_and_count")
    rng, batch_size = work.rng, int(work.rng.integers(4, 8))
    first, second, third = (float(rate) for rate in rng.uniform([0.2, 0.1, 0.03], [0.3, 0.15, 0.05]))
    rates = [first] * int(rng.integers(2, 5)) + [second, third, third]
    count = (len(rates) - 1) * batch_size + int(rng.integers(2, batch_size))
    data = rng.normal(size=(count, 2)).astype("float32"), rng.normal(size=count).astype("float32"), batch_size
    weights, traces = work.call("train_and_count", *data, rates)
    return weights, traces, data, rates


@check("trace-once", "The weights are right", xp=5)
def weights_with_rates(work: Work) -> None:
    weights, _, data, rates = counted_training(work)
    want = as_layer(with_rates(*data, rates))
    close(
        weights,
        want,
        atol=1e-5,
        mistakes={
            "Every step has the first rate: it has become a constant of the graph.": as_layer(
                with_rates(*data, [rates[0]] * len(rates))
            ),
            "The weights have not changed.": [np.zeros_like(weight) for weight in want],
        },
    )


@check(
    "trace-once",
    "All batches and rates share one trace",
    xp=15,
    hints=[
        "Two things differ between the calls: the number of examples, and the rate. What does a signature say of each?",
        "`input_signature` is a list with an entry for each argument. A scalar is a `tf.TensorSpec([], tf.float32)`.",
    ],
)
def one_trace(work: Work) -> None:
    _, traces, _, rates = counted_training(work)
    equal(
        traces,
        1.0,
        mistakes={
            "The short batch is traced by itself: say in advance that the number of examples is open.": 2.0,
            "The step is traced again for every new rate.": 3.0,
            "The step is traced again for every new rate and for the short batch.": 4.0,
            "Python runs the step every time: it is not in a tf.function.": float(len(rates)),
            "The step never runs `on_replica`.": 0.0,
        },
    )


def carried(work: Work, folder: str, target: str) -> Work:
    """The submission in a new sandbox, which has the files of a folder and nothing else of what happened before."""
    found = work.call("tf.io.gfile.glob", [folder + "/*" * depth for depth in (1, 2, 3)])
    if not isinstance(found, list) or not all(
        isinstance(path, str) and path.startswith(f"{folder}/") for path in found
    ):
        fail("`begin` has saved nothing in `folder`.")
    fresh = work.fresh()
    for path in found[:MOST_FILES]:
        parent, _, name = path.removeprefix(folder).rpartition("/")
        fresh.call("tf.io.gfile.makedirs", target + parent)
        if work.call("tf.io.gfile.isdir", path) is not True:
            fresh.call("np.ndarray.tofile", work.call("np.fromfile", path, "uint8"), f"{target}{parent}/{name}")
    return fresh


@check(
    "continue-training",
    "A break changes nothing",
    xp=25,
    hints=["Which object remembers the momentum?", "Give both objects to `tf.train.Checkpoint`, before and after."],
)
def nothing_changes(work: Work) -> None:
    rng = work.rng
    count, width = int(rng.integers(6, 12)), int(rng.integers(2, 4))
    rate, cut, rest = float(rng.uniform(0.02, 0.06)), int(rng.integers(4, 7)), int(rng.integers(4, 7))
    folders = [f"state-{number}" for number in rng.choice(10**9, size=4, replace=False)]
    histories = [
        (rng.normal(size=(count, width)).astype("float32"), rng.normal(size=count).astype("float32"), rate)
        for _ in range(4)
    ]
    first, second, later, again = histories
    for folder, training in zip(folders, (first, second), strict=False):
        got = work.call("begin", folder, *training, cut)
        close(got, as_layer(momentum_steps(*training, cut)[0]), atol=1e-5)
        if work.call("tf.io.gfile.exists", folder) is not True:
            fail("`begin` has saved nothing in `folder`.")
    # The two folders change places: what a program remembers otherwise belongs to the other training.
    for old, new in ((0, 2), (1, 0), (2, 1)):
        work.call("tf.io.gfile.rename", folders[old], folders[new])
    restarted = carried(work, folders[0], folders[3])

    weights, speed = momentum_steps(*second, cut)

    def resumed(*state):
        return as_layer(momentum_steps(*later, rest, *state)[0])

    close(
        work.call("go_on", folders[0], *later, rest),
        resumed(weights, speed),
        atol=1e-5,
        mistakes={
            "The training begins from the first weights again: restore the checkpoint.": resumed(),
            "The weights come back, but the optimizer has forgotten its momentum.": resumed(weights),
            "The state was kept in memory, where the end of a program erases it: restore it from `folder`.": resumed(
                *momentum_steps(*first, cut)
            ),
            "This takes all steps again, and with other examples than before: restore the state instead.": as_layer(
                momentum_steps(*later, cut + rest)[0]
            ),
        },
    )
    # A program that is started again has the files and nothing else.
    close(
        restarted.call("go_on", folders[3], *again, rest),
        as_layer(momentum_steps(*again, rest, weights, speed)[0]),
        atol=1e-5,
    )
    used = {node.attr for node in ast.walk(work.tree) if isinstance(node, ast.Attribute)}
    if not used & {"Checkpoint", "CheckpointManager"}:
        fail("Save the state with a tf.train.Checkpoint, and restore it from there.")
