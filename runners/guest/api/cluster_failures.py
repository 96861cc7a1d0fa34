"""What a learner does to a process of the cluster from code, to see what the strategy makes of it.

Every process that runs a cell may call these; done twice they change nothing. PID 1 carries them out.
"""

from __future__ import annotations

import time

from runners.guest.cluster import task_context
from runners.guest.cluster.shared_state import FailureAction, ProcessStatus

_DONE_S = 1.0


def kill(task: str, at_step: int | None = None) -> None:
    """End a process at once, as a crash of its machine would: ``lockstep.kill("worker 1", at_step=5)``.

    Args:
        task: its lane, as in ``worker 1``, ``ps 0``, ``coordinator``.
        at_step: wait until that process has reached this step; None: now.

    Raises:
        ValueError: there is no such process; the message lists those that there are.
    """
    _do(task, "kill", at_step)


def pause(task: str, at_step: int | None = None) -> None:
    """Stop a process until ``resume``; its memory stays as it is. As ``kill`` otherwise."""
    _do(task, "pause", at_step)


def slow(task: str, at_step: int | None = None) -> None:
    """Leave a process a tenth of its time until ``resume``. As ``kill`` otherwise."""
    _do(task, "slow", at_step)


def resume(task: str) -> None:
    """Let a process that is paused or slow go on. Raises as ``kill``."""
    _do(task, "resume")


def restart(task: str) -> None:
    """Restart a process that has ended, at the same address and with no memory of before. Raises as ``kill``."""
    _do(task, "restart")


def apply_pending(action: FailureAction) -> None:
    """Have done to this process what awaited it at its step, before it goes on.

    PID 1 decides: where the learner took the fault back a moment ago, nothing is done and the process goes on.
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
        raise ValueError(f"there is no {task!r} in this cluster; there is {', '.join(known)}")
    if action == "restart" and task == known[0]:
        raise ValueError(f"{task} is the notebook's own process: restart the session instead")
    if at_step is not None and at_step < 0:
        raise ValueError(f"steps count from 0, so {at_step} never comes")
    here.send_command(task, action, at_step)
