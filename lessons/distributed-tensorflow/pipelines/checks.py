"""Checks of "Pipelines": orders on a timetable of the checker's own, a training step, and hidden stages."""

from __future__ import annotations

import math
import string
from collections.abc import Callable
from itertools import combinations
from typing import Any

import numpy as np

from runners.checks import Work, check, close, fail, untouched

STAGES = 4


def one_f_one_b(stage: int, stages: int, microbatches: int) -> str:
    forward = string.ascii_uppercase[:microbatches]
    first = min(stages - stage, microbatches)
    pairs = [back + forward[first + number : first + number + 1] for number, back in enumerate(forward.lower())]
    return forward[:first] + "".join(pairs)


def slots_of(orders: list[str]) -> int | None:
    """How long a step takes if a forward pass takes one slot and a backward pass two; None if all stages wait."""
    todo = [list(order) for order in orders]
    ends: dict[tuple[int, str], int] = {}
    free = [0] * len(orders)
    moved = True
    while moved:
        moved = False
        for stage, operations in enumerate(todo):
            while operations:
                operation, forward = operations[0], operations[0].isupper()
                neighbor = stage - 1 if forward else stage + 1
                needs = [] if forward else [(stage, operation.upper())]
                needs += [(neighbor, operation)] if 0 <= neighbor < len(orders) else []
                if any(need not in ends for need in needs):
                    break
                start = max([free[stage], *(ends[need] for need in needs)])
                free[stage] = ends[stage, operations.pop(0)] = start + (1 if forward else 2)
                moved = True
    return None if any(todo) else max(free)


def kept_at_most(order: str) -> int:
    return int(np.cumsum([1 if operation.isupper() else -1 for operation in order]).max())


def orders_of(work: Work, stages: int, microbatches: int) -> list[str]:
    """The orders of all stages, each with every operation once and no backward pass too early."""
    forward = string.ascii_uppercase[:microbatches]
    orders: list[str] = []
    for stage in range(stages):
        order: Any = work.call("one_f_one_b", stage, stages, microbatches)
        where = {"stage": stage, "stages": stages, "microbatches": microbatches}
        if not isinstance(order, str):
            fail("An order is a string, such as “ABaCbc”. This is {got}.", got=type(order).__name__)
        if sorted(order) != sorted(forward + forward.lower()):
            fail(
                "Stage {stage} of {stages} with {microbatches} microbatches has the order “{order}”. Each microbatch "
                "has to go forward once and come back once.",
                order=order[:60],
                **where,
            )
        for letter in forward:
            if order.index(letter.lower()) < order.index(letter):
                fail(
                    "Stage {stage} of {stages} with {microbatches} microbatches has the order “{order}”. A microbatch "
                    "cannot come back before it has gone forward.",
                    order=order,
                    **where,
                )
        orders.append(order)
    return orders


def compare_time(work: Work, stages: int, microbatches: int) -> list[str]:
    orders = orders_of(work, stages, microbatches)
    got, wanted = slots_of(orders), 3 * (microbatches + stages - 1)
    where = {"stages": stages, "microbatches": microbatches}
    if got is None:
        fail("With {stages} stages and {microbatches} microbatches, the stages wait for each other forever.", **where)
    if got > wanted:
        fail(
            "With {stages} stages and {microbatches} microbatches, a step takes {got} slots. GPipe needs {wanted}: "
            "here a stage waits for a gradient while it could go forward.",
            got=got,
            wanted=wanted,
            **where,
        )
    return orders


def compare_memory(work: Work, stages: int, microbatches: int) -> None:
    orders = compare_time(work, stages, microbatches)
    for stage, order in enumerate(orders):
        got, wanted = kept_at_most(order), min(stages - stage, microbatches)
        if got > wanted:
            fail(
                "Stage {stage} of {stages} keeps {got} of {microbatches} microbatches with the order “{order}”. "
                "{wanted} are enough.",
                stage=stage,
                stages=stages,
                microbatches=microbatches,
                order=order,
                got=got,
                wanted=wanted,
            )


@check(
    "one-f-one-b",
    "The gradients are those of one device",
    xp=5,
    hints=["Each letter has to be in each order once, and the capital letter comes first."],
)
def same_gradients(work: Work) -> None:
    microbatches = int(work.rng.integers(5, 9))
    orders_of(work, STAGES, microbatches)
    untouched(
        work, "one_step", "forward", "on_one_device", "gradients_of", "timetable", "pipeline", "WEIGHTS", "DEVICES"
    )
    examples = work.rng.normal(size=(4 * microbatches, 64)).astype("float32")
    targets = work.rng.normal(size=(4 * microbatches, 64)).astype("float32")
    got: Any = work.call("gradients_of", examples, targets, microbatches)
    wanted: Any = work.reference("on_one_device", examples, targets)
    close(list(got), list(wanted), rtol=1e-3, atol=1e-5)


