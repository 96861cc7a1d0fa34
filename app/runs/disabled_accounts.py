"""Ends the runs of accounts that were disabled, and their sessions with everything that they left running.

Each web process looks up once a second whether a run that it follows belongs to such an account by now: a run goes on
without a browser, it may have been a visitor's when it began, and it may have been submitted at the same moment. Less
often it asks the runner for all sessions, because one that is idle belongs to no run. A session that a visitor began
keeps that owner when the visitor signs in to an account.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

import structlog
from sqlalchemy import or_, select, union
from sqlalchemy.exc import SQLAlchemyError

from app.accounts.disabled_accounts import POLL_INTERVAL_S
from app.accounts.models import Account, MergedVisitor
from app.bus import Bus
from app.database_health import log_failure
from app.db import Database
from app.runs.follower import end_run
from app.runs.follower_pool import FollowerPool
from app.runs.models import Run
from app.runs.service import learner_of_owner, session_owner
from runners.wire.client import RequestRefused, RunnerClient, RunnerError, RunnerUnavailable
from runners.wire.protocol import SessionState

_BATCH_SIZE = 500
SESSION_POLL_INTERVAL_S = 5.0
_MAX_OWNERS = 100
"""The most owners in one query."""

_log = structlog.get_logger("runs")


async def end_runs_of_disabled_accounts(db: Database, runner: RunnerClient, bus: Bus, followers: FollowerPool) -> None:
    """Runs until the bus is closed."""
    with bus.subscribe("runs of disabled accounts") as subscription:
        while not bus.closed:
            await subscription.wait(POLL_INTERVAL_S)
            if bus.closed:
                break
            try:
                for run_id, session_id in await _runs_of_disabled_accounts(db, followers.followed()):
                    await end_run(runner, run_id, session_id)  # its follower finds out why
                    _log.info("run of a disabled account ended", run=run_id)
            except (SQLAlchemyError, OSError, RunnerUnavailable) as e:
                log_failure(_log, "the run of a disabled account cannot be ended yet", e)


async def end_sessions_of_disabled_accounts(db: Database, runner: RunnerClient, bus: Bus) -> None:
    """End sessions without a run. Runs until the bus is closed."""
    with bus.subscribe("sessions of disabled accounts") as subscription:
        while not bus.closed:
            await subscription.wait(SESSION_POLL_INTERVAL_S)
            if bus.closed:
                break
            try:
                await _end_sessions(db, runner)
            except RunnerError:  # it has no sessions while it is down, and one of an earlier version does not list them
                continue
            except (SQLAlchemyError, OSError, ValueError) as e:  # ValueError: a newer runner answers otherwise
                log_failure(_log, "the sessions of disabled accounts cannot be ended yet", e)


async def _end_sessions(db: Database, runner: RunnerClient) -> None:
    sessions = [session for session in await runner.owned_sessions() if session.state != SessionState.busy]
    disabled = await find_disabled_owners(db, sorted({session.owner for session in sessions}))
    for session in sessions:
        if session.owner in disabled:
            with suppress(RequestRefused):  # it has ended by itself
                await runner.end(session.id)
            _log.info("session of a disabled account ended", session=session.id)


async def find_disabled_owners(db: Database, owners: Sequence[str]) -> set[str]:
    """Those who have an account that is disabled, or were merged into one as visitors."""
    found: set[str] = set()
    accounts = select(Account.learner_id).where(Account.disabled_at.is_not(None))
    merged = select(MergedVisitor.visitor_id).join(Account, Account.id == MergedVisitor.account_id)
    merged = merged.where(Account.disabled_at.is_not(None))
    for start in range(0, len(owners), _MAX_OWNERS):
        some = owners[start : start + _MAX_OWNERS]
        theirs = accounts.where(or_(*(learner_of_owner(Account.learner_id, owner) for owner in some)))
        visitors = merged.where(or_(*(learner_of_owner(MergedVisitor.visitor_id, owner) for owner in some)))
        async with db.session() as session:
            found |= {session_owner(learner) for learner in await session.scalars(union(theirs, visitors))}
    return found


async def _runs_of_disabled_accounts(db: Database, run_ids: list[str]) -> list[tuple[str, str]]:
    """The IDs of runs and sessions."""
    found: list[tuple[str, str]] = []
    theirs = select(Run.id, Run.session_id).join(Account, Account.learner_id == Run.learner_id)
    for start in range(0, len(run_ids), _BATCH_SIZE):
        some = Run.id.in_(run_ids[start : start + _BATCH_SIZE])
        async with db.session() as session:
            rows = await session.execute(theirs.where(some, Account.disabled_at.is_not(None)))
            found += [(run_id, session_id) for run_id, session_id in rows]
    return found
