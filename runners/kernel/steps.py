"""The step that this process's training has reached: what ``at_step`` of a fault waits for.

The hooks of ``fit`` and ``lockstep.log`` call ``reached``; it costs less than a microsecond.
"""

from __future__ import annotations

from collections.abc import Callable

from runners.kernel.board import Action, Board

_board: Board | None = None
_task = 0
_carry_out: Callable[[Action], None] | None = None


def belong_to(board: Board, task: int, carry_out: Callable[[Action], None]) -> None:
    """Be the ``task``th process of a cluster; ``carry_out`` does to it what awaited it."""
    global _board, _task, _carry_out
    _board, _task, _carry_out = board, task, carry_out


def begin_again() -> None:
    """A run begins or ends: no step of it is reached yet, and none of the one before counts any more."""
    if _board is not None:
        _board.set_step(_task, -1)


def reached(step: int) -> None:
    """Say that step ``step`` of the training begins or is done, counted as the learner counts. Any thread may."""
    if _board is None or _carry_out is None:
        return
    _board.set_step(_task, max(0, min(int(step), 2**62)))
    if 0 <= _board.fault_at(_task) <= step and (action := _board.take_fault(_task)):
        _carry_out(action)
