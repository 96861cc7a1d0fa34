"""The users that sessions run as outside their user namespace: one each if the supervisor is root.

The kernel counts inotify instances, pipe pages, pending signals and the like for each user of the machine. Sessions
that share a user could use them up for each other; sessions with separate users cannot.
"""

from __future__ import annotations

import os
from collections import deque

from runners.config.settings import RunnerSettings

_SPARE = 64
"""Users in addition to one for each session and each warm kernel: for sandboxes that are starting or ending."""
_POOLS = 3
"""Topologies for which kernels are kept warm."""


class NoUserAvailable(Exception):
    """Every user is in use by a sandbox that still exists."""


class UserPool:
    """Users to lend, longest unused first. With an empty range, all sessions run as the supervisor's user.

    Args:
        users: the range.
    """

    def __init__(self, users: range) -> None:
        self._range = users
        self._free = deque(users)

    def acquire(self) -> int | None:
        """Lend a user; returns None if the range is empty.

        Raises:
            NoUserAvailable: all users are in use.
        """
        if not self._range:
            return None
        if not self._free:
            raise NoUserAvailable(
                f"every user from {self._range[0]} to {self._range[-1]} has a sandbox that still exists"
            )
        return self._free.popleft()

    def release(self, user: int | None) -> None:
        """Return a user whose last process is gone."""
        if user is not None:
            self._free.append(user)


def session_users(settings: RunnerSettings) -> range:
    """The range of users after the zygote's own; empty if the supervisor is not root."""
    if os.geteuid() != 0:
        return range(0)
    first = settings.service_uid + 1
    return range(first, first + settings.max_sessions + _POOLS * settings.warm_kernels + _SPARE)
