"""``tf.debugging.set_log_device_placement`` in a session: prints what it logs, on standard error.

TensorFlow writes these lines to its log at a level that a session does not show. A log listener gets them first.
"""

from __future__ import annotations

import ctypes
import functools
import sys
from pathlib import Path
from typing import Any

import tensorflow as tf

from runners.guest.tf_patches.registry import Subject

subject = Subject(
    __name__,
    when="every process",
    because="TensorFlow writes placements to a log that no session shows",
    since="TensorFlow 2.21",
    test="tests/unit/runners/guest/tf_patches/test_gpu.py::test_placements_are_printed_where_they_are_asked_for",
)

_enabled = False


@subject.patch("tensorflow:debugging.set_log_device_placement", relies_on=("(enabled)",))
def _print_placements(original: Any, enabled: bool) -> None:
    global _enabled
    _enabled = enabled
    if enabled:
        _listen()
    original(enabled)


def _print(message: bytes) -> None:
    if _enabled:  # TensorFlow never stops sending
        print(message.decode(errors="replace"), end="", file=sys.stderr)


_callback = ctypes.CFUNCTYPE(None, ctypes.c_char_p)(_print)


@functools.cache
def _listen() -> None:
    library = ctypes.CDLL(str(Path(tf.sysconfig.get_lib()) / "libtensorflow_cc.so.2"))
    library.TF_RegisterLogListener(_callback)
