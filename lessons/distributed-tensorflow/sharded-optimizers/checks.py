"""Checks of "Sharded optimizers": bytes for hidden sizes, and a step on hidden weights, moments and gradients."""

from __future__ import annotations

import numpy as np

from runners.checks import Work, check, close, equal, untouched

REPLICAS = 4

Case = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, float, float]


def stage_bytes(
    weights: int,
    devices: int,
    stage: int,
    *,
    padded: bool = True,
    divided_from: tuple[int, int, int] = (3, 2, 1),
    sent_pieces: int = -1,
    gathers_again: bool = True,
    reduces_again: bool = False,
) -> tuple[int, int]:
    """Held and sent. ``divided_from``: the stage from which weights, gradients and state are divided."""
    piece = -(-weights // devices) if padded else weights // devices
    held = sum(
        size * (piece if stage >= first else weights) for size, first in zip((2, 2, 12), divided_from, strict=True)
    )
    collectives = 2 + (gathers_again + reduces_again if stage == 3 else 0)
    return held, collectives * (devices + sent_pieces) * 2 * piece


def mistaken_bytes(weights: int, devices: int, stage: int) -> dict[str, tuple[int, int]]:
    """What the usual mistakes give, by diagnosis.

    Where there are two collectives, one of them sends as much as both would with one byte for each number.
    """
    case = weights, devices, stage
    held, sent = stage_bytes(*case)
    one_byte, one_collective = (held, sent // 2), (held, (devices - 1) * 2 * -(-weights // devices))
    too_little = {
        "A device sends in every collective of the step, not only in one.": one_collective,
        "Each number that is sent has 2 bytes.": one_byte,
    }
    if one_byte == one_collective:
        too_little = {
            "This is half of what a device sends. There are two collectives, and each number has 2 bytes.": one_byte
        }
    return too_little | {
        "Pieces are padded, so their size is rounded up.": stage_bytes(*case, padded=False),
        "This stage does not divide the gradients yet.": stage_bytes(*case, divided_from=(3, 1, 1)),
        "From stage 2 on, the gradients are divided, too.": stage_bytes(*case, divided_from=(3, 3, 1)),
        "Only stage 3 divides the weights.": stage_bytes(*case, divided_from=(2, 2, 1)),
        "Stage 3 divides the weights, too.": stage_bytes(*case, divided_from=(4, 2, 1)),
        "Stage 3 gathers the weights twice.": stage_bytes(*case, gathers_again=False),
        "Stage 3 has three collectives, not four: no all-gather follows the reduce-scatter.": (
            stage_bytes(*case, reduces_again=True)
        ),
        "In each collective, a device sends N - 1 pieces, not N.": stage_bytes(*case, sent_pieces=0),
    }


def compare_bytes(work: Work, stage: int) -> None:
    for _ in range(3):
        devices = int(work.rng.integers(5, 40))
        weights = devices * int(work.rng.integers(100, 1000)) + int(work.rng.integers(1, devices))
        case = weights, devices, stage
        equal(work.call("bytes_of_stage", *case), stage_bytes(*case), mistakes=mistaken_bytes(*case))


@check(
    "bytes-of-stage",
    "Data parallelism divides nothing",
    xp=5,
    hints=["How many bytes does each weight have in all, with its gradient and its state?"],
)
def stage_zero(work: Work) -> None:
    compare_bytes(work, 0)


@check(
    "bytes-of-stage",
    "Stages 1 and 2 send as much as data parallelism",
    xp=10,
    hints=[
        "Count weights, gradients and the optimizer's state by themselves. Each is either whole or a piece.",
        "A piece is rounded up, and an all-reduce is two collectives.",
    ],
)
def stages_one_and_two(work: Work) -> None:
    compare_bytes(work, 2)  # first: in stage 1, weights that are divided early look like gradients
    compare_bytes(work, 1)


@check("bytes-of-stage", "Stage 3 divides everything, and sends more", xp=10, hints=["How many collectives are there?"])
def stage_three(work: Work) -> None:
    compare_bytes(work, 3)


BEFORE = {
    "The gradients are clipped before they are added up.": "before",
    "The gradients are clipped before they are added up, by the length of all of them together.": "before, by all",
    "The gradients are clipped before they are added up, by the sum of their lengths.": "before, by lengths",
}
CLIPPINGS = {
    "The gradient is not clipped.": "none",
    "Each device clips by the length of its own piece: the limit is for the whole gradient.": "pieces",
    "The lengths of the pieces are added up. Add up their squares, and take the root of the sum.": "lengths",
    **BEFORE,
}
"""The usual mistakes by diagnosis, as ``clipping`` of ``after_step``."""


def clip_factor(length: np.ndarray, limit: float) -> np.ndarray:
    return np.minimum(1.0, limit / np.maximum(length, 1e-30))  # a piece may be all padding


def after_step(
    case: Case,
    *,
    clipping: str = "whole",
    mean: bool = False,
    only_first: bool = False,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The weights, and both moments with a row for each replica.

    ``clipping``: "whole", "pieces" (by the length of each), "lengths" (by the sum of those), "before" (each replica's
    own gradient), "before, by all" (by the length of all of these together), "before, by lengths", or "none".
    ``only_first``: the other replicas bring zeros to each exchange; only the first rows of the moments are right then.
    """
    weights, m, v, gradients, number, limit = case
    piece = m.shape[1]
    padding = REPLICAS * piece - len(weights)
    gradients = np.asarray(gradients, dtype=float)
    if clipping in BEFORE.values():
        lengths = np.linalg.norm(gradients, axis=1, keepdims=True)
        by = {"before": lengths, "before, by all": np.linalg.norm(lengths), "before, by lengths": lengths.sum()}
        gradients = gradients * clip_factor(by[clipping], limit)
    total = gradients[0] if only_first else gradients.sum(axis=0)
    total = np.pad(total / REPLICAS if mean else total, (0, padding)).reshape(REPLICAS, piece)
    if clipping == "pieces" or (clipping == "whole" and only_first):
        total = total * clip_factor(np.linalg.norm(total, axis=1, keepdims=True), limit)
    elif clipping in {"whole", "all of the sum"}:
        total = total * clip_factor(np.linalg.norm(total), limit)
    elif clipping == "lengths":
        total = total * clip_factor(np.linalg.norm(total, axis=1).sum(), limit)
    m = m + 0.1 * (total - m)
    v = v + 0.001 * (total**2 - v)
    rate = 0.01 * np.sqrt(1 - 0.999**number) / (1 - 0.9**number)
    change = rate * m / (np.sqrt(v) + 1e-7)
    return weights - change.ravel()[: len(weights)], m, v


def hidden_case(work: Work, size: int, limit: float | None = None) -> Case:
    """Weights near zero and small moments, so that a step changes all of them visibly."""
    untouched(work, "one_step", "weights_after", "moments_after", "adam", "own_piece", "reduce_scatter", "strategy")
    rng = work.rng
    piece = -(-size // REPLICAS)
    padding = REPLICAS * piece - size
    scale = 30 * np.exp(rng.uniform(-2, 2, size))  # pieces of very different length
    weights = rng.normal(size=size) / 100
    gradients = rng.normal(size=(REPLICAS, size)) * scale
    whole = float(np.linalg.norm(gradients.sum(axis=0)))
    bound = whole * (float(rng.uniform(0.02, 0.05)) if limit is None else limit)
    clipped = min(whole, bound)
    m = np.pad(clipped * rng.normal(size=size) / 50, (0, padding)).reshape(REPLICAS, piece)
    v = np.pad(clipped**2 * rng.uniform(1e-5, 1e-4, size), (0, padding)).reshape(REPLICAS, piece)
    rows = [part.astype("float32") for part in (weights, m, v, gradients)]
    return rows[0], rows[1], rows[2], rows[3], float(rng.integers(2, 9)), bound


def compare_step(work: Work, case: Case) -> None:
    weights, m, _ = after_step(case)

    def all_rows(row: np.ndarray) -> np.ndarray:
        return np.tile(row, (REPLICAS, 1))

    padded = REPLICAS * m.shape[1] - len(weights)
    mistakes = {
        **{message: all_rows(after_step(case, clipping=clipping)[0]) for message, clipping in CLIPPINGS.items()},
        "The gradients are averaged here: add them up.": all_rows(after_step(case, mean=True)[0]),
        "The weights have not changed.": all_rows(case[0]),
    }
    if padded:
        mistakes["The padding is still at the end of the weights."] = np.pad(all_rows(weights), ((0, 0), (0, padded)))
    graph = work.graph("weights_after", *case)
    close(graph.result, all_rows(weights), mistakes=mistakes)


@check(
    "sharded-step",
    "The weights are those of data parallelism",
    xp=15,
    hints=[
        "`tf.pad(row, [[0, number]])` adds zeros at the end. How many are missing until there are `REPLICAS` pieces?",
        "`reduce_scatter` gives you your piece of the sum, `own_piece` your piece of the weights.",
    ],
)
def same_weights(work: Work) -> None:
    compare_step(work, hidden_case(work, int(work.rng.choice([9, 10, 13]))))


@check(
    "sharded-step",
    "A short gradient is not clipped, and even pieces are not padded",
    xp=5,
    hints=["`tf.minimum` of 1 and of a factor never makes anything longer.", "A padding of zero adds nothing."],
)
def short_gradient(work: Work) -> None:
    compare_step(work, hidden_case(work, 4 * int(work.rng.integers(3, 6)), limit=2.0))


@check(
    "sharded-step",
    "Each device computes only its own moments",
    xp=20,
    hints=[
        "The square of the whole length is the sum of the squares of the pieces' lengths.",
        "`context.all_reduce` also adds up a single number.",
    ],
)
def own_moments(work: Work) -> None:
    case = hidden_case(work, 11)
    _, *moments = after_step(case)
    graph = work.graph("moments_after", *case, alone=True)
    close(
        graph.result,
        moments,
        mistakes={
            "The moments have not changed.": list(case[1:3]),
            **{message: list(after_step(case, clipping=clipping)[1:]) for message, clipping in CLIPPINGS.items()},
        },
    )
    alone = graph.alone
    if isinstance(alone, (list, tuple)):
        alone = [np.asarray(rows)[0] for rows in alone]
    close(
        alone,
        [rows[0] for rows in after_step(case, only_first=True)[1:]],
        mistakes={
            "The length comes from the whole sum, which a device does not have after a reduce-scatter.": [
                rows[0] for rows in after_step(case, clipping="all of the sum", only_first=True)[1:]
            ],
            "The moments do not come from the exchange.": [rows[0] for rows in moments],
        },
    )
