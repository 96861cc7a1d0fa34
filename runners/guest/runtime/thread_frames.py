"""Where another thread is."""

from __future__ import annotations

import gc
import sys
from types import FrameType


def current_frame(thread: int) -> FrameType | None:
    """The innermost frame of a thread (its identifier), or None if it has ended.

    ``sys._current_frames`` holds a lock of the interpreter while it creates frame objects. Before Python 3.11.9, that
    can start a garbage collection, and destroying a ``threading.local`` takes the same lock: the process would hang
    forever, with the GIL (https://github.com/python/cpython/issues/106883). So nothing is collected meanwhile.
    """
    if sys.version_info >= (3, 11, 9):
        return sys._current_frames().get(thread)
    collects = gc.isenabled()
    gc.disable()
    try:
        return sys._current_frames().get(thread)
    finally:
        if collects:
            gc.enable()