@check(
    "one-f-one-b",
    "A step is as short as with GPipe",
    xp=10,
    hints=[
        "How many forward passes can stage 0 make before the first gradient can have come back to it?",
        "The last stage has no stage after it. It can go back right after its first forward pass.",
    ],
)
def same_time(work: Work) -> None:
    for _ in range(3):
        stages = int(work.rng.integers(3, 9))
        compare_time(work, stages, int(work.rng.integers(stages + 2, 25)))


@check(
    "one-f-one-b",
    "Each stage keeps as little as it can",
    xp=15,
    hints=[
        "Stage 3 of 4 needs only one microbatch at a time, stage 2 needs two.",
        "After the first forward passes, take turns: one back, one forward, until nothing is left to go forward.",
    ],
)
def little_memory(work: Work) -> None:
    for _ in range(3):
        stages = int(work.rng.integers(3, 9))
        compare_memory(work, stages, int(work.rng.integers(stages + 2, 25)))


@check(
    "one-f-one-b",
    "It works with fewer microbatches than stages, too",
    xp=5,
    hints=["A stage cannot go forward more often than there are microbatches."],
)
def few_microbatches(work: Work) -> None:
    stages = int(work.rng.integers(5, 9))
    for microbatches in (1, 2, stages - 1):
        compare_memory(work, stages, microbatches)


def idle_part(
    times: list[int], microbatches: int, *, pace: float | None = None, first: float | None = None, ideal: bool = False
) -> float:
    """The right share by default, or one with a usual mistake.

    Args:
        times: the slots of each stage.
        microbatches: how many there are.
        pace: the slots between two microbatches, in place of the slowest stage's.
        first: the slots until the first microbatch is through, in place of the sum of all stages.
        ideal: whether to compare with the work and not with the whole time.
    """
    pace = max(times) if pace is None else pace
    step = (sum(times) if first is None else first) + (microbatches - 1) * pace
    work = microbatches * sum(times) / len(times)
    return (step - work) / (work if ideal else step)


def mistaken_shares(times: list[int], microbatches: int) -> dict[str, float]:
    """What the usual mistakes give, by diagnosis."""
    stages = len(times)
    return {
        "This is the formula for equal stages. The slowest stage sets the pace.": idle_part(
            times, microbatches, pace=sum(times) / stages
        ),
        "The slowest stage sets the pace, not the last one.": idle_part(times, microbatches, pace=times[-1]),
        "Only the slowest stage takes that long. The first microbatch goes through all of them.": (
            idle_part(times, microbatches, first=stages * max(times))
        ),
        "This compares the waiting with the work, not with the whole time.": idle_part(times, microbatches, ideal=True),
        "This is the part of the time in which the devices work.": 1 - idle_part(times, microbatches),
        "This is a percentage. Return a number from 0 to 1.": 100 * idle_part(times, microbatches),
        "The first microbatch has gone through all stages already, so only m - 1 follow it.": (
            1 - microbatches * sum(times) / stages / (sum(times) + microbatches * max(times))
        ),
    }


def compare_idle(work: Work, times: list[int], microbatches: int) -> None:
    close(
        work.call("idle_share", times, microbatches),
        idle_part(times, microbatches),
        rtol=1e-5,
        mistakes=mistaken_shares(times, microbatches),
    )


def compare_hidden_stages(work: Work, draw: Callable[[], list[int]]) -> None:
    """With times that ``draw`` gives, and microbatches, for which no two mistakes give the same wrong share."""
    while True:
        times, microbatches = draw(), int(work.rng.integers(5, 40))
        right, shares = idle_part(times, microbatches), mistaken_shares(times, microbatches).values()
        wrong = [share for share in shares if not math.isclose(share, right, rel_tol=1e-4)]
        if not any(math.isclose(*pair, rel_tol=1e-4) for pair in combinations(wrong, 2)):
            return compare_idle(work, times, microbatches)


@check("idle-share", "Equal stages", xp=5, hints=["It is the formula from above."])
def equal_stages(work: Work) -> None:
    stages = int(work.rng.integers(3, 9))
    compare_hidden_stages(work, lambda: [int(work.rng.integers(2, 6))] * stages)


@check(
    "idle-share",
    "Unequal stages",
    xp=15,
    hints=[
        "How long does the whole step take? The formula above says it.",
        "How long would the devices need if they could share the work equally and never wait?",
    ],
)
def unequal_stages(work: Work) -> None:
    def times() -> list[int]:
        times = [int(time) for time in work.rng.integers(2, 7, size=int(work.rng.integers(3, 8)))]
        times.insert(int(work.rng.integers(0, len(times))), int(work.rng.integers(9, 14)))
        return times

    for _ in range(3):
        compare_hidden_stages(work, times)


@check("idle-share", "One microbatch, and a thousand", xp=5, hints=["What is left when the bubble has disappeared?"])
def extremes(work: Work) -> None:
    times = [int(time) for time in work.rng.integers(2, 7, size=4)] + [9, 3]
    compare_idle(work, times, 1)
    compare_idle(work, times, 1000)
