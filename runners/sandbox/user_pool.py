"""The users that sessions run as outside their user namespace: one each, where the supervisor is root.

The kernel counts inotify instances, pipe pages, pending signals and the like for each user of the machine. Sessions of
one user could use them up for one another; sessions of a user each cannot.
"""

from __future__ import annotations

import os
from collections import deque

from runners.config.settings import RunnerSettings

_SPARE = 64
"""Users beyond one for each place and each warm kernel: for sandboxes that are just coming or going."""
_POOLS = 3
"""Topologies for which kernels are kept warm."""


class NoUserAvailable(Exception):
    """Every user is taken by a sandbox that is not gone."""


class UserPool:
    """Users to lend, longest unused first. An empty range has none: all sessions run as the supervisor's.

    Args:
        users: the range.
    """

    def __init__(self, users: range) -> None:
        self._range = users
        self._free = deque(users)

    def take(self) -> int | None:
        """Lend a user; None where there are none to lend.

        Raises:
            NoUserAvailable: all are taken.
        """
        if not self._range:
            return None
        if not self._free:
            raise NoUserAvailable(
                f"each user from {self._range[0]} to {self._range[-1]} has a sandbox that is not gone"
            )
        return self._free.popleft()

    def give_back(self, user: int | None) -> None:
        """The last process of this user is gone."""
        if user is not None:
            self._free.append(user)


def session_users(settings: RunnerSettings) -> range:
    """The users that follow the zygote's own, or none where the supervisor is not root."""
    if os.geteuid() != 0:
        return range(0)
    first = settings.service_uid + 1
    return range(first, first + settings.max_sessions + _POOLS * settings.warm_kernels + _SPARE)
