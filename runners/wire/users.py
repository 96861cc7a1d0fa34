"""The users that web application and runner have on a machine where root has started both."""

from __future__ import annotations

import os
import signal
from pathlib import Path

WEB_USER = 60_990
"""The web application's user, and the number of its group, which may connect to the runner's socket. No session gets
this number, and neither systemd nor a distribution gives it to anybody by itself."""

END_AT_ONCE = signal.SIGUSR1
"""Sent to a web application that has not ended after SIGTERM: everything in its PID namespace is killed."""


def is_root_of_the_machine() -> bool:
    """Whether this process is root, and not only in a user namespace."""
    return os.geteuid() == 0 and Path("/proc/self/uid_map").read_text().split() == ["0", "0", str(2**32 - 1)]
