"""Checks of "Ring, tree, hierarchical": a formula on hidden networks, and schedules on a network of the check's own."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import numpy as np

from runners.checks import Work, check, close, fail

Message = tuple[int, int, list[int], str]


def crossing(devices: int, alpha: float, beta: float, **changed: float) -> float:
    """Where ring and tree cross. ``changed`` makes a usual mistake."""
    parts = {
        "levels": math.ceil(math.log2(devices)),
        "ways": 2,
        "ring_rounds": 2 * (devices - 1),
        "ring_values": 2 * (devices - 1) / devices,
    } | changed
    tree_rounds = parts["ways"] * parts["levels"]
    if tree_rounds == parts["ring_values"]:
        return math.nan
    return alpha / beta * (parts["ring_rounds"] - tree_rounds) / (tree_rounds - parts["ring_values"])


def compare_crossover(work: Work, devices: int) -> None:
    alpha, beta = float(work.rng.uniform(1, 50)), float(work.rng.uniform(10, 900))
    network = devices, alpha, beta
    mistakes = {
        "This does not depend on the number of devices.": alpha / beta,
        "The number of levels of a tree is a whole number.": crossing(*network, levels=math.log2(devices)),
        "Round the number of levels up.": crossing(*network, levels=math.floor(math.log2(devices))),
        "A tree has as many levels as the logarithm to the base 2.": crossing(*network, levels=math.log(devices)),
        "In a tree, values go up and come down.": crossing(*network, ways=1),
        "In a ring, pieces go around twice.": crossing(
            *network, ring_rounds=devices - 1, ring_values=(devices - 1) / devices
        ),
        "A round of the ring carries one piece, not a whole value.": crossing(*network, ring_values=2 * (devices - 1)),
        "The ring sends a little less than two values.": crossing(*network, ring_values=2),
        "A ring takes N - 1 rounds each way, not N.": crossing(*network, ring_rounds=2 * devices, ring_values=2),
    }
    # With so few devices that several mistakes give the same result, it says nothing about which of them was made.
    alike = {what: [other for other in mistakes.values() if math.isclose(other, mistakes[what])] for what in mistakes}
    close(
        work.call("crossover", *network),
        work.reference("crossover", *network),
        rtol=1e-6,
        atol=1e-9,
        mistakes={what: results[0] for what, results in alike.items() if len(results) == 1},
    )


@check(
    "crossover",
    "Powers of two",
    xp=15,
    hints=[
        "Set the two times of the table equal. Which terms have W?",
        "Collect the terms with alpha on one side and those with beta on the other.",
    ],
)
def powers_of_two(work: Work) -> None:
    for devices in (8, 4, 2 ** int(work.rng.integers(4, 8))):
        compare_crossover(work, devices)


@check("crossover", "Any number of devices", xp=10, hints=["math.ceil rounds up. So does (devices - 1).bit_length()."])
def any_number(work: Work) -> None:
    for devices in (7, int(work.rng.integers(9, 16)), int(work.rng.integers(17, 32)), 2, 3):
        compare_crossover(work, devices)


def schedule_of(work: Work, machines: int, gpus: int) -> list[list[Message]]:
    """The schedule of the submission, with only messages that a network could carry."""
    devices = machines * gpus
    schedule: Any = work.call("hierarchical", machines, gpus)
    if not isinstance(schedule, list) or not all(isinstance(messages, (list, tuple)) for messages in schedule):
        fail("A schedule is a list of rounds, and each round is a list of messages.")
    rounds: list[list[Message]] = []
    for number, messages in enumerate(schedule):
        for message in messages:
            if not isinstance(message, (list, tuple)) or len(message) != 4 or str(message[3]) not in ("add", "copy"):
                fail('A message has to be (source, target, [pieces], "add" or "copy").')
            source, target, pieces, _ = message
            if not isinstance(pieces, (list, tuple)) or not all(
                isinstance(part, (int, np.integer)) for part in (source, target, *pieces)
            ):
                fail("The source and the target of a message have to be whole numbers, and its pieces a list of them.")
            if not all(0 <= part < devices for part in (source, target, *pieces)):
                fail("Round {number}: there is no such device or piece: {what}.", number=number, what=message)
            if source == target:
                fail("Round {number}: device {device} sends to itself.", number=number, device=source)
            if len(set(pieces)) < len(pieces):
                fail("Round {number}: a message has the same piece twice.", number=number)
        if len({source for source, *_ in messages}) < len(messages):
            fail("Round {number}: a device sends more than one message.", number=number)
        if len({target for _, target, *_ in messages}) < len(messages):
            fail("Round {number}: a device receives more than one message.", number=number)
        rounds.append(
            [
                (int(source), int(target), [int(piece) for piece in pieces], str(how))
                for source, target, pieces, how in messages
            ]
        )
    return rounds


def carry_out(rounds: list[list[Message]], values: np.ndarray) -> np.ndarray:
    """What the devices have in the end. values: (devices, pieces)"""
    values = values.copy()
    for messages in rounds:
        before = values.copy()
        for source, target, pieces, how in messages:
            values[target, pieces] = before[source, pieces] + (before[target, pieces] if how == "add" else 0)
    return values


def all_reduce(work: Work, machines: int, gpus: int) -> list[list[Message]]:
    """The rounds of a schedule that is an all-reduce of hidden numbers."""
    rounds = schedule_of(work, machines, gpus)
    devices = machines * gpus
    values = work.rng.integers(1, 1 << 40, (devices, devices))
    wrong = carry_out(rounds, values) != values.sum(axis=0)
    if wrong.any():
        fail(
            "With {machines} machines of {gpus} GPUs, {number} devices do not have the sum of all in the end.",
            machines=machines,
            gpus=gpus,
            number=int(wrong.any(axis=1).sum()),
        )
    return rounds


def machines_and_gpus(work: Work) -> list[tuple[int, int]]:
    """Shapes of a cluster, the first of them the one that learners see."""
    return [(2, 4), (3, 2), (int(work.rng.integers(4, 6)), 3), (1, 3), (3, 1)]


@check(
    "hierarchical",
    "All devices have the sum",
    xp=15,
    hints=[
        "A group within a machine is the GPUs of that machine. Each of them needs a block of pieces.",
        "A group between machines has one GPU of each machine, always with the same number.",
    ],
)
def sums(work: Work) -> None:
    for shape in machines_and_gpus(work):
        all_reduce(work, *shape)


@check(
    "hierarchical",
    "No device sends more than in a ring",
    xp=10,
    hints=["If one GPU of each machine does the work between the machines, the others are idle."],
)
def bytes_of_devices(work: Work) -> None:
    for machines, gpus in machines_and_gpus(work):
        sent: Counter[int] = Counter()
        for messages in all_reduce(work, machines, gpus):
            sent.update({source: len(pieces) for source, _, pieces, _ in messages})
        devices = machines * gpus
        if max(sent.values()) > 2 * (devices - 1):
            fail(
                "With {machines} machines of {gpus} GPUs, a device sends {got} values. In a ring it would send {most}.",
                machines=machines,
                gpus=gpus,
                got=max(sent.values()) / devices,
                most=2 * (devices - 1) / devices,
            )


@check(
    "hierarchical",
    "As little as possible leaves a machine",
    xp=15,
    hints=["How much of the machine's sum is left for each of its GPUs after the reduce-scatter within the machine?"],
)
def bytes_of_machines(work: Work) -> None:
    for machines, gpus in machines_and_gpus(work):
        left: Counter[int] = Counter()
        for messages in all_reduce(work, machines, gpus):
            for source, target, pieces, _ in messages:
                if source // gpus != target // gpus:
                    left[source // gpus] += len(pieces)
        if max(left.values(), default=0) > 2 * (machines - 1) * gpus:
            fail(
                "With {machines} machines of {gpus} GPUs, {got} values leave a machine. {most} are enough.",
                machines=machines,
                gpus=gpus,
                got=max(left.values()) / (machines * gpus),
                most=2 * (machines - 1) / machines,
            )


@check(
    "hierarchical",
    "As few rounds as the two rings need",
    xp=10,
    hints=["All groups work at the same time. rings() takes a list of groups."],
)
def few_rounds(work: Work) -> None:
    for machines, gpus in machines_and_gpus(work):
        rounds = all_reduce(work, machines, gpus)
        most = 2 * (machines - 1) + 2 * (gpus - 1)
        if len(rounds) > most:
            fail(
                "With {machines} machines of {gpus} GPUs, the schedule takes {got} rounds. {most} are enough.",
                machines=machines,
                gpus=gpus,
                got=len(rounds),
                most=most,
            )
