"""Checks of "Distribution strategies": variables in the scope, a training that learns, and a plan for a batch."""

from __future__ import annotations

import ast
import math

import numpy as np

from runners.checks import Work, check, close, equal, fail, untouched


def labelled_points(work: Work, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Points in a square; the label is whether both coordinates have the same sign, after a hidden turn."""
    points = work.rng.uniform(-1, 1, size=(count, 2)).astype("float32")
    labels = (points[:, 0] * points[:, 1] > 0) ^ bool(work.rng.integers(2))
    return points, labels.astype("int32")


def loss_of(weights: object, points: np.ndarray, labels: np.ndarray) -> float:
    """The mean cross-entropy of the lesson's network, computed here from its weights."""
    shapes = [(2, 32), (32,), (32, 2), (2,)]
    if (
        not isinstance(weights, list)
        or not all(isinstance(weight, np.ndarray) and weight.dtype.kind == "f" for weight in weights)
        or [weight.shape for weight in weights] != shapes
    ):
        fail("compiled_model has to return a model that build_model has made.")
    kernel, bias, last_kernel, last_bias = (np.asarray(weight, "float64") for weight in weights)
    logits = np.maximum(points @ kernel + bias, 0.0) @ last_kernel + last_bias
    logits -= logits.max(axis=1, keepdims=True)
    odds = np.log(np.exp(logits).sum(axis=1)) - logits[np.arange(len(labels)), labels]
    return float(odds.mean())


@check(
    "build-in-scope",
    "Every replica has the variables, and the loss halves",
    xp=15,
    hints=[
        "Which two lines of the function create variables?",
        "The loss of an untrained model is about 0.69. "
        "The lesson's own training uses a rate of 0.1 and a momentum of 0.9.",
    ],
)
def learns(work: Work) -> None:
    untouched(work, "train_everywhere")
    points, labels = labelled_points(work, int(work.rng.integers(13, 17)) * 64)
    weights, devices = work.call("train_everywhere", points, labels, 6)
    if alone := sum(places != ["CPU:0", "CPU:1", "CPU:2", "CPU:3"] for places in devices):
        fail(
            "{alone} of {all} variables live on one device: build and compile the model in the scope of the strategy.",
            alone=alone,
            all=len(devices),
        )
    loss = loss_of(weights, points, labels)
    if not loss < math.log(2) / 2:
        fail("The loss of the trained weights is {loss}, which is not less than half of 0.693.", loss=round(loss, 3))


@check("build-in-scope", "The scope is entered with `with`", xp=5, hints=["`with strategy.scope():`"])
def scope_is_entered(work: Work) -> None:
    nodes = list(ast.walk(work.tree))
    scope = any(isinstance(node, ast.Attribute) and node.attr == "scope" for node in nodes)
    if not (scope and any(isinstance(node, ast.With) for node in nodes)):
        fail("There is no `with` block that enters the scope of the strategy.")


def hidden_plan(work: Work, left_over: float = 0.5) -> tuple[int, int, int, int, float]:
    """Arguments of ``plan``; in the last step of an epoch, that share of a global batch is left over."""
    replicas = int(work.rng.integers(2, 65))
    batch_per_replica = int(work.rng.integers(3, 130))
    steps = int(work.rng.integers(3, 40))
    rest = max(int(left_over * replicas * batch_per_replica), left_over > 0)
    examples = replicas * batch_per_replica * steps + rest
    batches = batch_per_replica, replicas * batch_per_replica
    bases = [base for base in range(8, 257) if all(abs(base / batch - 1) > 0.1 for batch in batches)]
    return (
        examples,
        replicas,
        batch_per_replica,
        int(work.rng.choice(bases)),  # as large as one of the batches, mistakes would not show
        float(work.rng.uniform(0.01, 0.5)),
    )


def planned(work: Work, arguments: tuple[int, int, int, int, float]) -> tuple[object, object, object]:
    result = work.call("plan", *arguments)
    if not isinstance(result, (list, tuple)) or len(result) != 3:
        fail("plan has to return three numbers: the global batch, the steps and the rate.")
    return result[0], result[1], result[2]


@check(
    "plan-the-run", "The global batch", xp=5, hints=["All the examples that one update sees, on all replicas together."]
)
def global_batch(work: Work) -> None:
    arguments = hidden_plan(work)
    got, _, _ = planned(work, arguments)
    equal(got, arguments[1] * arguments[2], mistakes={"This is the batch of one replica.": arguments[2]})


@check("plan-the-run", "The steps of an epoch", xp=5, hints=["What becomes of the examples that are left over?"])
def steps_per_epoch(work: Work) -> None:
    for left_over in (float(work.rng.uniform(0.01, 0.4)), float(work.rng.uniform(0.6, 0.9)), 0.0):
        arguments = hidden_plan(work, left_over)
        examples, replicas, batch_per_replica, _, _ = arguments
        exact = examples / (replicas * batch_per_replica)
        _, got, _ = planned(work, arguments)
        equal(
            got,
            math.ceil(exact),
            mistakes={
                "The last, short batch is a step, too.": math.floor(exact),
                "The number of steps has to be whole.": exact,
                "These are the steps of one replica alone.": math.ceil(examples / batch_per_replica),
            },
        )


@check("plan-the-run", "The learning rate", xp=5, hints=["By which factor has the batch grown?"])
def linear_rule(work: Work) -> None:
    arguments = hidden_plan(work)
    _, replicas, batch_per_replica, base_batch, base_rate = arguments
    _, _, got = planned(work, arguments)
    close(
        got,
        base_rate * replicas * batch_per_replica / base_batch,
        mistakes={
            "The rate grows with the batch, not with the number of replicas.": base_rate * replicas,
            "This is the rate of the old batch.": base_rate,
        },
    )
