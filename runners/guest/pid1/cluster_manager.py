"""Manages the processes of a cluster in PID 1: forks them, carries out commands on them, and tracks their state.

Commands and the shared state may be forged by the learner's program, which owns all these processes. The worst it can
do with them is what it may do anyway: end, pause and restart its own processes.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import signal
import socket
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

from runners.guest.cluster import endpoints
from runners.guest.cluster.shared_state import FailureAction, ProcessStatus, SharedState
from runners.guest.cluster.task_context import MAX_COMMAND_BYTES, TaskContext
from runners.guest.runtime import worker
from runners.wire.topology import Topology

_STOPPED_S, _GOING_S = 0.09, 0.01
"""A slow process gets a tenth of the time."""
_MOST_STEP = 1_000_000_000
_TELL_S = 0.1
_LOOK_S = 1.0
"""How often a learner sees the progress of a process that has a pending failure, in seconds."""

Fork = Callable[[Callable[[], None], int], int]
"""Forks a child that calls this and exits; on failure it writes to the descriptor. Returns its process ID."""


class ClusterManager:
    """The processes of one start of a cluster; the first of them, the kernel, is not forked here.

    Args:
        topology: the cluster.
        fork: see ``Fork``.
        tell: called with ``members`` after every change.
    """

    def __init__(self, topology: Topology, fork: Fork, tell: Callable[[list[dict[str, Any]]], None]) -> None:
        self._topology = topology
        self._fork = fork
        self._tell = tell
        self._state = SharedState(len(topology.tasks))
        self._ports = endpoints.free_ports(len(topology.tasks))
        self._nonce = secrets.token_hex(4)
        self._pids: dict[int, int] = {}
        """The process ID of each living process by its task's number."""
        self._starts: Counter[int] = Counter()
        """How many processes of each task were started; what is in the shared page, anyone may have changed."""
        self._slow: set[int] = set()
        self._scheduled: dict[int, tuple[str, int]] = {}
        """The pending action and its step, by task. Kept here because learners' code can overwrite the shared state."""
        self._told_steps: list[int] = []
        self._toggle_at = 0.0
        self._stopped = False
        self._changed = False
        self._told_at = 0.0
        self.commands, self._commands_in = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._news, self.kernels_news = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        for end in (self.commands, self._news):
            end.setblocking(False)

    def place(self, number: int) -> TaskContext:
        return TaskContext(self._topology, number, self._ports, self._state, self._commands_in, self._nonce)

    def leave_in_child(self, kernel: bool) -> None:
        """Close, in a child, the descriptors that only PID 1 may have and, unless it is the kernel, the news socket."""
        self.commands.close()
        self._news.close()
        if not kernel:
            self.kernels_news.close()

    def begin(self, kernel: int) -> None:
        """Start the other processes; ``kernel`` is the kernel's process ID."""
        self.kernels_news.close()
        self._joined(0, kernel)
        self._tell(self.members())  # the kernel may be ready before all others have started
        for number in range(1, len(self._topology.tasks)):
            self._start(number)
        self._tell(self.members())

    def close(self) -> None:
        """Release everything: every process has ended."""
        for end in (self.commands, self._commands_in, self._news, self.kernels_news):
            end.close()
        self._tell([])

    def members(self) -> list[dict[str, Any]]:
        """The fields of a ``protocol.ClusterMember`` for each, in order."""
        return [self._member(number) for number in range(len(self._topology.tasks))]

    def _member(self, number: int) -> dict[str, Any]:
        task, step = self._topology.tasks[number], self._state.step(number)
        action, at_step = self._scheduled.get(number, (None, None))
        return {
            "task": task.lane,
            "state": self._state.status(number).name,
            "address": endpoints.address(self._ports[number]),
            "step": step if 0 <= step <= _MOST_STEP else None,
            "scheduled": None if action is None else {"action": action, "at_step": at_step},
            "serves": endpoints.serves(self._topology, task),
            "restarted": self._starts[number] > 1,
        }

    def interrupt(self) -> None:
        """Send SIGINT to all processes but the kernel; paused ones are resumed first, or they would not get it."""
        for number, pid in self._pids.items():
            self._let_go_on(number)
            self._state.interrupt(number)
            if number:
                _signal(pid, signal.SIGINT)
        self._changed = True

    def ended(self, pid: int, status: int) -> None:
        """Note that the process ``pid`` was reaped."""
        for number, own in list(self._pids.items()):
            if own == pid:
                del self._pids[number]
                self._slow.discard(number)
                self._cancel(number)
                self._state.set_exit_status(number, status)
                self._state.set_status(number, ProcessStatus.ended)
                self._changed = True

    def read_commands(self) -> None:
        """Read one command and carry it out."""
        try:
            data = self.commands.recv(MAX_COMMAND_BYTES)
            command = json.loads(data)
        except (OSError, ValueError, RecursionError):
            return
        if not isinstance(command, dict):
            return
        if command.get("reached") is True:
            self._reached(command.get("task"), command.get("action"))
        else:
            self.apply(command.get("task"), command.get("action"), command.get("at_step"))
        sender = command.get("sender")
        if isinstance(sender, int) and 0 <= sender < len(self._topology.tasks):
            self._state.count_command(sender)

    def apply(self, task: Any, action: Any, at_step: Any = None, *, late: bool = True) -> str:
        """Do ``action`` to the task of that lane, or make it pending for a step; invalid commands are ignored.

        Args:
            task: a lane.
            action: one of ``protocol.InjectedFailure``.
            at_step: the step to wait for; None: now.
            late: do it now if the task is already past that step, and do nothing if it has ended, because each process
                repeats the commands of the code. Otherwise, the failure of an ended task waits for its next process.

        Returns:
            ``done``, ``scheduled``, ``passed`` (the task is past the step, nothing was done), ``not-scheduled`` (there
            was nothing to cancel: the action was carried out or canceled before), or ``nonsense``.
        """
        number = self._number(task)
        waits = isinstance(at_step, int) and not isinstance(at_step, bool) and 0 <= at_step <= _MOST_STEP
        if number is None or not isinstance(action, str) or (at_step is not None and not waits):
            return "nonsense"
        self._changed = True
        if action == "cancel":
            return "done" if self._cancel(number) else "not-scheduled"
        if waits and action in FailureAction.__members__:
            ended = self._starts[number] > 0 and number not in self._pids
            if not late if ended else self._state.step(number) < at_step:
                self._scheduled[number] = action, at_step
                self._state.await_step(number, at_step, FailureAction[action])
                return "scheduled"
            if not late:
                return "passed"
        if action == self._scheduled.get(number, ("",))[0]:  # do not do it a second time
            self._cancel(number)
        self._apply_now(number, action)
        return "done"

    def report(self) -> None:
        """Report the members immediately, because somebody waits for it."""
        self._changed, self._told_at = False, time.monotonic()
        self._tell(self.members())

    def _number(self, task: Any) -> int | None:
        return next((n for n, known in enumerate(self._topology.tasks) if known.lane == task), None)

    def _reached(self, task: Any, action: Any) -> None:
        """A process reports that it is at its step. It continues if that failure was canceled meanwhile."""
        number = self._number(task)
        if number is None or number not in self._scheduled:
            return
        scheduled, at_step = self._scheduled[number]
        if scheduled == action and self._state.step(number) >= at_step:
            self._cancel(number)
            self._apply_now(number, action)
            self._changed = True

    def _cancel(self, number: int) -> bool:
        """Cancel its pending action; returns whether there was one. From then on it is certain not to happen."""
        self._state.take_failure(number)
        return self._scheduled.pop(number, None) is not None

    def _apply_now(self, number: int, action: Any) -> None:
        pid = self._pids.get(number)
        match action:
            case "kill" if number:
                self._end(number)
            case "kill" if pid is not None:
                self._state.set_status(number, ProcessStatus.ended)
                _signal(pid, signal.SIGKILL)  # the kernel itself: PID 1 reports its end in more detail
            case "pause" if pid is not None:
                self._slow.discard(number)
                self._state.set_status(number, ProcessStatus.paused)
                _signal(pid, signal.SIGSTOP)
            case "slow" if pid is not None:
                self._let_go_on(number)
                self._slow.add(number)
                self._state.set_status(number, ProcessStatus.slow)
            case "resume":
                self._let_go_on(number)
            case "restart" if number and pid is None:
                try:
                    self._start(number)
                except OSError:  # the session is at its process limit
                    self._state.set_status(number, ProcessStatus.ended)

    def tick(self) -> float | None:
        """Do what is due; returns the seconds until more is due, None for never.

        The supervisor gets at most ten updates a second: a program may cause thousands.
        """
        now = time.monotonic()
        if self._scheduled and (seen := [self._state.step(number) for number in self._scheduled]) != self._told_steps:
            self._told_steps, self._changed = seen, True
        if self._changed and now - self._told_at >= _TELL_S:
            self._changed, self._told_at = False, now
            self._tell(self.members())
        waits = [self._turn_s(now)] if self._slow else []
        if self._changed:
            waits.append(max(0.0, self._told_at + _TELL_S - now))
        if self._scheduled:
            waits.append(_LOOK_S)
        return min(waits, default=None)

    def _turn_s(self, now: float) -> float:
        """Stop or continue the slow processes when due; returns the seconds until the next turn."""
        if now >= self._toggle_at:
            self._stopped = not self._stopped
            self._toggle_at = now + (_STOPPED_S if self._stopped else _GOING_S)
            for number in self._slow:
                _signal(self._pids[number], signal.SIGSTOP if self._stopped else signal.SIGCONT)
        return max(0.0, self._toggle_at - now)

    def _let_go_on(self, number: int) -> None:
        self._slow.discard(number)
        if (pid := self._pids.get(number)) is not None:
            _signal(pid, signal.SIGCONT)
            self._state.set_status(number, ProcessStatus.running)

    def _end(self, number: int) -> None:
        pid = self._pids.get(number)
        if pid is None:
            return
        _signal(pid, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            _, status = os.waitpid(pid, 0)
            self.ended(pid, os.waitstatus_to_exitcode(status))

    def _start(self, number: int) -> None:
        """Fork a task's process and pass the kernel its ends of the link and pipes. Raises OSError if that fails."""
        self._starts[number] += 1
        self._state.begin(number, self._starts[number])
        if number in self._scheduled:  # after the last process had ended
            action, at_step = self._scheduled[number]
            self._state.await_step(number, at_step, FailureAction[action])
        with contextlib.ExitStack() as ours:
            link, kernels_link = map(ours.enter_context, socket.socketpair())
            out, to_out = _pipe(ours)
            err, to_err = _pipe(ours)

            def work() -> None:
                self.leave_in_child(kernel=False)
                kernels_link.close()
                os.close(out)
                os.close(err)
                worker.serve(self.place(number), link, to_out, to_err)

            pid = self._fork(work, to_err)
            with contextlib.suppress(OSError):  # a kernel that is about to end, or that does not read
                word = json.dumps({"joined": number, "start": self._starts[number]}).encode()
                socket.send_fds(self._news, [word], (kernels_link.fileno(), out, err))
        self._joined(number, pid)

    def _joined(self, number: int, pid: int) -> None:
        self._pids[number] = pid
        self._state.set_status(number, ProcessStatus.running)


def _pipe(owner: contextlib.ExitStack) -> tuple[int, int]:
    ends = os.pipe()
    for end in ends:
        owner.callback(os.close, end)
    return ends


def _signal(pid: int, signum: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signum)
