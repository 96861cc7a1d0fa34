"""For whom a process waits, which error of several is the cell's, and what is said beside one."""

from __future__ import annotations

import socket

import pytest

from runners.devices.topology import Task, Topology
from runners.kernel.advice import advice
from runners.kernel.board import Board, Status, Work
from runners.kernel.cluster import Failure, summary
from runners.kernel.place import Place
from runners.kernel.waiting import awaited


def _place(text: str) -> Place:
    topology = Topology.parse(text)
    board = Board(len(topology.tasks))
    ports = tuple(range(20_001, 20_001 + len(topology.tasks)))
    for number in range(len(topology.tasks)):
        board.set_status(number, Status.running)
        board.set_work(number, Work.cell)
    return Place(topology, 0, ports, board, socket.socket(), "0badcafe")


@pytest.mark.parametrize(
    ("status", "work", "waited_s", "why"),
    [
        (Status.ended, Work.cell, 3.0, ["ended"]),
        (Status.paused, Work.waiting, 3.0, ["paused"]),
        (Status.slow, Work.cell, 3.0, ["slow"]),
        (Status.running, Work.nothing, 3.0, ["done"]),
        (Status.running, Work.cell, 3.0, []),
        (Status.running, Work.cell, 7.0, ["late"]),
        (Status.running, Work.waiting, 60.0, []),
    ],
)
def test_who_is_held_gone_or_elsewhere_is_waited_for(
    status: Status, work: Work, waited_s: float, why: list[str]
) -> None:
    own = _place("workers:2+evaluator")
    own.board.set_status(1, status)
    own.board.set_work(1, work)
    own.board.set_status(2, Status.ended)
    assert awaited(own, own.board, waited_s) == [(1, reason) for reason in why]
    own.wishes.close()


def test_who_serves_a_coordinator_is_waited_for_only_where_it_is_held_or_gone() -> None:
    own = _place("ps:2+1")
    for number in (1, 2, 3):
        own.board.set_work(number, Work.nothing)
    assert awaited(own, own.board, 60.0) == []
    own.board.set_status(3, Status.paused)
    assert awaited(own, own.board, 3.0) == [(3, "paused")]
    own.wishes.close()


def test_the_error_of_who_failed_first_is_the_cells() -> None:
    zero, one, two = (Task("worker", n) for n in range(3))
    failures = [Failure(zero, "CancelledError", "cut", 2.0), Failure(one, "ValueError", "why", 1.0)]
    assert summary(failures) == ("ValueError", "in worker 1: why; in worker 0: CancelledError")
    alike = [Failure(zero, "ValueError", "x", 1.0), Failure(two, "ValueError", "x", 2.0)]
    assert summary(alike) == ("ValueError", "in worker 0 and worker 2: x")
    assert len(summary([Failure(zero, "E", "x" * 5000)])[1]) < 500


def test_advice_is_given_where_tensorflows_own_words_do_not_help() -> None:
    startup = "Collective ops must be configured at program startup"
    assert advice("RuntimeError", startup, [], 3) == "strategy-comes-first"
    keras = ["/x/site-packages/keras/src/utils/traceback_utils.py"]
    assert advice("ValueError", "Attempt to convert a value (PerReplica:{", keras, 3) == "keras-2-for-fit"
    assert advice("ValueError", "Attempt to convert a value (PerReplica:{", keras, 2) is None
    assert advice("ValueError", "PerReplica", ["/home/learner/x.py"], 3) is None
