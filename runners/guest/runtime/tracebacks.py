"""Shortens tracebacks, which saves time and shows learners only their own program.

IPython looks up the source of every frame, which takes half a minute for the thousand frames of an endless recursion.
The frames of the code that runs a cell are removed, because they are not part of the learner's program.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from types import TracebackType
from typing import Any

import ipykernel
import IPython
import tornado

_FRAMES_KEPT = 15
"""Frames kept at the beginning and at the end of a traceback, each."""
_OURS = f"{Path(__file__).parents[2]}/"
_BELOW_A_CELL = (
    _OURS,
    *(f"{Path(module.__file__ or '').parent}/" for module in (IPython, ipykernel, tornado, asyncio)),
)
"""Folders of the code that calls a learner's cell."""


def paths_below_cell() -> list[str]:
    """The beginnings of the frames, as Python writes them, of the code that calls a cell.

    For a failed operation, TensorFlow reports where it was created, starting from the first frame of the process.
    """
    return [*(f'File "{folder}' for folder in _BELOW_A_CELL), 'File "<frozen runpy>"']


def shorten_long_tracebacks(formatter: Any) -> None:
    """Make an IPython formatter omit the middle of long tracebacks, and say so."""
    structured_traceback = formatter.structured_traceback

    def of_the_ends(etype: Any, value: Any, tb: TracebackType | None, *args: Any, **kwargs: Any) -> Any:
        error, seen = value, set()
        while isinstance(error, BaseException) and id(error) not in seen:
            seen.add(id(error))
            cut_own_frames(error.__traceback__)
            left_out = cut_middle(error.__traceback__)
            if left_out:
                error.add_note(f"({left_out:,} frames omitted from the middle of this traceback)")
            error = error.__cause__ or error.__context__
        return structured_traceback(etype, value, tb, *args, **kwargs)

    formatter.structured_traceback = of_the_ends


def cut_middle(tb: TracebackType | None) -> int:
    """Cut the middle out of a long traceback, in place; returns the number of removed frames."""
    chain = []
    while tb is not None:
        chain.append(tb)
        tb = tb.tb_next
    left_out = len(chain) - 2 * _FRAMES_KEPT
    if left_out <= 0:
        return 0
    chain[_FRAMES_KEPT - 1].tb_next = chain[-_FRAMES_KEPT]
    return left_out


def cut_own_frames(tb: TracebackType | None) -> None:
    """Remove Lockstep's frames from a traceback, in place, except its first and last frame."""
    while tb is not None:
        after = tb.tb_next
        while after is not None and after.tb_next is not None and _is_ours(after):
            after = after.tb_next
        if after is not tb.tb_next:
            tb.tb_next = after
        tb = after


def _is_ours(tb: TracebackType) -> bool:
    return tb.tb_frame.f_code.co_filename.startswith(_OURS)
