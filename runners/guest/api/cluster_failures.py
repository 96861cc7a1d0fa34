"""Failures that a learner's code injects into processes of the cluster, to see how the strategy copes.

Every process that runs a cell may call these functions, and they are idempotent. PID 1 carries them out, and they
return once it has: a failure for the next step is pending before the program gets there.
"""

from __future__ import annotations

import threading
import time

from runners.guest.cluster import task_context
from runners.guest.cluster.shared_state import FailureAction, ProcessStatus

_DONE_S = 1.0
_one_command = threading.Lock()
"""PID 1 only counts the commands of a process, so the process waits for one at a time."""


def kill(task: str, at_step: int | None = None) -> None:
    """Kill a process, as a crash of its machine would: ``lockstep.kill("worker 1", at_step=5)``.

    Args:
        task: its lane, such as ``worker 1``, ``ps 0`` or ``coordinator``.
        at_step: wait until that process has reached this step; None: do it now.

    Raises:
        ValueError: there is no such process; the message lists the existing ones.
    """
    _do(task, "kill", at_step)


def pause(task: str, at_step: int | None = None) -> None:
    """Pause a process until ``resume``; it keeps its memory. Arguments and errors are those of ``kill``."""
    _do(task, "pause", at_step)


def slow(task: str, at_step: int | None = None) -> None:
    """Slow a process down to a tenth of its time until ``resume``. Arguments and errors are those of ``kill``."""
    _do(task, "slow", at_step)


def resume(task: str) -> None:
    """Let a paused or slow process continue. Raises the same errors as ``kill``."""
    _do(task, "resume")


def restart(task: str) -> None:
    """Restart an ended process at the same address and without its state. Raises the same errors as ``kill``."""
    _do(task, "restart")


def apply_pending(action: FailureAction) -> None:
    """Apply the failure that was pending for this process at its step, before it continues.

    PID 1 decides: if the learner has just canceled the failure, nothing is done and the process continues.
    """
    here = task_context.current_context()
    assert here
    here.send_command(here.task.lane, action.name, reached=True)
    end = time.monotonic() + _DONE_S
    while here.shared_state.status(here.number) == ProcessStatus.running and time.monotonic() < end:
        time.sleep(0.001)


def _do(task: str, action: str, at_step: int | None = None) -> None:
    here = task_context.current_context()
    if here is None:
        raise ValueError(f"there is no cluster here to {action}: choose workers:2 or ps:2+1")
    known = [one.lane for one in here.topology.tasks]
    if task not in known:
        raise ValueError(f"there is no {task!r} in this cluster; its processes are: {', '.join(known)}")
    if action == "restart" and task == known[0]:
        raise ValueError(f"{task} is the notebook's own process: restart the session instead")
    if at_step is not None and at_step < 0:
        raise ValueError(f"steps count from 0, so there is no step {at_step}")
    with _one_command:
        handled = here.shared_state.commands_handled(here.number)
        here.send_command(task, action, at_step, counted=True)
        end = time.monotonic() + _DONE_S
        while here.shared_state.commands_handled(here.number) == handled and time.monotonic() < end:
            time.sleep(0.001)
