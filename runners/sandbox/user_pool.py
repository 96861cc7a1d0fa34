"""The users that sessions run as outside their user namespace: one each if the supervisor is root.

The kernel counts inotify instances, pipe pages, pending signals and the like for each user of the machine. Sessions
that share a user could use them up for each other; sessions with separate users cannot. So no two supervisors of a
machine may have a user in common, and none may have one that systemd gives to its services, or one of an account of the
machine, which would share files and processes with a session.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections import deque
from collections.abc import Iterator, Sequence
from pathlib import Path

import structlog

from runners.config.settings import RunnerSettings
from runners.wire.users import WEB_USER

log = structlog.get_logger()

_RESERVED = (range(WEB_USER, WEB_USER + 1), range(61_184, 65_520), range(65_534, 65_536))
"""The web application's user; systemd's dynamic users; ``nobody``, and what 16 bits cannot tell from an error."""
_ETC = Path("/etc")
_ACCOUNTS = ("passwd", "group")
"""Files of ``_ETC`` with lines of ``NAME:…:NUMBER``. Accounts that a directory service has are not in them."""
_SUBORDINATE = ("subuid", "subgid")
"""Files with lines of ``NAME:FIRST:COUNT``: what an account may use in user namespaces, as rootless containers do."""
_CLAIMS = Path("/run/lockstep-users")
"""Each supervisor that is root locks the bytes of this file whose numbers are those of its users."""
_MOST_OTHERS = 64
_SPARE = 64
"""Users in addition to one for each session and each warm kernel: for sandboxes that are starting or ending."""
_POOLS = 3
"""Topologies for which kernels are kept warm."""


class NoUserAvailable(Exception):
    """Every user is in use by a sandbox that still exists."""


class NoUserRange(Exception):
    """There are not enough consecutive users for the sessions. ``str()`` says what to do."""


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


def service_users(settings: RunnerSettings) -> range:
    """Of a supervisor that is root: its own user on the machine, the zygotes' user, and the sessions' users."""
    others = settings.max_sessions + _POOLS * settings.warm_kernels + _SPARE
    return range(settings.service_uid, settings.service_uid + 2 + others)


def session_users(settings: RunnerSettings) -> range:
    """The users after those of the supervisor and the zygotes; empty if the supervisor is not root."""
    return service_users(settings)[2:] if os.geteuid() == 0 else range(0)


def claim_users(
    settings: RunnerSettings, claims: Path = _CLAIMS, mapped: Path = Path("/proc/self/uid_map"), etc: Path = _ETC
) -> RunnerSettings:
    """Reserve the users of the supervisor, the zygotes and the sessions until this process ends.

    If they are reserved, an account has one of them, or another supervisor has claimed one, the next free ones are
    taken. Only the supervisor's own may be an account, if it is the one in the settings.

    Args:
        settings: with a maximum number of sessions.
        claims: the file in which supervisors claim them.
        mapped: the users that exist here.
        etc: the folder of the files that list accounts.

    Returns:
        The settings with the ``service_uid`` that was claimed.

    Raises:
        NoUserRange: there are none.
    """
    if not session_users(settings):
        return settings
    count = len(service_users(settings))
    lines = [[int(word) for word in line.split()] for line in mapped.read_text().splitlines()]
    existing = [range(first, first + size) for first, _, size in lines]
    claim = _open_claims(claims)
    own = range(settings.service_uid, settings.service_uid + 1)
    taken = (*_RESERVED, *(users for users in _of_accounts(etc) if users != own))
    first = settings.service_uid
    for _ in range(_MOST_OTHERS):
        first = _first_free(first, count, taken)
        users = range(first, first + count)
        if not any(users[0] in there and users[-1] in there for there in existing):
            break
        if not _claimed(claim, users):
            first = users.stop
        else:
            if first != settings.service_uid:
                log.info("sessions have other users than set", set=settings.service_uid, first=first, count=count)
            return settings.model_copy(update={"service_uid": first})
    raise NoUserRange(
        f"Sessions need {count:,} consecutive users that nothing else has, and there are none from "
        f"{settings.service_uid:,} on: set LOCKSTEP_SERVICE_UID to the first of a free range, or lower "
        "LOCKSTEP_MAX_SESSIONS."
    )


def _of_accounts(etc: Path) -> Iterator[range]:
    """The numbers of the machine's users and groups, and those that they may use in namespaces of their own."""
    for name in (*_ACCOUNTS, *_SUBORDINATE):
        try:
            lines = (etc / name).read_text(errors="replace").splitlines()
        except OSError:
            continue
        for fields in (line.split(":") for line in lines):
            with contextlib.suppress(ValueError, IndexError):  # a comment, or a line of NIS
                first, count = (int(fields[2]), 1) if name in _ACCOUNTS else (int(fields[1]), int(fields[2]))
                yield range(first, first + count)


def _first_free(first: int, count: int, taken: Sequence[range]) -> int:
    """The first of so many consecutive numbers, from ``first`` on, of which none is taken."""
    while overlap := next((users for users in taken if users.start < first + count and first < users.stop), None):
        first = overlap.stop
    return first


def _open_claims(claims: Path) -> int | None:
    try:
        claim = os.open(claims, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        os.set_inheritable(claim, True)  # for the program that a supervisor becomes when it gives up root
        return claim
    except OSError as e:
        log.warning("users of other supervisors are not known", file=str(claims), error=str(e))
        return None


def _claimed(claim: int | None, users: range) -> bool:
    """Claim them, unless another process has. The file stays open: a process that closes it loses its claims."""
    if claim is not None:
        try:
            fcntl.lockf(claim, fcntl.LOCK_EX | fcntl.LOCK_NB, len(users), users.start)
        except BlockingIOError:
            return False
    return True
