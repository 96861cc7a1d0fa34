"""A page of memory that all processes of a session share: what each is doing, and its pending failure.

PID 1 creates it before it forks. Every process can write all of it, learner code included, so PID 1 does not trust it:
it reads only a step, an action and a status, and only passes the status on.
"""

from __future__ import annotations

import mmap
import struct
from enum import IntEnum

_SLOT = 64
_STEP, _FAILURE_STEP, _FAILURE, _STATUS, _WORK, _EXIT, _INTERRUPTS, _CAME, _READY, _STARTS, _HANDLED = (
    0,
    8,
    16,
    17,
    18,
    20,
    24,
    32,
    40,
    48,
    56,
)
_NONE = -1


class ProcessStatus(IntEnum):
    """What PID 1 has done with a process."""

    starting = 0
    running = 1
    paused = 2
    slow = 3
    ended = 4


class ProcessActivity(IntEnum):
    """What a process reports that it is doing."""

    nothing = 0
    cell = 1
    waiting = 2
    """Waiting for another process, inside TensorFlow."""
    serving = 3
    """Serving others, in a cell that calls ``server.join()``."""


class FailureAction(IntEnum):
    """The failures that may be pending for a process at a step."""

    kill = 1
    pause = 2
    slow = 3


class SharedState:
    """One slot for each task of the cluster, by its index in ``Topology.tasks``."""

    def __init__(self, tasks: int) -> None:
        self._page = mmap.mmap(-1, max(1, tasks) * _SLOT)  # shared with children, belongs to no file
        self.tasks = tasks
        for task in range(tasks):
            self.begin(task, 0)

    def begin(self, task: int, start: int) -> None:
        """Reset the slot for a process with this number; the exit status of the previous one stays."""
        self._write("q", task, _STARTS, start)  # first, so that a reader of the new status finds the new number
        self.set_step(task, _NONE)
        self.take_failure(task)
        self.set_status(task, ProcessStatus.starting)
        self.set_work(task, ProcessActivity.nothing)
        self._write("q", task, _CAME, 0)
        self._write("q", task, _READY, 0)
        self._write("q", task, _HANDLED, 0)

    def starts(self, task: int) -> int:
        """The number of the latest process in this slot, which counts them."""
        return int(self._read("q", task, _STARTS))

    def step(self, task: int) -> int:
        """The step it has reached, -1 before the first."""
        return int(self._read("q", task, _STEP))

    def set_step(self, task: int, step: int) -> None:
        self._write("q", task, _STEP, step)

    def status(self, task: int) -> ProcessStatus:
        """Its status, as PID 1 has set it."""
        value = int(self._read("b", task, _STATUS))
        return ProcessStatus(value) if 0 <= value < len(ProcessStatus) else ProcessStatus.running

    def set_status(self, task: int, status: ProcessStatus) -> None:
        """Set it; only PID 1 calls this."""
        self._write("b", task, _STATUS, status)

    def work(self, task: int) -> ProcessActivity:
        """What it is doing."""
        value = int(self._read("b", task, _WORK))
        return ProcessActivity(value) if 0 <= value < len(ProcessActivity) else ProcessActivity.nothing

    def set_work(self, task: int, work: ProcessActivity) -> None:
        self._write("b", task, _WORK, work)

    def arrived(self, task: int) -> int:
        """How often it has arrived at the rendezvous of the processes that train together."""
        return int(self._read("q", task, _CAME))

    def arrive(self, task: int) -> int:
        """Count one more arrival at the rendezvous; returns how many there have been."""
        return self._count(task, _CAME)

    def withdraw(self, task: int) -> None:
        """Take back an arrival that did not lead to a connection."""
        self._count(task, _CAME, -1)

    def ready(self, task: int) -> int:
        """How often it was connected to the others after a rendezvous."""
        return int(self._read("q", task, _READY))

    def be_ready(self, task: int) -> None:
        """Count one more connection."""
        self._count(task, _READY)

    def interrupts(self, task: int) -> int:
        """How often it was interrupted."""
        return int(self._read("q", task, _INTERRUPTS))

    def interrupt(self, task: int) -> None:
        """Count an interrupt; only PID 1 calls this."""
        self._count(task, _INTERRUPTS)

    def commands_handled(self, task: int) -> int:
        """How many of the commands that it waits for PID 1 has carried out or ignored."""
        return int(self._read("q", task, _HANDLED))

    def count_command(self, task: int) -> None:
        """Count a command that the task waits for; only PID 1 calls this."""
        self._count(task, _HANDLED)

    def exit_status(self, task: int) -> int:
        """The exit status of the last process in this slot that ended, negative for a signal; 0 if none has ended.

        It stays while the next process lives, because the kernel may ask for it only then.
        """
        return int(self._read("h", task, _EXIT))

    def set_exit_status(self, task: int, status: int) -> None:
        """Set it; only PID 1 calls this."""
        self._write("h", task, _EXIT, status)

    def failure_at(self, task: int) -> int:
        """The step at which a failure is pending for it, or -1."""
        return int(self._read("q", task, _FAILURE_STEP))

    def await_step(self, task: int, step: int, action: FailureAction) -> None:
        """Make ``action`` pending until the task reaches ``step``; replaces an earlier one."""
        self._write("b", task, _FAILURE, action)
        self._write("q", task, _FAILURE_STEP, step)

    def take_failure(self, task: int) -> FailureAction | None:
        """Take the pending failure away, so that it happens only once."""
        value, at = int(self._read("b", task, _FAILURE)), self.failure_at(task)
        self._write("q", task, _FAILURE_STEP, _NONE)
        return FailureAction(value) if at != _NONE and 1 <= value <= len(FailureAction) else None

    def _count(self, task: int, at: int, by: int = 1) -> int:
        count = max(0, self._read("q", task, at) + by) % 2**62
        self._write("q", task, at, count)
        return count

    def _read(self, kind: str, task: int, at: int) -> int:
        value: int = struct.unpack_from(kind, self._page, task * _SLOT + at)[0]
        return value

    def _write(self, kind: str, task: int, at: int, value: int) -> None:
        struct.pack_into(kind, self._page, task * _SLOT + at, value)
