"""Checks of "A custom training loop": a step on two replicas is one step, and a checkpoint forgets nothing."""

from __future__ import annotations

import ast

import numpy as np

from runners.checks import Work, check, close, fail


def softmax_regression(features, labels, batch_size, rate, divisor):
    """Train as the exercise does, in NumPy; ``divisor`` gives what one replica divides its losses by."""
    kernel = np.zeros((features.shape[1], 3))
    bias = np.zeros(3)
    for start in range(0, len(labels), batch_size):
        kernel_step, bias_step = np.zeros_like(kernel), np.zeros_like(bias)
        batch = np.arange(start, min(start + batch_size, len(labels)))
        for share in np.split(batch, [-(-len(batch) // 2)]):
            if not len(share):
                continue
            logits = features[share] @ kernel + bias
            odds = np.exp(logits - logits.max(axis=1, keepdims=True))
            slopes = odds / odds.sum(axis=1, keepdims=True) - np.eye(3)[labels[share]]
            kernel_step += features[share].T @ slopes / divisor(len(share))
            bias_step += slopes.sum(axis=0) / divisor(len(share))
        kernel -= rate * kernel_step
        bias -= rate * bias_step
    return [kernel, bias]


def hidden_examples(work: Work) -> None:
    batch_size = int(work.rng.integers(4, 8))
    count = 2 * batch_size + int(work.rng.integers(2, batch_size))
    features = work.rng.normal(size=(count, int(work.rng.integers(2, 5)))).astype("float32")
    labels = work.rng.integers(0, 3, size=count).astype("int32")
    return features, labels, batch_size, float(work.rng.uniform(0.2, 0.6))


def trained(work: Work, examples: tuple) -> tuple[object, object]:
    """The losses and the weights of one epoch."""
    result = work.call("train_one_epoch", *examples)
    if not isinstance(result, (list, tuple)) or len(result) != 2:
        fail("train_one_epoch has to return two things: the losses and the weights.")
    return result[0], result[1]


@check(
    "write-the-step",
    "The weights are those of one device",
    xp=15,
    hints=[
        "`optimizer.apply` adds up the gradients of the replicas. By what must each loss be divided?",
        "The gradients come from `tape.gradient(loss, layer.trainable_variables)`, after the `with` block.",
    ],
)
def same_weights(work: Work) -> None:
    examples = hidden_examples(work)
    batch_size = examples[2]
    _, weights = trained(work, examples)
    _, want = work.reference("train_one_epoch", *examples, topology="cpu")
    close(
        weights,
        want,
        mistakes={
            "The weights have not changed: apply the gradients.": [np.zeros_like(weight) for weight in want],
            "Each replica divides by the size of its own share, so each step is too long.": softmax_regression(
                *examples, divisor=lambda share: share
            ),
            "Each share counts the same, however many examples it has.": softmax_regression(
                *examples, divisor=lambda share: 2 * share
            ),
            "The losses are added up, but not divided by batch_size.": softmax_regression(
                *examples, divisor=lambda share: 1
            ),
            "The losses are divided twice: by batch_size and by the number of replicas.": softmax_regression(
                *examples, divisor=lambda share: 2 * batch_size
            ),
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
    losses, _ = trained(work, examples)
    want, _ = work.reference("train_one_epoch", *examples, topology="cpu")
    first = -(-examples[2] // 2) / examples[2]
    if not isinstance(losses, (list, np.ndarray)) or len(losses) != len(want):
        fail("There has to be one loss for each of the {count} batches.", count=len(want))
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


def momentum_steps(features, targets, rate, steps, cut, keeps_weights):
    """Train as the exercise does, in NumPy, with a momentum that is lost after step ``cut``."""
    inputs = np.hstack([features, np.ones((len(features), 1))])
    weights = np.zeros(inputs.shape[1])
    speed = np.zeros_like(weights)
    for step in range(steps):
        if step == cut:
            speed = np.zeros_like(weights)
            weights = weights if keeps_weights else np.zeros_like(weights)
        slope = 2 * inputs.T @ (inputs @ weights - targets) / len(targets)
        speed = 0.9 * speed - rate * slope
        weights = weights + speed
    return [weights[:-1, None], weights[-1:]]


@check(
    "continue-training",
    "A break changes nothing",
    xp=20,
    hints=["Which object remembers the momentum?", "Give both objects to `tf.train.Checkpoint`, before and after."],
)
def nothing_changes(work: Work) -> None:
    count = int(work.rng.integers(6, 12))
    features = work.rng.normal(size=(count, int(work.rng.integers(2, 4)))).astype("float32")
    targets = work.rng.normal(size=count).astype("float32")
    rate, steps = float(work.rng.uniform(0.02, 0.06)), int(work.rng.integers(6, 10))
    cut = int(work.rng.integers(2, steps - 2))
    close(
        work.call("train_in_two", features, targets, rate, steps, cut),
        work.reference("train_in_two", features, targets, rate, steps, 0, topology="cpu"),
        mistakes={
            "The training begins from the first weights again: restore the checkpoint.": momentum_steps(
                features, targets, rate, steps, cut, keeps_weights=False
            ),
            "The weights come back, but the optimizer has forgotten its momentum.": momentum_steps(
                features, targets, rate, steps, cut, keeps_weights=True
            ),
        },
    )


@check("continue-training", "The state goes through a checkpoint", xp=5)
def through_a_checkpoint(work: Work) -> None:
    used = {node.attr for node in ast.walk(work.tree) if isinstance(node, ast.Attribute)}
    if not (used & {"Checkpoint", "CheckpointManager"} and used & {"restore", "restore_or_initialize", "read"}):
        fail("Save the state with a tf.train.Checkpoint, and restore it from there.")
