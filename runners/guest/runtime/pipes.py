"""How much waits in a pipe that printed text goes through."""

from __future__ import annotations

import array
import fcntl
import termios


def unread_bytes(descriptor: int) -> int:
    """Bytes in a pipe that nobody has read; none if it is no longer there."""
    count = array.array("i", [0])
    try:
        fcntl.ioctl(descriptor, termios.FIONREAD, count)
    except OSError:
        return 0
    return count[0]
