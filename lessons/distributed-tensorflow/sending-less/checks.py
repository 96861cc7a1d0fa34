"""Checks of "Sending less": low rank on hidden matrices, and a training whose messages the check counts itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from runners.checks import CheckFailed, Work, check, close, equal, fail, untouched

REPLICAS, WORDS, CLASSES = 4, 512, 4
SIZE = WORDS * CLASSES
EXAMPLES, BATCH, STEPS, RATE = 4096, 32, 40, 1.0

Vectors = np.ndarray
"""A row for each replica."""


def unit(vectors: np.ndarray) -> np.ndarray:
    result: np.ndarray = vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)
    return result


def approximation(p: np.ndarray, q: np.ndarray) -> list[np.ndarray]:
    return [np.outer(p, q), q]


def hidden_matrices(work: Work) -> tuple[np.ndarray, np.ndarray]:
    rows, columns = int(work.rng.integers(5, 9)), int(work.rng.integers(3, 5))
    matrices = work.rng.normal(size=(REPLICAS, rows, columns)) + work.rng.normal(size=(rows, columns))
    return matrices.astype("float32"), work.rng.uniform(0.5, 1.5, columns).astype("float32")


def low_rank_mistakes(matrices: np.ndarray, q: np.ndarray) -> dict[str, list[np.ndarray]]:
    """What the usual mistakes give on replica 0, by diagnosis."""
    mean, own = matrices.mean(axis=0), matrices[0]
    own_p, p = unit(own @ q), unit(mean @ q)
    scaled = unit(matrices @ q).mean(axis=0)
    return {
        "Nothing is exchanged: this is the approximation of replica 0's own matrix.": approximation(
            own_p, own.T @ own_p
        ),
        "Each replica has its own p. Add it up first, or the products with it do not belong together.": approximation(
            own_p, np.mean([matrix.T @ unit(matrix @ q) for matrix in matrices], axis=0)
        ),
        "The new q is that of replica 0 alone.": approximation(p, own.T @ p),
        "p has to have length 1 before the second product.": approximation(mean @ q, mean.T @ (mean @ q)),
        "Scale p after the all-reduce: a mean of vectors of length 1 has another direction.": approximation(
            scaled, mean.T @ scaled
        ),
        "Scale p after the all-reduce: a mean of scaled vectors has another direction.": approximation(
            unit(scaled), mean.T @ unit(scaled)
        ),
        "These are sums over the replicas, not means.": approximation(p, REPLICAS * (mean.T @ p)),
    }


@check(
    "low-rank",
    "The approximation of the mean matrix",
    xp=15,
    hints=[
        "`context.all_reduce` takes a tensor of any shape. Which two vectors have to be the same on all replicas?",
        "Scale p when it is the same everywhere, and not before.",
    ],
)
def values(work: Work) -> None:
    for _ in range(2):
        matrices, q = hidden_matrices(work)
        close(
            work.call("approximate", matrices, q),
            work.reference("approximate", matrices, q),
            rtol=1e-3,
            mistakes=low_rank_mistakes(matrices.astype("float64"), q.astype("float64")),
        )


@check(
    "low-rank",
    "Two all-reduces on each replica",
    xp=15,
    hints=["One for the product with q, one for the product with p."],
)
def two_sums(work: Work) -> None:
    untouched(work, "approximate", "strategy")
    matrices, q = hidden_matrices(work)
    graph = work.graph("approximate", matrices, q, alone=True)
    mean, own = matrices.mean(axis=0), matrices[0] / REPLICAS
    p, own_p = unit(mean @ q), unit(own @ q)
    try:
        close(graph.result, approximation(p, mean.T @ p), rtol=1e-3)
    except CheckFailed:
        fail("The all-reduces are counted as soon as the approximation is right.")
    close(graph.alone, approximation(own_p, own.T @ own_p), rtol=1e-3)
    equal(
        graph.collectives,
        2 * REPLICAS,
        mistakes={
            "There is one all-reduce. If it adds up the whole matrix, nothing is saved.": REPLICAS,
            "There is no all-reduce in the graph: the replicas did not exchange anything.": 0,
        },
    )


class Texts:
    """A hidden problem like that of the lesson, and the training with messages in place of gradients."""

    def __init__(self, rng: np.random.Generator) -> None:
        frequency = np.minimum(0.5, 8 / np.arange(1, WORDS + 1))
        self._x = (rng.random((EXAMPLES, WORDS)) < frequency).astype("float32")
        scores = self._x @ rng.normal(size=(WORDS, CLASSES))
        self._labels = np.argmax(scores - scores.mean(axis=0), axis=1)
        self._batches = rng.integers(0, EXAMPLES, (STEPS, REPLICAS, BATCH))

    def loss(self, exchange: Callable[[Vectors], Vectors]) -> float:
        """The loss after all steps. ``exchange`` gives what the messages say about the vectors of the replicas."""
        weights, kept = np.zeros((WORDS, CLASSES), "float32"), np.zeros((REPLICAS, SIZE), "float32")
        for batches in self._batches:
            vectors = kept + self._gradients(weights, batches)
            said = exchange(vectors)
            kept = vectors - said
            weights -= np.float32(RATE) * said.mean(axis=0).reshape(weights.shape)
        likely = self._likely(self._x, weights)[np.arange(EXAMPLES), self._labels]
        return float(-np.log(np.maximum(likely, 1e-30)).mean())

    def _gradients(self, weights: np.ndarray, batches: np.ndarray) -> Vectors:
        """Of the mean loss over each batch."""
        x = self._x[batches]
        slope = self._likely(x, weights) - np.eye(CLASSES, dtype="float32")[self._labels[batches]]
        gradients: np.ndarray = (x.swapaxes(1, 2) @ slope / np.float32(BATCH)).reshape(REPLICAS, SIZE)
        return gradients

    @staticmethod
    def _likely(x: np.ndarray, weights: np.ndarray) -> np.ndarray:
        logits = x @ weights
        powers = np.exp(logits - logits.max(axis=-1, keepdims=True))
        result: np.ndarray = powers / powers.sum(axis=-1, keepdims=True)
        return result


def largest(vectors: Vectors, count: int) -> Vectors:
    """The numbers with the largest magnitudes in each row, the rest zero."""
    said = np.zeros_like(vectors)
    chosen = np.argpartition(-np.abs(vectors), count - 1, axis=1)[:, :count]
    np.put_along_axis(said, chosen, np.take_along_axis(vectors, chosen, axis=1), axis=1)
    return said


def rows(answer: object, wanted: int) -> Iterator[np.ndarray]:
    """What the submission gave for each replica, whatever it is."""
    if not isinstance(answer, (list, tuple)) or len(answer) != wanted:
        fail("There has to be an answer for each replica.")
    for row in answer:
        yield np.asarray(row) if isinstance(row, np.ndarray) else np.array(np.nan)


def messages_of(work: Work, vectors: Vectors, budget: int) -> list[np.ndarray]:
    messages = list(rows(work.call("encode_all", vectors, budget), len(vectors)))
    for message in messages:
        if message.dtype != np.uint8 or message.ndim != 1:
            fail("encode has to return bytes.")
        if len(message) > budget:
            fail("A message has {count} bytes, and the budget is {budget}.", count=len(message), budget=budget)
    return messages


def said_by(decoder: Work, messages: list[np.ndarray]) -> Vectors:
    vectors = list(rows(decoder.call("decode_all", messages, SIZE), len(messages)))
    for vector in vectors:
        if vector.shape != (SIZE,) or vector.dtype.kind != "f" or not np.isfinite(vector).all():
            fail("decode has to return a vector of {size} finite numbers.", size=SIZE)
    return np.stack(vectors).astype("float32")


def compare_losses(work: Work, budget: int) -> None:
    """Train with the messages of the submission, which another sandbox decodes."""
    untouched(work, "encode_all", "decode_all")
    decoder, texts = work.fresh(), Texts(work.rng)
    loss = texts.loss(lambda vectors: said_by(decoder, messages_of(work, vectors, budget)))
    goal = texts.loss(lambda vectors: largest(vectors, budget // 4))
    if not loss < 1.02 * goal:
        fail(
            "With messages of {budget} bytes, the loss is {loss}. It has to be below {most}, which is 2% above that of "
            "the {count} largest numbers.",
            budget=budget,
            loss=round(loss, 3),
            most=round(1.02 * goal, 3),
            count=budget // 4,
        )


@check(
    "within-budget",
    "A training with 80 bytes in each message",
    xp=25,
    hints=[
        "Which numbers does top-k send? A large negative number counts as much as a large positive one.",
        "How many bytes does a position below 65,536 need? Which dtype has so many? The numbers can be rounded, too.",
    ],
)
def eighty_bytes(work: Work) -> None:
    compare_losses(work, 80)


@check(
    "within-budget",
    "Another budget",
    xp=15,
    hints=["`decode` gets only the message. It can see from its length how many numbers there are."],
)
def another_budget(work: Work) -> None:
    compare_losses(work, 4 * int(work.rng.integers(12, 18)))
