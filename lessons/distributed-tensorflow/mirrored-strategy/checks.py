"""Checks of "MirroredStrategy in depth": clipping what was added up, and one all-reduce for several tensors."""

from __future__ import annotations

import numpy as np

from runners.checks import Work, check, close, equal

REPLICAS = 4


def clip(gradient: np.ndarray, limit: float) -> np.ndarray:
    length = np.linalg.norm(gradient)
    return gradient * (limit / length) if length > limit else gradient


def compare_update(work: Work, gradients: list[np.ndarray], limit: float) -> None:
    """One step on four replicas, beside one device with the sum of the gradients."""
    weights = work.rng.normal(size=gradients[0].shape).astype("float32")
    total = np.sum(gradients, axis=0)
    want = work.reference("one_update", weights, [total], limit, topology="cpu")
    mistakes = {
        "Each replica clips its own gradient, and then the parts are added up.": sum(clip(g, limit) for g in gradients),
        "The clipped sum is applied once for each replica.": REPLICAS * clip(total, limit),
        "The mean of the gradients is clipped, not their sum.": clip(total / REPLICAS, limit),
        "The mean of the gradients is clipped and applied once for each replica.": REPLICAS
        * clip(total / REPLICAS, limit),
        "The clipped sum is averaged once too often.": clip(total, limit) / REPLICAS,
        "Nothing is clipped.": total,
    }
    close(
        work.call("one_update", weights, gradients, limit),
        [want[0]] * REPLICAS,
        rtol=1e-3,
        atol=1e-5,
        mistakes={text: [weights - step] * REPLICAS for text, step in mistakes.items()},
    )


def hidden_gradients(work: Work) -> list[np.ndarray]:
    size = int(work.rng.integers(3, 9))
    return [work.rng.normal(0.5, 1.0, size=size).astype("float32") for _ in range(REPLICAS)]


@check(
    "clip-the-sum",
    "A long sum is clipped",
    xp=15,
    hints=[
        "A replica has to see the sum before it can tell how long it is.",
        "What does `sgd.apply` do with the gradients of four replicas, when they are all the same?",
    ],
)
def long_sum(work: Work) -> None:
    gradients = hidden_gradients(work)
    length = float(np.linalg.norm(np.sum(gradients, axis=0)))
    compare_update(work, gradients, length * float(work.rng.uniform(0.1, 0.2)))


@check(
    "clip-the-sum",
    "Long gradients with a short sum are left alone",
    xp=10,
    hints=["Two replicas that pull in opposite directions can have long gradients and a short sum."],
)
def short_sum(work: Work) -> None:
    gradients = hidden_gradients(work)
    gradients[0] = gradients[0] * 10
    gradients[1] = -gradients[0] + gradients[1]
    length = float(np.linalg.norm(np.sum(gradients, axis=0)))
    compare_update(work, gradients, length * float(work.rng.uniform(1.05, 1.2)))


def hidden_tensors(work: Work) -> list[np.ndarray]:
    rng = work.rng
    shapes = [tuple(int(n) for n in rng.integers(2, 6, size=rank)) for rank in (2, 1, 3)]
    return [rng.normal(size=shape).astype("float32") for shape in shapes]


@check(
    "pack-tensors",
    "Each tensor is added up over the replicas",
    xp=10,
    hints=["`tf.reshape(tensor, [-1])` makes a vector of it, `tf.concat` puts vectors one after the other."],
)
def sums(work: Work) -> None:
    tensors = hidden_tensors(work)
    factor = REPLICAS * (REPLICAS + 1) // 2
    close(
        work.call("sums", *tensors),
        [tensor * factor for tensor in tensors],
        mistakes={
            "These are the tensors of replica 0: nothing was added up.": tensors,
            "These are the means over the replicas, not the sums.": [tensor * factor / REPLICAS for tensor in tensors],
        },
    )


@check(
    "pack-tensors",
    "There is one reduction in the graph",
    xp=15,
    hints=["`tf.split` takes a list of sizes and gives back the pieces."],
)
def one_collective(work: Work) -> None:
    tensors = hidden_tensors(work)
    graph = work.graph("sums", *tensors)
    close(graph.result, [tensor * 10 for tensor in tensors])
    equal(
        graph.count("AddN"),
        1,
        mistakes={
            "There is an all-reduce for each tensor.": 3,
            "There is no all-reduce in the graph: the replicas have not talked to each other.": 0,
        },
    )
