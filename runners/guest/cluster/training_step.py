"""Tracks the step that this process's training has reached, for injected failures with ``at_step``.

The hooks of ``fit`` and ``lockstep.log`` call ``reached``; it costs less than a microsecond.
"""

from __future__ import annotations

from collections.abc import Callable

from runners.guest.cluster.shared_state import FailureAction, SharedState

_board: SharedState | None = None
_task = 0
_carry_out: Callable[[FailureAction], None] | None = None


def attach(board: SharedState, task: int, carry_out: Callable[[FailureAction], None]) -> None:
    """Become process number ``task`` of a cluster; ``carry_out`` applies a failure that was pending for a step."""
    global _board, _task, _carry_out
    _board, _task, _carry_out = board, task, carry_out


def reset() -> None:
    """Forget the step: a run begins or ends."""
    if _board is not None:
        _board.set_step(_task, -1)


def waits_in_vain() -> bool:
    """Whether a failure waits for a step of this process, and the run has counted none."""
    return _board is not None and _board.failure_at(_task) >= 0 and _board.step(_task) < 0


def reached(step: int) -> None:
    """Report that training has reached ``step``, counted as the learner counts. Any thread may call this."""
    if _board is None or _carry_out is None:
        return
    _board.set_step(_task, max(0, min(int(step), 2**62)))
    if 0 <= _board.failure_at(_task) <= step and (action := _board.take_failure(_task)):
        _carry_out(action)
