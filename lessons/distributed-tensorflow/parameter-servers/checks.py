"""Checks of "Parameter servers": old gradients, what they do to the rate, and updates that must not get lost."""

from __future__ import annotations

import ast
import math

import numpy as np

from runners.checks import Work, check, close, fail, names_behind, untouched

GIVEN = ("add_up", "busy", "done", "handed_out", "schedule_and_note", "steps_of_workers")


def limit(curvature: float, age: int) -> float:
    return 2 * math.sin(math.pi / (2 * (2 * age + 1))) / curvature


def ages_of(durations: list[float], updates: int, own_counts: bool = False) -> list[int]:
    """The ages of the first gradients; ``own_counts``: a worker's own latest update counts, too."""
    next_write, has_read, ages = list(durations), [0] * len(durations), []
    for version in range(updates):
        worker = int(np.argmin(next_write))
        ages.append(version - has_read[worker])
        has_read[worker] = version + (0 if own_counts else 1)
        next_write[worker] += durations[worker]
    return ages


def judge_ages(work: Work, durations: list[float], updates: int) -> None:
    wanted, workers = ages_of(durations, updates), len(durations)
    close(
        work.call("ages", durations, updates),
        wanted,
        mistakes={
            "Only workers of equal speed take turns: the durations decide which one writes next.": [
                min(version, workers - 1) for version in range(updates)
            ],
            "A gradient isn't always as old as the number of the other workers.": [workers - 1] * updates,
            "A worker's own update doesn't make its next gradient old: it reads again after it.": ages_of(
                durations, updates, own_counts=True
            ),
        },
    )


@check("ages", "Workers of different speed", xp=10, hints=["Who writes next, and which version has it read?"])
def different_speed(work: Work) -> None:
    for _ in range(3):
        workers = int(work.rng.integers(3, 6))
        durations = [float(duration) for duration in work.rng.uniform(60, 200, size=workers)]
        judge_ages(work, durations, int(work.rng.integers(20, 40)))


@check("ages", "One slow worker", xp=5)
def one_slow_worker(work: Work) -> None:
    durations = [float(duration) for duration in work.rng.uniform(60, 100, size=int(work.rng.integers(2, 5)))]
    durations.insert(int(work.rng.integers(len(durations))), float(work.rng.uniform(500, 900)))
    judge_ages(work, durations, 60)


@check("largest-rate", "One worker", xp=5, hints=["How old is the gradient of somebody who works alone?"])
def alone(work: Work) -> None:
    for _ in range(3):
        curvature = float(work.rng.uniform(0.2, 9.0))
        close(
            work.call("largest_rate", curvature, 1),
            2 / curvature,
            mistakes={
                "The steeper the loss, the smaller the rate: the curvature is missing.": 2.0,
                "The gradient of a single worker is fresh: its age is 0.": limit(curvature, 1),
            },
        )


@check("largest-rate", "Several workers", xp=10, hints=["The lesson has the formula, for a curvature of 1."])
def several(work: Work) -> None:
    for _ in range(3):
        curvature, workers = float(work.rng.uniform(0.2, 9.0)), int(work.rng.integers(3, 9))
        close(
            work.call("largest_rate", curvature, workers),
            limit(curvature, workers - 1),
            rtol=1e-5,  # the sine of a small angle is nearly the angle
            atol=0.0,
            mistakes={
                "The steeper the loss, the smaller the rate: the curvature is missing.": limit(1.0, workers - 1),
                "The gradient is as old as the number of the other workers, one less than there are.": limit(
                    curvature, workers
                ),
                "This is the limit for fresh gradients.": 2 / curvature,
                "The limit does not simply fall with the number of workers.": 2 / curvature / workers,
            },
        )


@check(
    "add-without-loss",
    "The total and the squares are right",
    xp=10,
    hints=[
        "Two workers that read the same total both write their own sum.",
        "`coordinator.fetch` takes a list of promises.",
    ],
)
def right_total(work: Work) -> None:
    untouched(work, *GIVEN)
    numbers = [float(number) for number in work.rng.integers(1, 100, size=int(work.rng.integers(90, 130)))]
    total, squares = work.call("add_up", numbers)
    if isinstance(total, np.ndarray) and 0 <= float(total) < sum(numbers):
        fail(
            "The total is {got}, and the numbers add up to {wanted}: updates got lost, or not all steps were done.",
            got=float(total),
            wanted=sum(numbers),
        )
    close(total, np.float32(sum(numbers)))
    if not np.array_equal(np.asarray(work.value("done")), [len(numbers), sum(numbers)]):
        fail("The steps have to be busy with each of the numbers once.")
    if sorted(work.call("steps_of_workers")) != sorted(numbers):
        fail("Each of the numbers has to be handed out to a worker, as the argument of `step`.")
    close(
        squares,
        [number * number for number in numbers],
        mistakes={
            "The squares are missing: fetch the promises.": [],
            "These are the numbers, not their squares.": numbers,
        },
    )


@check(
    "add-without-loss",
    "The workers add to the total on the server",
    xp=5,
    hints=["`assign_add` reads, adds and writes in one operation on the server."],
)
def workers_add(work: Work) -> None:
    if "schedule" not in names_behind(work, "hand_out"):
        fail("No step is handed out to the workers: what hand_out returns has to come from steps that it schedules.")
    number = np.array(work.rng.uniform(3, 9), dtype="float32")
    graph = work.graph("step", number)
    if graph.count("AssignAddVariableOp") < 2 or graph.count("AssignVariableOp"):  # one of them in busy
        fail("step has to be busy with the number, and add it to the total in one operation, with `assign_add`.")
    close(graph.result, number * number)


@check(
    "add-without-loss",
    "Nobody waits in the loop",
    xp=10,
    hints=["A `fetch` after each `schedule` makes two workers as fast as one."],
)
def no_waiting(work: Work) -> None:
    loops = (ast.For, ast.While, ast.ListComp, ast.GeneratorExp)
    for loop in ast.walk(work.tree):
        if not isinstance(loop, loops):
            continue
        called = {
            node.func.attr
            for node in ast.walk(loop)
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
        }
        if "schedule" in called and called & {"fetch", "join", "done"}:
            fail("The loop that hands out the steps waits for each of them: fetch and join after it.")
    right_total.function(work)
