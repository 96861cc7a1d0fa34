"""``import portpicker`` for clusters in one process, as in TensorFlow's guides: ports of the sandbox's loopback."""

from __future__ import annotations

import random
import socket

_PORTS = range(2_000, 20_001)
"""Below the system's ephemeral ports, so that a port stays free until its server listens, and below those of tasks."""
_given: set[int] = set()


def pick_unused_port() -> int:
    """A port on which nobody listens now; another one each time, because it may be taken only later."""
    if len(_given) > len(_PORTS) // 2:
        _given.clear()  # whoever asked for so many has closed the first ones
    while True:
        port = random.SystemRandom().choice(_PORTS)  # workers with the same seed get different ones
        if port not in _given and _is_free(port):
            _given.add(port)
            return port


def _is_free(port: int) -> bool:
    with socket.socket() as s:
        try:
            s.bind(("localhost", port))
        except OSError:
            return False
        return True
