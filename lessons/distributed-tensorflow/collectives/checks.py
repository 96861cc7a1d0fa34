"""Checks of "Collectives from scratch": schedules, carried out on a network that belongs to the check."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from runners.checks import Work, check, fail

Message = tuple[int, int, int, str]


def schedule_of(work: Work, name: str, devices: int, *args: int, how: str, pieces: int) -> list[list[Message]]:
    """The schedule that a function of the submission returns, with only messages that a network could carry."""
    schedule: Any = work.call(name, devices, *args)
    if not is_sequence(schedule) or not all(map(is_sequence, schedule)):
        fail("A schedule is a list of rounds, and each round is a list of messages.")
    rounds = [[message_of(message, how) for message in messages] for messages in schedule]
    call = f"{name}({', '.join(map(str, (devices, *args)))})"
    for number, messages in enumerate(rounds, start=1):
        where = {"call": call, "number": number}
        for message in messages:
            source, target, piece, _ = message
            if not (0 <= source < devices and 0 <= target < devices and 0 <= piece < pieces):
                fail("{call}, round {number}: there is no such device or piece: {what}.", what=message, **where)
            if source == target:
                fail("{call}, round {number}: device {device} sends to itself.", device=source, **where)
        if len({source for source, *_ in messages}) < len(messages):
            fail("{call}, round {number}: a device sends more than one message.", **where)
        if len({target for _, target, *_ in messages}) < len(messages):
            fail("{call}, round {number}: a device receives more than one message.", **where)
    return rounds


def is_sequence(value: Any) -> bool:
    return isinstance(value, (list, tuple)) or (isinstance(value, np.ndarray) and value.ndim > 0)


def message_of(message: Any, how: str) -> Message:
    """A message with numbers of any kind, such as NumPy's, as Python's."""
    if not is_sequence(message) or len(message) != 4 or str(message[3]) != how:
        fail('A message has to be (source, target, piece, "{how}").', how=how)
    try:
        source, target, piece = map(operator.index, message[:3])
    except TypeError:
        fail("The source, the target and the piece of a message have to be whole numbers.")
    return source, target, piece, how


def carry_out(rounds: list[list[Message]], values: np.ndarray) -> np.ndarray:
    """What the devices have in the end. values: (devices, pieces)"""
    values = values.copy()
    for messages in rounds:
        numbers = [values[source, piece] for source, _, piece, _ in messages]
        for (_, target, piece, how), number in zip(messages, numbers, strict=True):
            values[target, piece] = number + (values[target, piece] if how == "add" else 0)
    return values


def broadcast(work: Work, devices: int, root: int) -> tuple[list[list[Message]], np.ndarray]:
    """The rounds of a broadcast, and which value every device has in the end; all begin with different ones."""
    rounds = schedule_of(work, "broadcast_tree", devices, root, how="copy", pieces=1)
    return rounds, carry_out(rounds, np.arange(devices, dtype=float)[:, np.newaxis]).ravel()


def compare_broadcast(work: Work, devices: int, root: int) -> None:
    rounds, values = broadcast(work, devices, root)
    if (values != root).any():
        fail(
            "With {devices} devices and root {root}, {number} devices do not have the root's value in the end.",
            devices=devices,
            root=root,
            number=int((values != root).sum()),
        )
    fewest = (devices - 1).bit_length()
    if len(rounds) > fewest:
        fail(
            "With {devices} devices the schedule takes {got} rounds. Fewer are possible: all devices that have the "
            "value can send it.",
            devices=devices,
            got=len(rounds),
        )


@check(
    "broadcast-tree",
    "All devices have the value, after as few rounds as possible",
    xp=15,
    hints=[
        "How many devices can send in round 3, if 4 have the value?",
        "Put the devices in a row. Those that have the value are at its beginning.",
    ],
)
def powers_of_two(work: Work) -> None:
    for devices in (2, 4, 8, 2 ** int(work.rng.integers(4, 7))):
        compare_broadcast(work, devices, 0)


@check(
    "broadcast-tree",
    "Any number of devices",
    xp=10,
    hints=["In the last round there may be fewer devices left than could send."],
)
def any_number(work: Work) -> None:
    for devices in (1, 3, 6, int(work.rng.integers(9, 16)), int(work.rng.integers(17, 32))):
        compare_broadcast(work, devices, 0)


@check(
    "broadcast-tree",
    "Any root",
    xp=10,
    hints=["Let the row of devices begin with the root."],
)
def any_root(work: Work) -> None:
    for devices in (2, int(work.rng.integers(5, 9)), int(work.rng.integers(9, 30))):
        compare_broadcast(work, devices, int(work.rng.integers(1, devices)))


def compare_reduce_scatter(work: Work, devices: int) -> None:
    rounds = schedule_of(work, "reduce_scatter_ring", devices, how="add", pieces=devices)
    for messages in rounds:
        for source, target, *_ in messages:
            if target != (source + 1) % devices:
                fail(
                    "Device {device} sends to device {target}, not to its right neighbor.", device=source, target=target
                )
    values = 2.0 ** work.rng.permutation(devices * devices).reshape(devices, devices)
    result = carry_out(rounds, values)
    complete = result == values.sum(axis=0)
    if not complete.diagonal().all():
        if complete.any(axis=0).all():
            fail("Every piece is complete on some device, but not on the device of its own number.")
        fail("With {devices} devices, a piece does not hold the sum of all devices in the end.", devices=devices)
    if len(rounds) > devices - 1:
        fail("With {devices} devices the schedule takes {got} rounds.", devices=devices, got=len(rounds))


@check(
    "reduce-scatter-ring",
    "Four devices",
    xp=15,
    hints=[
        "A device sends on in the next round what it has received in this one. Whose number does that piece have?",
        "Piece 0 has to arrive at device 0 in the last round. Where does it start?",
    ],
)
def four_devices(work: Work) -> None:
    compare_reduce_scatter(work, 4)


@check("reduce-scatter-ring", "Any number of devices", xp=15, hints=["How many hops does a piece need?"])
def any_ring(work: Work) -> None:
    for devices in (2, 3, int(work.rng.integers(5, 7))):
        compare_reduce_scatter(work, devices)
