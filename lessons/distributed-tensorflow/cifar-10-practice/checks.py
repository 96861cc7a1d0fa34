"""Checks of "CIFAR-10 on one device and on many": reading measurements."""

from __future__ import annotations

import re

from runners.checks import Work, check, equal, fail


def reported(work: Work) -> list[tuple[int, int]]:
    """The lines of the report, as devices and percentages."""
    lines = [
        re.fullmatch(r"\s*(\d+) devices?: +(\d+) ?%\s*", line) for line in work.output.splitlines() if line.strip()
    ]
    if not lines or None in lines:
        fail("Print nothing but lines such as `4 devices: 87%`.")
    return [(int(line[1]), int(line[2])) for line in lines if line]


@check(
    "report-efficiency", "One line for each measurement, in order", xp=5, hints=["`sorted` puts the numbers in order."]
)
def lines_in_order(work: Work) -> None:
    measured = dict(work.reference_value("measured"))
    equal(
        [devices for devices, _ in reported(work)],
        sorted(measured),
        mistakes={"The lines are not in ascending order.": list(measured)},
    )


@check(
    "report-efficiency",
    "The efficiencies are right",
    xp=10,
    hints=["How many examples per second would you hope for with four devices, given the rate of one?"],
)
def efficiencies(work: Work) -> None:
    measured = dict(work.reference_value("measured"))
    got = dict(reported(work))

    def percentages(share):
        return {devices: round(100 * share(devices, rate)) for devices, rate in measured.items()}

    for devices, want in percentages(lambda n, rate: rate / n / measured[1]).items():
        if abs(got.get(devices, -1) - want) <= 1:  # rounded in another way
            continue
        equal(
            got,
            percentages(lambda n, rate: rate / n / measured[1]),
            mistakes={
                "This compares with one device, but not with as many times its rate as there are devices.": percentages(
                    lambda n, rate: rate / measured[1]
                ),
                "This compares with the largest rate, not with that of one device.": percentages(
                    lambda n, rate: rate / max(measured.values())
                ),
            },
        )


def first_slow(batch, input_ms, compute_ms, fixed_ms, delay_ms, transfer_ms, global_input=True):
    for devices in range(1, 65):
        rounds = 2 * (devices - 1)
        step = fixed_ms + compute_ms * batch + rounds * delay_ms + rounds / devices * transfer_ms
        if input_ms * batch * (devices if global_input else 1) > step:
            return devices
    return 0


def mistaken_first(batch, input_ms, compute_ms, fixed_ms, delay_ms, transfer_ms):
    """What usual mistakes give instead."""
    host = batch, input_ms, compute_ms
    return {
        "The host prepares the examples of all devices for each step.": first_slow(
            *host, fixed_ms, delay_ms, transfer_ms, global_input=False
        ),
        "The all-reduce is part of the step.": first_slow(*host, fixed_ms, 0.0, 0.0),
        "The rounds of the ring have a delay, too.": first_slow(*host, fixed_ms, 0.0, transfer_ms),
        "The rounds of the ring transfer numbers, too.": first_slow(*host, fixed_ms, delay_ms, 0.0),
        "What a device spends on any step is part of the step.": first_slow(*host, 0.0, delay_ms, transfer_ms),
    }


def hidden_machine(work: Work, low: float, high: float) -> tuple[int, float, float, float, float, float]:
    """A host that is as fast as ``low`` to ``high`` devices."""
    rng = work.rng
    batch, compute_ms = int(rng.integers(16, 129)), float(rng.uniform(0.5, 2.0))
    input_ms = compute_ms / float(rng.uniform(low, high))
    return (
        batch,
        input_ms,
        compute_ms,
        float(rng.uniform(10, 40)),
        float(rng.uniform(0.05, 0.3)),
        float(rng.uniform(10, 60)),
    )


@check(
    "input-bound",
    "The first number of devices that waits",
    xp=10,
    hints=["What does the host have to prepare for each step: the examples of one device, or of all?"],
)
def first(work: Work) -> None:
    for _ in range(3):
        different: set[int] = set()
        while len(different) < 6:  # each mistake shows, and none looks like another
            machine = hidden_machine(work, 3, 12)
            want, mistakes = first_slow(*machine), mistaken_first(*machine)
            different = {want, *mistakes.values()}
        equal(work.call("input_bound_from", *machine), want, mistakes=mistakes)


@check("input-bound", "A host that keeps up", xp=5, hints=["Look at the last sentence of the task."])
def keeps_up(work: Work) -> None:
    machine = hidden_machine(work, 200, 400)
    equal(work.call("input_bound_from", *machine), 0, mistakes={"The host keeps up with 64 devices: return 0.": None})
