"""Errors shown within a moment: IPython looks up the source of every frame, which takes half a minute for the thousand
frames of an endless recursion."""

from __future__ import annotations

from types import TracebackType
from typing import Any

_FRAMES_KEPT = 15
"""At the beginning and at the end of a traceback, each."""


def show_only_the_ends(formatter: Any) -> None:
    """Make an IPython formatter leave out the middle of long tracebacks, and say so."""
    structured_traceback = formatter.structured_traceback

    def of_the_ends(etype: Any, value: Any, tb: TracebackType | None, *args: Any, **kwargs: Any) -> Any:
        error, seen = value, set()
        while isinstance(error, BaseException) and id(error) not in seen:
            seen.add(id(error))
            left_out = leave_out_the_middle(error.__traceback__)
            if left_out:
                error.add_note(f"({left_out:,} frames in the middle of this traceback are left out)")
            error = error.__cause__ or error.__context__
        return structured_traceback(etype, value, tb, *args, **kwargs)

    formatter.structured_traceback = of_the_ends


def leave_out_the_middle(tb: TracebackType | None) -> int:
    """Cut the middle out of a long traceback, in place; returns how many frames went."""
    chain = []
    while tb is not None:
        chain.append(tb)
        tb = tb.tb_next
    left_out = len(chain) - 2 * _FRAMES_KEPT
    if left_out <= 0:
        return 0
    chain[_FRAMES_KEPT - 1].tb_next = chain[-_FRAMES_KEPT]
    return left_out
