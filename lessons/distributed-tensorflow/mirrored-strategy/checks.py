"""Checks of "MirroredStrategy in depth": statistics and clipping of the whole batch, and one all-reduce for several."""

from __future__ import annotations

import numpy as np

from runners.checks import Graph, PlainData, Work, check, close, equal, fail, untouched

REPLICAS = 4


def normalize(share: np.ndarray) -> np.ndarray:
    return (share - share.mean(axis=0)) / np.sqrt(share.var(axis=0) + 1e-3)


def hidden_step(work: Work) -> tuple[np.ndarray, Graph, list[PlainData]]:
    """A hidden batch whose shares lie far apart, the graph of a step with it, the outputs and the moving means."""
    untouched(work, "normalize_batch")
    shares = work.rng.normal(size=(REPLICAS, int(work.rng.integers(3, 7)), 3))
    batch = (shares + work.rng.uniform(-5, 5, size=(REPLICAS, 1, 3))).astype("float32").reshape(-1, 3)
    graph = work.graph("normalize_batch", batch, alone=True)
    return batch, graph, graph.result


@check(
    "whole-statistics",
    "The outputs are those of one device",
    xp=5,
    hints=["Which examples does a layer see on one replica? Look for an argument of `BatchNormalization`."],
)
def normalized_alike(work: Work) -> None:
    batch, graph, (outputs, _) = hidden_step(work)
    own = np.concatenate([normalize(share) for share in np.split(batch, REPLICAS)])
    close(
        outputs,
        normalize(batch),
        rtol=1e-3,
        atol=1e-3,
        mistakes={"Each replica normalizes with the mean and variance of its own share.": own},
    )
    if not graph.collectives:
        fail("The replicas did not exchange anything: let the layer ask them for the statistics.")
    if np.allclose(graph.alone[0], outputs, rtol=1e-3, atol=1e-3):
        fail("The statistics do not come from the exchange: it changes nothing.")


@check(
    "whole-statistics",
    "All replicas have the same moving mean",
    xp=10,
    hints=["The moving mean takes a tenth of the batch's mean. Whose batch?"],
)
def one_moving_mean(work: Work) -> None:
    batch, _, (_, means) = hidden_step(work)
    own = [0.1 * share.mean(axis=0) for share in np.split(batch, REPLICAS)]
    close(
        means,
        np.stack([0.1 * batch.mean(axis=0)] * REPLICAS),
        rtol=1e-3,
        atol=1e-5,
        mistakes={
            "The moving mean of each replica is that of its own share: the copies drift apart.": np.stack(own),
            "The moving mean takes a hundredth of the batch's mean, not a tenth: set the momentum to 0.9.": np.stack(
                [0.01 * batch.mean(axis=0)] * REPLICAS
            ),
        },
    )


def clip(gradient: np.ndarray, limit: float) -> np.ndarray:
    length = np.linalg.norm(gradient)
    return gradient * (limit / length) if length > limit else gradient


def compare_step(work: Work, gradients: list[np.ndarray], limit: float) -> None:
    """The step that the replicas hand over together, beside that of one device with the sum of the gradients."""
    total = np.sum(gradients, axis=0)
    untouched(work, "handed_over")
    graph = work.graph("handed_over", np.stack(gradients), np.array(limit, "float32"), alone=True)
    if not isinstance(graph.result, list) or len(graph.result) != REPLICAS:
        fail("handed_over has to return what each of the {count} replicas hands over.", count=REPLICAS)
    for part in graph.result:
        if not isinstance(part, np.ndarray) or part.shape != total.shape or part.dtype.kind != "f":
            fail("What a replica hands over has to have the shape and the type of its gradient.")
    close(
        np.sum(graph.result, axis=0),
        clip(total, limit),
        atol=1e-5,
        mistakes={
            "Each replica clips its own gradient, and then the parts are added up.": sum(
                clip(gradient, limit) for gradient in gradients
            ),
            "Each replica clips its own gradient to its share of the limit, and then the parts are added up.": sum(
                clip(gradient, limit / REPLICAS) for gradient in gradients
            ),
            "What is clipped is applied once for each replica: the optimizer adds it up.": REPLICAS
            * clip(total, limit),
            "What is clipped is averaged once too often.": clip(total, limit) / REPLICAS,
            "Nothing is clipped.": total,
        },
    )
    if not graph.collectives:
        fail("The replicas did not exchange anything: let `to_apply` ask for the sum with an all-reduce.")
    if np.allclose(graph.alone, graph.result, atol=1e-5):
        fail("The sum does not come from the exchange: it changes nothing.")


def hidden_gradients(work: Work) -> list[np.ndarray]:
    size = int(work.rng.integers(3, 9))
    return [work.rng.normal(0.5, 1.0, size=size).astype("float32") for _ in range(REPLICAS)]


@check(
    "clip-the-sum",
    "A long sum is clipped",
    xp=15,
    hints=[
        "A replica has to see the sum before it can tell how long it is.",
        "What does `optimizer.apply` do with the gradients of four replicas, when they are all the same?",
    ],
)
def long_sum(work: Work) -> None:
    gradients = hidden_gradients(work)
    length = float(np.linalg.norm(np.sum(gradients, axis=0)))
    compare_step(work, gradients, length * float(work.rng.uniform(0.1, 0.2)))


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
    compare_step(work, gradients, length * float(work.rng.uniform(1.05, 1.2)))


def hidden_tensors(work: Work) -> list[np.ndarray]:
    """Three tensors, each with a row for each replica."""
    untouched(work, "sums_of_rows")
    rng = work.rng
    shapes = [(REPLICAS, *rng.integers(2, 6, size=rank).tolist()) for rank in (2, 1, 3)]
    return [rng.normal(size=shape).astype("float32") for shape in shapes]


@check(
    "pack-tensors",
    "Each tensor is added up over the replicas",
    xp=10,
    hints=["`tf.reshape(tensor, [-1])` makes a vector of it, `tf.concat` puts vectors one after the other."],
)
def sums(work: Work) -> None:
    tensors = hidden_tensors(work)
    close(
        work.graph("sums_of_rows", *tensors).result,
        [tensor.sum(axis=0) for tensor in tensors],
        mistakes={
            "These are the tensors of replica 0: nothing was added up.": [tensor[0] for tensor in tensors],
            "These are the means over the replicas, not the sums.": [tensor.mean(axis=0) for tensor in tensors],
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
    graph = work.graph("sums_of_rows", *tensors, alone=True)
    totals = [tensor.sum(axis=0) for tensor in tensors]
    close(graph.result, totals)
    equal(
        graph.count("AddN"),
        1,
        mistakes={
            "There is an all-reduce for each tensor.": 3,
            "There is no all-reduce in the graph: the replicas did not exchange anything.": 0,
        },
    )
    close(
        graph.alone,
        [tensor[0] for tensor in tensors],
        mistakes={"The sums do not come from the reduction: it changes nothing.": totals},
    )
