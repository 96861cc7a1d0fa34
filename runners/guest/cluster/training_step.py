"""The step that this process's training has reached: what ``at_step`` of an injected failure waits for.

The hooks of ``fit`` and ``lockstep.log`` call ``reached``; it costs less than a microsecond.
"""

from __future__ import annotations

from collections.abc import Callable

from runners.guest.cluster.shared_state import FailureAction, SharedState

_board: SharedState | None = None
_task = 0
_carry_out: Callable[[FailureAction], None] | None = None


def attach(board: SharedState, task: int, carry_out: Callable[[FailureAction], None]) -> None:
    """Be the ``task``th process of a cluster; ``apply_pending`` does to it what awaited it."""
    global _board, _task, _carry_out
    _board, _task, _carry_out = board, task, carry_out


def reset() -> None:
    """A run begins or ends: no step of it is reached yet, and none of the one before counts any more."""
    if _board is not None:
        _board.set_step(_task, -1)


def reached(step: int) -> None:
    """Say that step ``step`` of the training begins or is done, counted as the learner counts. Any thread may."""
    if _board is None or _carry_out is None:
        return
    _board.set_step(_task, max(0, min(int(step), 2**62)))
    if 0 <= _board.failure_at(_task) <= step and (action := _board.take_failure(_task)):
        _carry_out(action)
