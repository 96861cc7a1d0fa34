"""Raises KeyboardInterrupt anywhere except where it would do damage that outlives the run.

TensorFlow checks each new type in a nest, ``isinstance(value, CompositeTensor)``, and caches the answer for the life of
the process. It takes an exception inside ``isinstance`` for a yes: from then on it treats, say, every list as a
composite tensor, and every function traced in this kernel fails.

Output is the other such place: an exception in the middle of the code that passes text on would lose the text. See
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
"""The number of innermost frames to check: the next signal may arrive while the handler still runs."""
_AGAIN_S = 0.001
_UNTIL_NOTICED_S = 0.05
_MOST_TRIES = 500
"""Seconds after which the interrupt comes anyway: an ``isinstance`` of the program may never return."""

_tries = 0
_delayed: _Delayed | None = None
"""The deferred interrupt; ``None`` once its handler runs."""


class _Delayed:
    """An interrupt that was deferred."""

    def __init__(self, signum: int) -> None:
        self.signum = signum
        self.thread = threading.get_ident()


def defer_during(*functions: Callable[..., Any]) -> None:
    """Defer an interrupt during one of these Python functions, or functions they call, until it has returned."""
    _held_off.update(function.__code__ for function in functions)


def accept() -> None:
    """Let interrupts raise KeyboardInterrupt from now on, one that comes during this call a moment later."""
    signal.signal(signal.SIGINT, handle_sigint)


def ignore() -> None:
    """Ignore interrupts from now on, also a deferred one, and one that comes during this call.

    Raised here, it would end the process; a moment later, it would end the next cell.
    """
    global _tries, _delayed
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _tries, _delayed = 0, None


defer_during(accept, ignore)


def handle_sigint(signum: int, frame: FrameType | None) -> None:
    """Handle SIGINT: raise KeyboardInterrupt, or, where that would do damage, a moment later."""
    global _tries, _delayed
    _delayed = None
    if _tries < _MOST_TRIES and _is_held_off(frame):
        _tries += 1
        _delayed = _Delayed(signum)
        threading.Thread(target=_send_again, args=(_delayed,), daemon=True).start()
        return
    _tries = 0
    raise KeyboardInterrupt


def raise_deferred() -> None:
    """Raise the interrupt that was deferred in this thread, if any, now that it does no damage.

    A program that prints all the time is nearly always where interrupts are deferred. Signals that are sent again and
    again would reach it elsewhere only by chance.
    """
    delayed = _delayed
    if delayed is not None and delayed.thread == threading.get_ident() and _handled_here(delayed.signum):
        signal.raise_signal(delayed.signum)


def _handled_here(signum: int) -> bool:
    return signal.getsignal(signum) is handle_sigint


def _send_again(delayed: _Delayed) -> None:
    """Signal the thread until its handler runs.

    Once is not enough: a signal that arrives after Python last looked for one, but before a blocking call has begun, is
    noticed only when that call ends.
    """
    pause_s = _AGAIN_S
    while True:
        time.sleep(pause_s)
        if not _handled_here(delayed.signum):
            return
        if _delayed is not delayed:  # the last look before the signal: other threads may run during a call
            return
        signal.pthread_kill(delayed.thread, delayed.signum)
        pause_s = _UNTIL_NOTICED_S


def _is_held_off(frame: FrameType | None) -> bool:
    for _ in range(_NEAR):
        if frame is None:
            return False
        if frame.f_code in _held_off:
            return True
        frame = frame.f_back
    return False
