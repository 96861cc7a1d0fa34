"""Checks of "Profiling a step": a device with a hidden pace, and hidden profiles of all kinds.

The bottleneck of a profile is what shortens the step the most when it takes half as long; the simulator is asked.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from runners.checks import Work, check, close, fail, untouched

STEPS = 10
CAUSES = {"load": "input", "python": "host", "kernels": "device", "reduce": "communication"}
ANSWERS = (*CAUSES.values(), "slow replica")
UNEQUAL = 1.5


def measured(
    times: tuple[Sequence[float], Sequence[float]], warm_up: int, size: int, *, waits: str = "warm-up block"
) -> list[float]:
    """The times of a step in each block. ``waits``: where the measurement waits, also after each ``step``."""
    now = free = start = 0.0
    result: list[float] = []
    for number, (launch, took) in enumerate(zip(*times, strict=True), start=1):
        now += launch
        free = max(now, free) + took
        counted = number - warm_up
        last = counted >= 0 and not counted % size
        if "step" in waits or (last and ("block" if counted else "warm-up") in waits):
            now = max(now, free)
        if last:
            result += [(now - start) / size] if counted else []
            start = now
    return result


def summary(times: Sequence[float]) -> list[float]:
    return [float(np.median(times)), max(times)]


class Device:
    """A virtual device: how long Python needs to start each step, and how long the device needs for it."""

    def __init__(self, work: Work, *, host_bound: bool = False) -> None:
        self.warm_up, self.blocks, self.size = (int(work.rng.integers(*few)) for few in ((2, 6), (7, 12), (4, 9)))
        quick, slow = float(work.rng.uniform(1, 3)), float(work.rng.uniform(8, 20))
        count = self.warm_up + self.blocks * self.size
        self.launches = [slow if host_bound else quick] * count
        self.works = [quick if host_bound else slow] * count

    def compare(self, work: Work) -> None:
        untouched(work, "on_virtual_device")
        times, plan = (self.launches, self.works), (self.warm_up, self.blocks, self.size)
        cold = measured((times[0][: -self.warm_up], times[1][: -self.warm_up]), 0, self.size)

        def waiting(waits: str) -> list[float]:
            return measured(times, self.warm_up, self.size, waits=waits)

        right = waiting("warm-up block")
        close(
            work.call("on_virtual_device", *times, *plan),
            summary(right),
            mistakes={
                "This is how long Python needs to start a step. The device has not finished it.": summary(
                    waiting("warm-up")
                ),
                "Waiting after each step keeps Python from starting the next one while the device works.": summary(
                    waiting("step")
                ),
                "The warm-up is still in the queue when the first block starts.": summary(waiting("block")),
                "The first steps are among those that count.": summary(cold),
                "This is the mean of the blocks, not their median.": [float(np.mean(right)), max(right)],
            },
        )


@check(
    "step-time",
    "The clock is stopped when the device has finished",
    xp=5,
    hints=["Wait once at the end of each block, before you read the clock, and divide by the number of steps in it."],
)
def waits(work: Work) -> None:
    Device(work).compare(work)


@check(
    "step-time",
    "Tracing and warm-up are left out",
    xp=10,
    hints=["Run the warm-up first. When does the device finish it?"],
)
def warm(work: Work) -> None:
    device = Device(work)
    device.launches[0] = float(work.rng.uniform(300, 600))
    for number in range(device.warm_up):
        device.works[number] *= float(work.rng.uniform(5, 10))
    device.compare(work)


@check(
    "step-time",
    "A pause shows in the largest time, and not in the other",
    xp=10,
    hints=["The median is the time in the middle. `np.median` finds it."],
)
def pauses(work: Work) -> None:
    device = Device(work)
    for _ in range(2):
        device.works[int(work.rng.integers(device.warm_up, len(device.works)))] += float(work.rng.uniform(100, 300))
    device.compare(work)


@check("step-time", "It is right if Python is slower than the device, too", xp=5, hints=["Nothing has to be changed."])
def slow_host(work: Work) -> None:
    Device(work, host_bound=True).compare(work)


Training = dict[str, Any]
Rows = list[list[Any]]


def record(training: Training) -> Rows:
    """The events of a training, as the lesson's simulator records them."""
    rows: Rows = []
    kernels, buckets = training["kernels"], training.get("buckets", 1)
    gpus = range(len(kernels))
    host = taken = 0
    finished = [0]

    def add(line: str, name: str, start: int, took: int) -> int:
        if took > 0:
            rows.append([step, line, name, start, start + took])
        return start + took

    for step in range(STEPS):
        loaded = add("input", "load", taken if training.get("prefetch", True) else host, training["load"])
        taken = host = add("host", "next", host, max(loaded - host, 0))
        if step == 0 or training.get("retraced"):
            host = add("host", "tracing", host, training.get("tracing", 400_000))
        host = add("host", "python", host, training["python"])
        free = [add(f"GPU {gpu}", "forward", max(host, finished[-1]), kernels[gpu] // 3) for gpu in gpus]
        sent = [0 for _ in gpus]
        for _ in range(buckets):
            free = [add(f"GPU {gpu}", "backward", free[gpu], 2 * kernels[gpu] // 3 // buckets) for gpu in gpus]
            begin = [max(free[gpu], sent[gpu]) for gpu in gpus]
            end = max(begin) + training["reduce"] // buckets
            sent = [add(f"network {gpu}", "all-reduce", begin[gpu], end - begin[gpu]) for gpu in gpus]
        finished.append(max(sent))
        host = add("host", "wait", host, max(finished[-1 if training.get("read") else -2] - host, 0))
    return rows


def duration(training: Training) -> float:
    """How long the last steps take."""
    ends = [max(row[4] for row in rows) for rows in _by_step(record(training))]
    return float(ends[-1] - ends[STEPS // 2])


def _by_step(rows: Rows) -> list[Rows]:
    return [[row for row in rows if row[0] == step] for step in range(STEPS)]


def bottleneck_of(training: Training) -> str:
    halves: dict[str, Training] = {
        "load": {"load": training["load"] // 2},
        "python": {"python": training["python"] // 2, "tracing": training.get("tracing", 400_000) // 2},
        "kernels": {"kernels": [time // 2 for time in training["kernels"]]},
        "reduce": {"reduce": training["reduce"] // 2},
    }
    largest = min(halves, key=lambda part: duration(training | halves[part]))
    unequal = max(training["kernels"]) >= UNEQUAL * min(training["kernels"])
    return "slow replica" if largest == "kernels" and unequal else CAUSES[largest]


def compare(work: Work, cases: list[tuple[str, Training]]) -> None:
    """Each case has the message for a wrong answer, and the training that the profile shows."""
    untouched(work, "named", "Event")
    for number in work.rng.permutation(len(cases)):
        message, training = cases[int(number)]
        got = work.call("named", record(training))
        if not isinstance(got, str) or got not in ANSWERS:
            fail("The answer {got} is none of the five causes.", got=got)
        if got != bottleneck_of(training):
            fail(message, got=got)


def between(work: Work, low: float, high: float) -> int:
    """A time in µs, from limits in ms. A multiple of 120, so that it can be halved and cut into buckets."""
    return 120 * int(work.rng.integers(int(low * 1000 / 120), int(high * 1000 / 120)))


@check(
    "bottleneck",
    "One part takes longer than all the others",
    xp=10,
    hints=[
        "Begin with `event = max(work, key=lambda event: event.end)`, where `work` has no event that only waits.",
        "In each turn, look for the events that end when this one starts, and stop in step 0.",
    ],
)
def plain(work: Work) -> None:
    kernels = [between(work, 8, 12)] * 2
    small: Training = {
        "load": between(work, 3, 6),
        "python": between(work, 1, 2),
        "kernels": kernels,
        "reduce": between(work, 1, 3),
    }
    compare(
        work,
        [
            (
                "The host waits for a batch in each step, and the answer is “{got}”.",
                small | {"load": between(work, 30, 50)},
            ),
            ("Python runs all the time, and the answer is “{got}”.", small | {"python": between(work, 30, 50)}),
            (
                "The GPUs compute nearly all the time, and the answer is “{got}”.",
                small | {"kernels": [between(work, 30, 50)] * 2},
            ),
            (
                "The all-reduce takes most of each step, and the answer is “{got}”.",
                small | {"reduce": between(work, 30, 50)},
            ),
        ],
    )


@check(
    "bottleneck",
    "The GPUs are busy most of the time and still wait",
    xp=15,
    hints=[
        "Totals are higher with more GPUs, but the critical path goes through one event at a time.",
        "Nothing that the GPUs do is on the critical path if they wait for the host in each step.",
    ],
)
def busy(work: Work) -> None:
    computing = between(work, 12, 16)
    step = computing + 2400
    training: Training = {"load": 3600, "python": 1200, "kernels": [computing] * 4, "reduce": 2400}
    longer = int(step * float(work.rng.uniform(1.2, 1.4)))
    compare(
        work,
        [
            ("Four GPUs wait for the next batch in each step, and the answer is “{got}”.", training | {"load": longer}),
            ("Four GPUs wait for Python in each step, and the answer is “{got}”.", training | {"python": longer}),
            (
                "Loading takes nearly as long as the GPUs, and happens beside them. The answer is “{got}”.",
                training | {"load": int(0.9 * step)},
            ),
            (
                "The network is busy from the first bucket to the last one, and the answer is “{got}”.",
                training | {"reduce": int(computing * float(work.rng.uniform(1.3, 1.6))), "buckets": 4},
            ),
        ],
    )


@check(
    "bottleneck",
    "Waiting is no work, and neither is what happens beside something else",
    xp=15,
    hints=[
        "`wait` and `next` aren't in `CAUSES`, so they can't be on the path.",
        "Tracing in step 0 doesn't count. Tracing in each step does.",
    ],
)
def beside(work: Work) -> None:
    kernels = between(work, 12, 16)
    training: Training = {"load": 3600, "python": 1200, "kernels": [kernels] * 2, "reduce": 1200}
    compare(
        work,
        [
            (
                "The host waits for the GPU in each step, so the host isn't the limit. The answer is “{got}”.",
                training | {"kernels": [kernels], "reduce": 0, "read": True},
            ),
            (
                "Most of the all-reduce happens beside the backward pass, and the answer is “{got}”.",
                training | {"reduce": int(0.55 * kernels), "buckets": 4},
            ),
            (
                "Nothing is read ahead, so the GPUs have nothing to do while a batch is loaded. The answer is “{got}”.",
                training | {"load": 2 * kernels, "prefetch": False, "read": True},
            ),
            (
                "The step is traced each time, and the answer is “{got}”.",
                training | {"retraced": True, "tracing": between(work, 30, 60)},
            ),
        ],
    )


@check(
    "bottleneck",
    "A slow replica is told apart from a slow network and from slow GPUs",
    xp=15,
    hints=[
        "Of the events that end at the same moment, take the one that began last.",
        "Compare the GPUs only if `device` has the most time on the path.",
    ],
)
def replicas(work: Work) -> None:
    quick = between(work, 6, 9)
    slow, similar = int(quick * float(work.rng.uniform(1.9, 2.6))), int(quick * float(work.rng.uniform(1.1, 1.3)))
    training: Training = {"load": 3600, "python": 1200, "kernels": [quick, slow], "reduce": 2400}
    four = [quick] * 4
    four[int(work.rng.integers(4))] = slow
    compare(
        work,
        [
            ("GPU 0 waits for GPU 1 in each all-reduce, and the answer is “{got}”.", training),
            (
                "One of four GPUs takes much longer than the others, and the answer is “{got}”.",
                training | {"kernels": four},
            ),
            (
                "The GPUs differ by less than a third, and both are busy. The answer is “{got}”.",
                training | {"kernels": [similar, quick]},
            ),
            (
                "One GPU is slower than the other, but both wait for the next batch. The answer is “{got}”.",
                training | {"load": 2 * slow},
            ),
            (
                "One GPU is slower, but the all-reduce takes even longer after it has come. The answer is “{got}”.",
                training | {"reduce": 3 * slow},
            ),
        ],
    )
