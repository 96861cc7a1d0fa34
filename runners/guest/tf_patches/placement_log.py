"""``tf.debugging.set_log_device_placement`` in a session: its lines are printed, with standard error.

TensorFlow writes them to its log, at a level that a session does not show. A listener for the log gets them first.
"""

from __future__ import annotations

import ctypes
import functools
import sys
from pathlib import Path

import tensorflow as tf

_wanted = False


def enable_placement_log() -> None:
    """Have placements printed once a program asks for them. Safe in a zygote: nothing happens before."""
    original = tf.debugging.set_log_device_placement

    @functools.wraps(original)
    def set_log_device_placement(enabled: bool) -> None:
        global _wanted
        _wanted = enabled
        if enabled:
            _listen()
        original(enabled)

    tf.debugging.set_log_device_placement = set_log_device_placement


def _print(message: bytes) -> None:
    if _wanted:  # TensorFlow itself goes on
        print(message.decode(errors="replace"), end="", file=sys.stderr)


_callback = ctypes.CFUNCTYPE(None, ctypes.c_char_p)(_print)


@functools.cache
def _listen() -> None:
    library = ctypes.CDLL(str(Path(tf.sysconfig.get_lib()) / "libtensorflow_cc.so.2"))
    library.TF_RegisterLogListener(_callback)
