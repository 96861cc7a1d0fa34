"""Checks of "Buckets and overlap": times on hidden networks, and all-reduces counted in the graph of hidden tensors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from math import isclose
from typing import Any

import numpy as np

from runners.checks import Work, check, close, equal, untouched

REPLICAS = 4

Bucket = list[tuple[float, float]]


def arrival(
    buckets: Sequence[Bucket],
    devices: int,
    alpha: float,
    beta: float,
    *,
    ready_of: Callable[[list[float]], float] = max,
    start_of: Callable[[float, float], float] = max,
    latencies: int | None = None,
    values: float | None = None,
    singly: bool = False,
) -> float:
    """When the last bucket has been added up. Each keyword makes a usual mistake."""
    time, last = 0.0, 0.0
    for bucket in buckets:
        ready = ready_of([ready for ready, _ in bucket])
        size = sum(megabytes for _, megabytes in bucket)
        rounds = 2 * (devices - 1) if latencies is None else latencies
        whole = 2 * (devices - 1) / devices if values is None else values
        time = start_of(time, ready) + (len(bucket) if singly else 1) * rounds * alpha + whole * beta * size
        last = max(last, time)
    return last


def without_overlap(buckets: Sequence[Bucket], *network: Any) -> float:
    """As if nothing were sent before the last gradient is ready."""
    return max(ready for bucket in buckets for ready, _ in bucket) + arrival(
        buckets, *network, start_of=lambda free, ready: free
    )


def hidden_buckets(work: Work, number: int) -> list[Bucket]:
    """Buckets of four or five tensors, 200 µs to 300 µs apart. Neither end has the first or the last to be ready."""
    buckets, clock = [], float(work.rng.uniform(50, 100))
    for _ in range(number):
        sizes = work.rng.uniform(0.1, 1.0, int(work.rng.integers(4, 6)))
        begin = clock
        clock += float(work.rng.uniform(200, 300))
        earliest, *others = sorted(work.rng.uniform(begin, clock - 100, len(sizes) - 1))
        ready = [others[0], *work.rng.permutation([earliest, *others[2:], clock]), others[1]]
        buckets.append([(float(when), float(size)) for when, size in zip(ready, sizes, strict=True)])
    return buckets


def compare_arrival(work: Work, buckets: list[Bucket], alpha: float, beta: float) -> None:
    devices = int(work.rng.choice([3, 5, 6, 8]))
    case = buckets, devices, alpha, beta
    got = work.call("last_sum", *case)
    # Without a queue, the last bucket need not be the last to arrive. Some return when it does.
    alone = arrival(buckets[-1:], devices, alpha, beta)
    only_last = isinstance(got, float) and isclose(got, alone, rel_tol=1e-6)
    close(
        got,
        work.reference("last_sum", *case),
        rtol=1e-6,
        mistakes={
            "Nothing is sent here before the last gradient is ready.": without_overlap(*case),
            "A bucket leaves when all of its gradients are ready, not when the first one is.": arrival(
                *case, ready_of=min
            ),
            "The tensors of a bucket are in no particular order. Which of them is ready last?": arrival(
                *case, ready_of=lambda ready: ready[-1]
            ),
            "A bucket also waits until the one before has arrived.": (
                alone if only_last else arrival(*case, start_of=lambda free, ready: ready)
            ),
            "A bucket also waits until its gradients are ready.": arrival(*case, start_of=lambda free, ready: free),
            "A bucket that waits for the one before doesn't have to wait for its gradients again.": arrival(
                *case, start_of=lambda free, ready: free + ready
            ),
            "All tensors of a bucket travel in one ring, which pays its latencies once.": arrival(*case, singly=True),
            "A ring pays a latency in each of its 2(N - 1) rounds.": arrival(*case, latencies=1),
            "In a ring, pieces go around twice.": arrival(*case, latencies=devices - 1, values=(devices - 1) / devices),
            "A round of the ring carries one piece, not a whole value.": arrival(*case, values=2 * (devices - 1)),
        },
    )


@check(
    "last-sum",
    "A slow network: buckets wait for each other",
    xp=10,
    hints=[
        "Go through the buckets in order, and keep the time at which the network is free again.",
        "A bucket starts at the later of two times.",
    ],
)
def slow_network(work: Work) -> None:
    alpha, beta = float(work.rng.uniform(10, 20)), float(work.rng.uniform(300, 600))
    compare_arrival(work, hidden_buckets(work, int(work.rng.integers(3, 6))), alpha, beta)


@check(
    "last-sum",
    "A fast network: buckets wait for their gradients",
    xp=10,
    hints=["On a fast network, only the last bucket counts. When is it ready?"],
)
def fast_network(work: Work) -> None:
    alpha, beta = float(work.rng.uniform(1, 2)), float(work.rng.uniform(2, 8))
    compare_arrival(work, hidden_buckets(work, int(work.rng.integers(3, 6))), alpha, beta)


@check("last-sum", "One large bucket holds up those behind it", xp=5, hints=["Both rules hold for every bucket."])
def large_bucket(work: Work) -> None:
    buckets = hidden_buckets(work, 6)
    buckets[2] = [(ready, 8 * megabytes) for ready, megabytes in buckets[2]]
    compare_arrival(work, buckets, float(work.rng.uniform(1, 2)), float(work.rng.uniform(20, 80)))


def buckets_of(
    sizes: Sequence[int], limit: int, *, is_full: Callable[[int, int], bool] | None = None, backwards: bool = True
) -> list[list[int]]:
    """The buckets. ``is_full`` gets the size of the last one and that of the next gradient."""
    full = is_full or (lambda filled, size: filled + size > limit)
    buckets: list[list[int]] = []
    filled = 0
    for position in reversed(range(len(sizes))) if backwards else range(len(sizes)):
        if not buckets or full(filled, sizes[position]):
            buckets.append([])
            filled = 0
        buckets[-1].append(position)
        filled += sizes[position]
    return buckets


def usual_mistakes(sizes: Sequence[int], limit: int) -> dict[str, list[list[int]]]:
    """The buckets that the usual mistakes make, by diagnosis."""
    return {
        "Begin with the last gradient: it is ready first.": buckets_of(sizes, limit, backwards=False),
        "The buckets are right, but in the reverse order.": buckets_of(sizes, limit)[::-1],
        "A bucket is full only when it has more than the limit, as in TensorFlow.": buckets_of(
            sizes, limit, is_full=lambda filled, size: filled > limit
        ),
        "A bucket has more bytes than the limit, as in DDP.": buckets_of(
            sizes, limit, is_full=lambda filled, size: filled >= limit
        ),
        "A bucket may have exactly as many bytes as the limit.": buckets_of(
            sizes, limit, is_full=lambda filled, size: filled + size >= limit
        ),
        "Each gradient has a bucket of its own.": [[position] for position in reversed(range(len(sizes)))],
    }


@check(
    "in-buckets",
    "Buckets take what fits, from the last gradient on",
    xp=15,
    hints=[
        "Go through the positions from the last to the first, and remember the bytes in the last bucket.",
        "A new bucket begins when the next gradient does not fit, and for the very first gradient.",
    ],
)
def filled(work: Work) -> None:
    for _ in range(4):
        limit = int(work.rng.integers(2000, 4000))
        sizes = [int(size) for size in work.rng.integers(100, 1500, 16)]
        sizes[int(work.rng.integers(4, 9))] = limit + int(work.rng.integers(500, 1500))
        sizes[13:] = [limit - sizes[15] - 100, 100, sizes[15]]  # a bucket that is exactly full
        equal(work.call("fill", sizes, limit), buckets_of(sizes, limit), mistakes=usual_mistakes(sizes, limit))


def hidden_gradients(work: Work, number: int = 4) -> tuple[list[list[int]], list[np.ndarray]]:
    """``number`` buckets of gradients in a random order, and the gradients, with a row for each replica."""
    untouched(work, "sums", "all_reduces_in")
    rng = work.rng
    shapes = [(REPLICAS, *rng.integers(2, 5, size=int(rank)).tolist()) for rank in rng.integers(1, 4, 9)]
    order = [int(position) for position in rng.permutation(9)]
    cuts = [0, *sorted(int(cut) for cut in rng.choice(range(1, 9), number - 1, replace=False)), 9]
    buckets = [order[begin:end] for begin, end in pairwise(cuts)]
    return buckets, [rng.normal(size=shape).astype("float32") for shape in shapes]


@check(
    "in-buckets",
    "Each gradient is added up over the replicas",
    xp=10,
    hints=["`context.all_reduce` also takes a list, and gives back a list of sums in the same order."],
)
def sums(work: Work) -> None:
    buckets, gradients = hidden_gradients(work)
    graph = work.graph("sums", buckets, *gradients, alone=True)
    totals = [gradient.sum(axis=0) for gradient in gradients]
    close(
        graph.result,
        totals,
        mistakes={
            "The sums are in the order of the buckets, not in that of the gradients.": [
                totals[position] for bucket in buckets for position in bucket
            ],
            "These are the gradients of replica 0: nothing was added up.": [gradient[0] for gradient in gradients],
            "These are the means over the replicas, not the sums.": [gradient.mean(axis=0) for gradient in gradients],
        },
    )
    close(
        graph.alone,
        [gradient[0] for gradient in gradients],
        mistakes={"The sums do not come from the all-reduces: they change nothing.": totals},
    )


@check(
    "in-buckets",
    "One all-reduce for each bucket",
    xp=10,
    hints=["Call `context.all_reduce` once for each bucket, with the list of its gradients."],
)
def counted(work: Work) -> None:
    for number in work.rng.choice(range(2, 8), 2, replace=False):
        buckets, gradients = hidden_gradients(work, int(number))
        graph = work.graph("sums", buckets, *gradients)
        close(graph.result, [gradient.sum(axis=0) for gradient in gradients])
        equal(
            graph.collectives,
            REPLICAS * len(buckets),
            mistakes={
                "There is an all-reduce for each gradient.": REPLICAS * len(gradients),
                "All gradients are in one all-reduce.": REPLICAS,
                "There is no all-reduce in the graph: the replicas did not exchange anything.": 0,
            },
        )
