"""How a KeyboardInterrupt comes: anywhere, but not where it would do harm that outlives the run.

TensorFlow asks Python for the kind of each type that it meets in a nest, ``isinstance(value, CompositeTensor)``, and
keeps the answer for the life of the process. An exception in the middle of ``isinstance`` it takes for a yes: from then
on every list, say, is taken for a composite tensor, and each function fails that is traced in this kernel.

Output is the other such place: an exception between two lines of what hands text over would lose the text. See
``defer_during``.
"""

from __future__ import annotations

import signal
import threading
import time
from abc import ABCMeta
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any

_held_off: set[CodeType] = {ABCMeta.__instancecheck__.__code__, ABCMeta.__subclasscheck__.__code__}
_NEAR = 40
"""Frames above the innermost that are looked at: the next signal can find the handler still at work."""
_AGAIN_S = 0.001
_UNTIL_NOTICED_S = 0.05
_MOST_TRIES = 500
"""After which the interrupt comes in any case: a program can ask a question that has no end."""

_tries = 0
_delayed: object | None = None
"""The interrupt that is to come later; ``None`` once its handler runs."""


def defer_during(*functions: Callable[..., Any]) -> None:
    """Delay an interrupt that comes during one of these Python functions, or what it calls, until it has returned."""
    _held_off.update(function.__code__ for function in functions)


def handle_sigint(signum: int, frame: FrameType | None) -> None:
    """Raise KeyboardInterrupt, or, where it would do harm, a moment later: the handler of SIGINT."""
    global _tries, _delayed
    _delayed = None
    if _tries < _MOST_TRIES and _is_held_off(frame):
        _tries += 1
        _delayed = object()
        threading.Thread(target=_send_again, args=(threading.get_ident(), signum, _delayed), daemon=True).start()
        return
    _tries = 0
    raise KeyboardInterrupt


def _send_again(thread: int, signum: int, delayed: object) -> None:
    """Signal the thread until its handler runs.

    Once is not enough: a signal that arrives after Python last looked for one, but before a blocking call has begun, is
    noticed only when that call ends.
    """
    pause_s = _AGAIN_S
    while True:
        time.sleep(pause_s)
        if _delayed is not delayed or signal.getsignal(signum) is not handle_sigint:
            return
        signal.pthread_kill(thread, signum)
        pause_s = _UNTIL_NOTICED_S


def _is_held_off(frame: FrameType | None) -> bool:
    for _ in range(_NEAR):
        if frame is None:
            return False
        if frame.f_code in _held_off:
            return True
        frame = frame.f_back
    return False
