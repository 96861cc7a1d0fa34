"""Measures the unread text in a pipe."""

from __future__ import annotations

import array
import fcntl
import termios


def unread_bytes(descriptor: int) -> int:
    """The number of unread bytes in a pipe; 0 if it no longer exists."""
    count = array.array("i", [0])
    try:
        fcntl.ioctl(descriptor, termios.FIONREAD, count)
    except OSError:
        return 0
    return count[0]
