"""The runner as admins see it: its sessions and whose they are, its queue, and stopping one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from sqlalchemy import or_, select

from app.accounts.models import Account
from app.db import Database
from app.errors import LockstepError
from app.i18n import N_, duration
from app.runs.errors import RunnerOffline
from app.runs.limit_labels import format_bytes
from app.runs.service import learner_of_owner, session_owner
from runners.wire.client import RequestRefused, RunnerClient, RunnerError, RunnerUnavailable
from runners.wire.protocol import Health, OwnedSession

_MAX_OWNERS = 100
"""The most owners in one query."""


class SessionOver(LockstepError):
    status = 409
    message = N_("This session has ended in the meantime.")


@dataclass(frozen=True, slots=True)
class OwnerAccount:
    """The account that a session belongs to."""

    account_id: str
    handle: str


@dataclass(frozen=True, slots=True)
class LiveSession:
    """A session, and the account of its owner; None for a visitor."""

    session: OwnedSession
    owner: OwnerAccount | None

    @property
    def age(self) -> str:
        """How long ago it was requested, in the current language."""
        return duration(timedelta(seconds=self.session.age_s))

    @property
    def idle(self) -> str:
        """For how long it has been idle, in the current language; empty for less than a minute."""
        idle = timedelta(seconds=self.session.idle_s)
        return duration(idle) if idle >= timedelta(minutes=1) else ""

    @property
    def memory(self) -> str:
        """In readable units; empty if it is not known."""
        size = self.session.memory_bytes
        return format_bytes(size) if size is not None else ""


@dataclass(frozen=True, slots=True)
class RunnerView:
    """The runner now. ``sessions`` are those that run, the oldest first, and then the queue in turn."""

    health: Health
    sessions: Sequence[LiveSession]


async def load_runner(db: Database, runner: RunnerClient) -> RunnerView | None:
    """None while the runner does not respond, or answers otherwise than this version understands."""
    try:
        health, sessions = await runner.health(), await runner.owned_sessions(measured=True)
    except (RunnerError, ValueError):
        return None
    owners = await find_owners(db, sorted({session.owner for session in sessions}))
    ordered = sorted(sessions, key=lambda session: (session.position or 0, -session.age_s))
    return RunnerView(health, [LiveSession(session, owners.get(session.owner)) for session in ordered])


async def find_owners(db: Database, owners: Sequence[str]) -> dict[str, OwnerAccount]:
    """The accounts of the owners that have one."""
    found: dict[str, OwnerAccount] = {}
    for start in range(0, len(owners), _MAX_OWNERS):
        some = or_(*(learner_of_owner(Account.learner_id, owner) for owner in owners[start : start + _MAX_OWNERS]))
        async with db.session() as session:
            rows = await session.execute(select(Account.learner_id, Account.id, Account.handle).where(some))
            found |= {session_owner(row.learner_id): OwnerAccount(row.id, row.handle) for row in rows}
    return found


async def find_session(db: Database, runner: RunnerClient, session_id: str) -> LiveSession:
    """Raises SessionOver, or RunnerOffline."""
    try:
        known = {session.id: session for session in await runner.owned_sessions()}
    except RunnerError as e:
        raise RunnerOffline from e
    if session_id not in known:
        raise SessionOver
    owners = await find_owners(db, [known[session_id].owner])
    return LiveSession(known[session_id], owners.get(known[session_id].owner))


async def stop_session(runner: RunnerClient, session_id: str) -> None:
    """End a session with everything in it. Raises SessionOver, or RunnerOffline."""
    try:
        await runner.end(session_id)
    except RequestRefused as e:
        raise SessionOver from e
    except RunnerUnavailable as e:
        raise RunnerOffline from e
