"""Reports which process another process of a cluster waits for, so that a learner never watches a silent cell.

A thread watches the main thread, which waits if it stays in one TensorFlow call for seconds while the process computes
nothing. The shared state tells for whom: a process that has ended, is paused or slow, or is not in such a call itself.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from tensorflow.python.eager import context
from tensorflow.python.framework import errors_impl

from runners.guest.cluster import endpoints
from runners.guest.cluster.shared_state import ProcessActivity, ProcessStatus, SharedState
from runners.guest.cluster.task_context import TaskContext
from runners.guest.reporting import publisher
from runners.guest.runtime.thread_frames import current_frame
from runners.guest.tf_patches import coordinator_polls, rendezvous
from runners.guest.tf_patches.rendezvous import RENDEZVOUS_TIMEOUT_S

_LOOK_S = 0.2
_WAITS_S = 3.0
_LATE_S = 6.0
"""When a process that is merely elsewhere is named: by then it would have reported that it waits, too."""
_BUSY = 0.2
"""The fraction of a core above which a process counts as computing."""
_HEARS_S = 0.3
"""The time in which a computing main thread handles an interrupt."""
_NEAR = 8
"""The number of innermost frames that are searched for TensorFlow."""
_WAIT_FILES = ("/threading.py", "/queue.py", "/selectors.py", "/multiprocessing/pool.py")
"""Where Python waits on behalf of TensorFlow, which starts a collective of several devices in a pool of threads."""
_HELD = {ProcessStatus.ended: "ended", ProcessStatus.paused: "paused", ProcessStatus.slow: "slow"}


class StallDetector:
    """Watches the calling thread while it runs cells; ``own`` is this process's context."""

    def __init__(self, own: TaskContext) -> None:
        self._own = own
        self._main = threading.get_ident()
        self._in_cell = threading.Event()
        self._broken_off = False
        self._polled_since: float | None = None
        self._polled_for = set[int]()
        threading.Thread(target=self._look_on, daemon=True, name="waiting").start()

    @contextmanager
    def cell(self) -> Iterator[None]:
        """Watch while a cell runs."""
        self._own.shared_state.set_work(self._own.number, ProcessActivity.cell)
        self._polled_since = None
        self._in_cell.set()
        try:
            yield
        finally:
            self._in_cell.clear()
            self._own.shared_state.set_work(self._own.number, ProcessActivity.nothing)

    def look_at_polls(self) -> None:
        """Also report whom a program waits for when it keeps polling a coordinator."""
        coordinator_polls.report_polls(self._polled)

    def _polled(self, finished: bool) -> None:
        now = time.monotonic()
        if finished or self._polled_since is None:
            self._polled_since, self._polled_for = None if finished else now, set()
        elif now - self._polled_since >= _WAITS_S:
            self._say(now - self._polled_since, self._polled_for)

    def _look_on(self) -> None:
        while True:
            self._in_cell.wait()
            self._look_at_one_cell()

    def _look_at_one_cell(self) -> None:
        frame: FrameType | None = None
        since, cpu, said = time.monotonic(), time.process_time(), set[int]()
        heard = self._own.shared_state.interrupts(self._own.number)
        self._broken_off = False
        while self._in_cell.is_set():
            now, used = time.monotonic(), time.process_time()
            latest = current_frame(self._main)
            # Keep a reference to the frame, so that no later call gets the same address.
            if latest is not frame or used - cpu > _BUSY * max(_WAITS_S, now - since):
                frame, since, cpu, said = latest, now, used, set()
                self._set(ProcessActivity.cell)
            elif now - since >= _WAITS_S and latest is not None and is_in_tensorflow(latest):
                self._set(ProcessActivity.waiting)
                self._say(now - since, said)
            time.sleep(_LOOK_S)
            if self._own.shared_state.interrupts(self._own.number) != heard:
                heard = self._own.shared_state.interrupts(self._own.number)
                self._break_off("the run was stopped")

    def _break_off(self, why: str) -> None:
        """Abort a wait for others that the main thread cannot abort itself, because it handles no signals meanwhile."""
        before = current_frame(self._main)
        time.sleep(_HEARS_S)
        after = current_frame(self._main)
        if self._in_cell.is_set() and after is not None and before is after and is_in_tensorflow(after):
            context.context().abort_collective_ops(errors_impl.CANCELLED, why)
            if not self._broken_off:
                publisher.notice("wait-broken-off", lane=self._own.task.lane, task=self._own.task.lane)
            self._broken_off = True

    def _set(self, work: ProcessActivity) -> None:
        if self._in_cell.is_set():
            self._own.shared_state.set_work(self._own.number, work)

    def _say(self, waited_s: float, said: set[int]) -> None:
        for number, why in find_awaited(self._own, self._own.shared_state, waited_s):
            lane, other = self._own.task.lane, self._own.topology.tasks[number].lane
            if number not in said:
                said.add(number)
                where = self._own.address_of(number)
                publisher.notice(f"waiting-for-{why}", lane=lane, task=lane, other=other, address=where)
            if why == "done" and waited_s >= RENDEZVOUS_TIMEOUT_S:
                self._break_off(f"{other} has finished this cell and will not take part")


def is_in_tensorflow(frame: FrameType) -> bool:
    """Whether the innermost call is TensorFlow's, one of Python's made by TensorFlow, or our wait in its place."""
    here: FrameType | None = frame
    for _ in range(_NEAR):
        if here is None:
            return False
        if "/tensorflow/python/" in here.f_code.co_filename or here.f_code.co_filename == rendezvous.__file__:
            return True
        if not here.f_code.co_filename.endswith(_WAIT_FILES):
            return False
        here = here.f_back
    return False


def find_awaited(own: TaskContext, board: SharedState, waited_s: float) -> list[tuple[int, str]]:
    """Find the tasks that a task may be waiting for: number and ``ended``, ``paused``, ``slow``, ``done`` or ``late``.

    Processes that train together wait for each other; neither the evaluator nor a worker that the program has left out
    of its cluster is among them, and servers are never late.
    """
    found: list[tuple[int, str]] = []
    for number, task in enumerate(own.topology.tasks):
        if number == own.number or number in own.left_out or task.role == "evaluator":
            continue
        if why := _HELD.get(board.status(number)):
            found.append((number, why))
        elif endpoints.serves(own.topology, task):
            continue
        elif board.work(number) == ProcessActivity.nothing:
            found.append((number, "done"))
        elif board.work(number) == ProcessActivity.cell and waited_s >= _LATE_S:
            found.append((number, "late"))
    return found
