"""Checks of "Tensor parallelism by hand": hidden layers on two replicas, without the second one, and on one device."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from runners.checks import CheckFailed, Work, check, close, equal, untouched

REPLICAS = 2
HEAD = 4

GIVEN = ("DEVICES", "mine", "all_reduce")

# Sums in another order: a number that is nearly 0 is off by the rounding of the larger ones that cancel in it.
ROUNDING: dict[str, float] = {"rtol": 1e-3, "atol": 1e-4}


def gelu(values: np.ndarray) -> np.ndarray:
    return 0.5 * values * (1 + np.vectorize(math.erf)(values / math.sqrt(2)))


def drawn(rng: np.random.Generator, *shape: int) -> np.ndarray:
    return rng.normal(size=shape).astype("float32")


def hidden_layers(work: Work) -> list[np.ndarray]:
    """Tokens, and the weights of two layers, with biases that are far from zero."""
    untouched(work, *GIVEN, "output_of", "strategy")
    rng = work.rng
    tokens, width, hidden = int(rng.integers(3, 6)), 2 * int(rng.integers(2, 4)), 2 * int(rng.integers(4, 7))
    return [
        drawn(rng, tokens, width),
        drawn(rng, width, hidden),
        drawn(rng, hidden),
        drawn(rng, hidden, width),
        drawn(rng, width) + 3,
    ]


def partial_sums(
    x: np.ndarray, a: np.ndarray, a_bias: np.ndarray, b: np.ndarray, b_bias: np.ndarray
) -> list[np.ndarray]:
    """What each replica adds to the output, without the bias."""
    halves = zip(np.split(a, 2, axis=1), np.split(a_bias, 2), np.split(b, 2), strict=True)
    return [gelu(x @ columns + bias) @ rows for columns, bias, rows in halves]


def rows_first(x: np.ndarray, a: np.ndarray, a_bias: np.ndarray, b: np.ndarray, b_bias: np.ndarray) -> np.ndarray:
    """The activation of partial sums, each of which has the whole first bias."""
    halves = zip(np.split(x, 2, axis=1), np.split(a, 2), strict=True)
    return np.asarray(sum(gelu(columns @ rows + a_bias) @ b for columns, rows in halves))


def is_close(got: Any, wanted: np.ndarray) -> bool:
    try:
        close(got, wanted, **ROUNDING)
    except CheckFailed:
        return False
    return True


@check(
    "split-block",
    "The output is that of the whole block",
    xp=15,
    hints=[
        "Each replica needs whole hidden units: whole columns of `a`, and the numbers of `a_bias` that belong to them.",
        "`b_bias` belongs to the whole output, which exists only after the sum.",
    ],
)
def whole_output(work: Work) -> None:
    arrays = hidden_layers(work)
    bias = arrays[-1]
    first, second = partial_sums(*arrays)
    whole = gelu(arrays[0] @ arrays[1] + arrays[2]) @ arrays[3]
    rows = rows_first(*arrays)
    close(
        work.call("output_of", *arrays),
        first + second + bias,
        **ROUNDING,
        mistakes={
            "Each replica adds the second bias, so the output has it twice.": first + second + 2 * bias,
            "This is the partial sum of one replica: nothing was added up.": first + bias,
            "The activation gets partial sums here. Cut the first matrix by columns.": rows + bias,
            "The activation gets partial sums here, and the output has the second bias twice.": rows + 2 * bias,
            "Each replica computes the whole block, so the sum has it twice.": 2 * whole + bias,
            "Each replica computes the whole block with its bias, so the sum has everything twice.": 2 * (whole + bias),
            "The second bias is missing.": first + second,
        },
    )


@check(
    "split-block",
    "Each replica computes its piece, and one all-reduce adds them up",
    xp=10,
    hints=["Call `all_reduce` once, after the second matrix. Nothing is needed between the two."],
)
def one_sum(work: Work) -> None:
    arrays = hidden_layers(work)
    bias = arrays[-1]
    first, second = partial_sums(*arrays)
    graph = work.graph("output_of", *arrays, alone=True)
    close(graph.result, first + second + bias, **ROUNDING)
    equal(
        graph.collectives,
        REPLICAS,
        mistakes={
            "Nothing is exchanged: each replica computes the whole block.": 0,
            "There are two all-reduces. One is enough.": 2 * REPLICAS,
        },
    )
    if any(is_close(graph.alone, first + part * bias) for part in (1 / REPLICAS, 0.0)):
        return  # each replica adds a part of the bias before the sum, or another replica adds all of it
    close(
        graph.alone,
        first + bias,
        **ROUNDING,
        mistakes={
            "The first replica computes the whole block by itself.": first + second + bias,
            "Each replica computes the whole block and divides it.": (first + second) / 2 + bias,
            "Each replica computes the whole block with its bias and divides it.": (first + second + bias) / 2,
        },
    )


Case = list[np.ndarray]


def hidden_heads(work: Work) -> tuple[np.ndarray, Case]:
    """The gradient of the output, and what the layer gets: four heads, and tokens with four to eight numbers."""
    untouched(work, *GIVEN, "HEAD", "attend", "f", "g", "step", "strategy")
    rng = work.rng
    tokens, width, columns = int(rng.integers(3, 6)), int(rng.integers(4, 9)), 4 * HEAD
    arrays = [drawn(rng, tokens, width), drawn(rng, width) + 2]
    arrays += [drawn(rng, width, columns) * np.float32(0.4) for _ in range(3)]
    return drawn(rng, tokens, width), [*arrays, drawn(rng, columns, width), drawn(rng, width) + 3]


def on_one_device(work: Work, upstream: np.ndarray, arrays: Case) -> list[np.ndarray]:
    result: Any = work.reference("step", upstream, *arrays, topology="cpu")
    return [np.asarray(part) for part in result]


def first_half(arrays: Case) -> Case:
    """The layer with the heads of the first replica only."""
    x, scale, q, k, v, out, bias = arrays
    half = q.shape[1] // 2
    return [x, scale, q[:, :half], k[:, :half], v[:, :half], out[:half], bias]


def compare_heads(
    work: Work, part: Callable[[list[np.ndarray]], list[np.ndarray]], mistakes: dict[str, Callable[..., list[Any]]]
) -> None:
    upstream, arrays = hidden_heads(work)
    whole = on_one_device(work, upstream, arrays)
    half = on_one_device(work, upstream, first_half(arrays))
    got: Any = work.call("step", upstream, *arrays)
    equal(len(got), len(whole))
    close(
        part(list(got)),
        part(whole),
        **ROUNDING,
        mistakes={message: part(make(whole, half, arrays)) for message, make in mistakes.items()},
    )


@check(
    "split-heads",
    "The output is that of all heads",
    xp=10,
    hints=["Cut `q`, `k` and `v` by columns and `out` by rows, and add the bias after the sum."],
)
def output_of_heads(work: Work) -> None:
    compare_heads(
        work,
        lambda results: results[:1],
        {
            "This is the output of one replica's heads: nothing was added up.": lambda whole, half, arrays: half,
            "Each replica adds the bias, so the output has it twice.": lambda whole, half, arrays: [
                whole[0] + arrays[-1]
            ],
            "Each replica computes all heads, so the sum has them twice.": lambda whole, half, arrays: [
                2 * whole[0] - arrays[-1]
            ],
        },
    )


@check(
    "split-heads",
    "All gradients are those of one device",
    xp=15,
    hints=[
        "Which operator adds up what comes back from the heads? It belongs where the replicas begin to differ.",
        "The scale is not cut. Is its gradient computed before or after the parts of both replicas are added up?",
    ],
)
def gradients_of_heads(work: Work) -> None:
    compare_heads(
        work,
        lambda results: results[1:],
        {
            "The gradient of the scale is only that of the replica's own heads. Place `f` after the scale.": (
                lambda whole, half, arrays: [*whole[:2], half[2], *whole[3:]]
            ),
            "The gradients of the input and the scale are only those of the replica's own heads. Where is `f`?": (
                lambda whole, half, arrays: [whole[0], *half[1:3], *whole[3:]]
            ),
            "The backward pass adds up the gradient of the output, which every replica already has.": (
                lambda whole, half, arrays: [whole[0], *[2 * part for part in whole[1:-1]], whole[-1]]
            ),
            "Each replica computes all heads here, with all of the four matrices.": (
                lambda whole, half, arrays: [*whole[:3], *[2 * part for part in whole[3:-1]], whole[-1]]
            ),
            "The backward pass adds up the gradient of the output, and `f` is missing.": (
                lambda whole, half, arrays: [
                    whole[0],
                    *[2 * part for part in half[1:3]],
                    *[2 * part for part in whole[3:-1]],
                    whole[-1],
                ]
            ),
        },
    )


@check(
    "split-heads",
    "One all-reduce forward, and one backward",
    xp=10,
    hints=["One `f` and one `g` are enough: the three matrices can share the same `f(…)`."],
)
def two_sums(work: Work) -> None:
    upstream, arrays = hidden_heads(work)
    whole, half = on_one_device(work, upstream, arrays), on_one_device(work, upstream, first_half(arrays))
    graph = work.graph("step", upstream, *arrays, alone=True)
    close(graph.result, whole, **ROUNDING)
    equal(
        graph.collectives,
        2 * REPLICAS,
        mistakes={
            "There are four all-reduces, one for each of `q`, `k` and `v`. They can share one `f`.": 4 * REPLICAS,
        },
    )
    alone: Any = graph.alone
    close(
        list(alone)[:3],
        half[:3],
        **ROUNDING,
        mistakes={"The first replica computes all heads by itself.": whole[:3]},
    )
