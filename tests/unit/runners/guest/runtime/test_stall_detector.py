"""For which process another waits, which of several errors is that of the cell, and which hint it gets."""

from __future__ import annotations

import socket
import sys
import threading
import time
from multiprocessing.pool import ThreadPool

import pytest

from runners.guest.cluster.shared_state import ProcessActivity, ProcessStatus, SharedState
from runners.guest.cluster.task_context import TaskContext
from runners.guest.runtime.peers import TaskFailure, summarize_failures
from runners.guest.runtime.stall_detector import find_awaited, is_in_tensorflow
from runners.wire.topology import Task, Topology


def _place(text: str) -> TaskContext:
    topology = Topology.parse(text)
    board = SharedState(len(topology.tasks))
    ports = tuple(range(20_001, 20_001 + len(topology.tasks)))
    for number in range(len(topology.tasks)):
        board.set_status(number, ProcessStatus.running)
        board.set_work(number, ProcessActivity.cell)
    return TaskContext(topology, 0, ports, board, socket.socket(), "0badcafe")


@pytest.mark.parametrize(
    ("status", "work", "waited_s", "why"),
    [
        (ProcessStatus.ended, ProcessActivity.cell, 3.0, ["ended"]),
        (ProcessStatus.paused, ProcessActivity.waiting, 3.0, ["paused"]),
        (ProcessStatus.slow, ProcessActivity.cell, 3.0, ["slow"]),
        (ProcessStatus.running, ProcessActivity.nothing, 3.0, ["done"]),
        (ProcessStatus.running, ProcessActivity.cell, 3.0, []),
        (ProcessStatus.running, ProcessActivity.cell, 7.0, ["late"]),
        (ProcessStatus.running, ProcessActivity.waiting, 60.0, []),
    ],
)
def test_who_is_held_gone_or_elsewhere_is_waited_for(
    status: ProcessStatus, work: ProcessActivity, waited_s: float, why: list[str]
) -> None:
    own = _place("workers:2+evaluator")
    own.shared_state.set_status(1, status)
    own.shared_state.set_work(1, work)
    own.shared_state.set_status(2, ProcessStatus.ended)
    assert find_awaited(own, own.shared_state, waited_s) == [(1, reason) for reason in why]
    own.commands.close()


def test_nobody_waits_for_a_worker_that_the_program_has_left_out_of_its_cluster() -> None:
    own = _place("workers:3")
    for number in (1, 2):
        own.shared_state.set_work(number, ProcessActivity.nothing)
    own.left_out.add(1)
    assert find_awaited(own, own.shared_state, 60.0) == [(2, "done")]
    own.commands.close()


def test_who_serves_a_coordinator_is_waited_for_only_where_it_is_held_or_gone() -> None:
    own = _place("ps:2+1")
    for number in (1, 2, 3):
        own.shared_state.set_work(number, ProcessActivity.nothing)
    assert find_awaited(own, own.shared_state, 60.0) == []
    own.shared_state.set_status(3, ProcessStatus.paused)
    assert find_awaited(own, own.shared_state, 3.0) == [(3, "paused")]
    own.commands.close()


def _waits_in_tensorflow(thread: threading.Thread) -> bool:
    return is_in_tensorflow(sys._current_frames()[thread.ident or 0])


@pytest.mark.parametrize(
    ("file", "call", "waits"),
    [
        ("/tensorflow/python/distribute/cross_device_ops.py", "pool.apply(wait)", True),
        ("/tensorflow/python/distribute/cross_device_ops.py", "wait()", True),
        ("/home/learner/cell.py", "pool.apply(wait)", False),
    ],
)
def test_a_wait_that_tensorflow_leaves_to_threads_is_its_own(file: str, call: str, waits: bool) -> None:
    end, pool = threading.Event(), ThreadPool(1)
    code = compile(call, file, "eval")
    thread = threading.Thread(target=eval, args=(code, {"pool": pool, "wait": end.wait}))
    thread.start()
    try:
        give_up_at = time.monotonic() + 60
        while _waits_in_tensorflow(thread) != waits and time.monotonic() < give_up_at:  # it may be on its way there
            end.wait(0.01)
        assert _waits_in_tensorflow(thread) == waits
    finally:
        end.set()
        thread.join()
        pool.close()
        pool.join()


def test_the_first_error_is_that_of_the_cell() -> None:
    zero, one, two = (Task("worker", n) for n in range(3))
    failures = [TaskFailure(zero, "CancelledError", "cut", 2.0), TaskFailure(one, "ValueError", "why", 1.0)]
    assert summarize_failures(failures) == ("ValueError", "in worker 1: why; in worker 0: CancelledError")
    alike = [TaskFailure(zero, "ValueError", "x", 1.0), TaskFailure(two, "ValueError", "x", 2.0)]
    assert summarize_failures(alike) == ("ValueError", "in worker 0 and worker 2: x")
    syntax = [f"invalid syntax (<ipython-input-{n}-e743b29e1f4e>, line 24)" for n in (1, 3)]  # worker 1 has run more
    failures = [TaskFailure(zero, "SyntaxError", syntax[0], 1.0), TaskFailure(one, "SyntaxError", syntax[1], 2.0)]
    assert summarize_failures(failures)[1] == "in worker 0 and worker 1: invalid syntax (line 24)"
    assert len(summarize_failures([TaskFailure(zero, "E", "x" * 5000)])[1]) < 500
