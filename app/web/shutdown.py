"""Tells the application early that it is being shut down.

Uvicorn tells it only after the last connection has closed, and event streams do not close by themselves.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.process import BaseProcess
from types import FrameType

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


def exit_with_parent() -> None:
    """If this process is one of several workers, end it when its parent process ends, even if that was killed."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_terminate_after, args=(parent,), name="parent", daemon=True).start()


def _terminate_after(parent: BaseProcess) -> None:
    parent.join()
    os.kill(os.getpid(), signal.SIGTERM)


@contextmanager
def on_shutdown(act: Callable[[], None]) -> Iterator[None]:
    """Inside the block, call ``act`` in the event loop when the process is told to stop, then the previous handler."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    loop = asyncio.get_running_loop()
    before = {number: signal.getsignal(number) for number in _SIGNALS}

    def hear(number: int, frame: FrameType | None) -> None:
        loop.call_soon_threadsafe(act)
        handler = before[signal.Signals(number)]
        if callable(handler):
            handler(number, frame)

    for number, handler in before.items():
        if callable(handler):
            signal.signal(number, hear)
    try:
        yield
    finally:
        for number in _SIGNALS:
            if signal.getsignal(number) is hear:
                signal.signal(number, before[number])
