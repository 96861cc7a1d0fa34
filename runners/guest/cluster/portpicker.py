"""``import portpicker`` for clusters in one process, as in TensorFlow's guides: ports of the sandbox's loopback."""

from __future__ import annotations

import importlib.util
import socket
import sys
from types import ModuleType


def pick_unused_port() -> int:
    """A port on which nobody listens now."""
    with socket.socket() as s:
        s.bind(("localhost", 0))
        port: int = s.getsockname()[1]
        return port


def install() -> None:
    """Make ``import portpicker`` find this module, unless the real one is installed."""
    if importlib.util.find_spec("portpicker") is None:
        module = ModuleType("portpicker", __doc__)
        module.pick_unused_port = pick_unused_port  # type: ignore[attr-defined]
        sys.modules["portpicker"] = module
