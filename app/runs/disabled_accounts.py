"""Ends the runs of accounts that were disabled, and their sessions with everything that they left running.

Each web process looks up once a second whether a run that it follows belongs to such an account by now: a run goes on
without a browser, it may have been a visitor's when it began, and it may have been submitted at the same moment.
"""

from __future__ import annotations

import structlog
from sqlalchemy import select
from sqlalchemy.exc import SQLAlchemyError

from app.accounts.disabled_accounts import POLL_INTERVAL_S
from app.accounts.models import Account
from app.bus import Bus
from app.database_health import log_failure
from app.db import Database
from app.runs.follower import end_run
from app.runs.follower_pool import FollowerPool
from app.runs.models import Run
from runners.wire.client import RunnerClient, RunnerUnavailable

_BATCH_SIZE = 500

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
