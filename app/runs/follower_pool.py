"""The followers of all runs that this process follows, one task each."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import structlog
from sqlalchemy.exc import SQLAlchemyError

from app.bus import Bus
from app.database_health import log_failure
from app.db import Database
from app.runs.awards import RunAwards
from app.runs.follower import RunFollower
from app.runs.models import Run
from app.runs.quotas import Quotas
from app.runs.service import run_request, unfinished_runs
from runners.wire.client import RunnerClient
from runners.wire.protocol import RunRequest

_RESUME_RETRY_S = 2.0

_log = structlog.get_logger("follower_pool")


class FollowerPool:
    """Runs followers. ``watch`` may be called repeatedly for a run, and several processes may follow it at once."""

    def __init__(
        self,
        db: Database,
        runner: RunnerClient,
        bus: Bus,
        quotas: Quotas,
        awards: RunAwards | None = None,
        request_of: Callable[[Run], RunRequest] = run_request,
    ) -> None:
        self._db = db
        self._runner = runner
        self._bus = bus
        self._awards = awards
        self._quotas = quotas
        self._request_of = request_of
        self._followers: dict[str, RunFollower] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def watch(self, run_id: str, network: str | None = None) -> None:
        """Follow a run until it ends. ``network`` is a visitor's network, if it counts toward a quota."""
        if run_id in self._followers:
            return
        parts = (self._db, self._runner, self._bus, self._quotas, self._awards)
        follower = RunFollower(run_id, *parts, network, self._request_of)
        self._followers[run_id] = follower
        self._start(follower.follow()).add_done_callback(lambda _: self._followers.pop(run_id))

    @property
    def watching(self) -> int:
        """How many runs are being followed."""
        return len(self._followers)

    def followed(self) -> list[str]:
        """The IDs of the runs that are being followed."""
        return list(self._followers)

    def cut_off(self, run_id: str) -> bool:
        """True if the run is being followed and the supervisor cannot be reached."""
        follower = self._followers.get(run_id)
        return follower is not None and follower.cut_off

    async def resume(self) -> None:
        """Follow every unfinished run; called before new runs are accepted.

        If the database does not respond in time, this continues in the background while requests are served.
        """
        try:
            async with asyncio.timeout(_RESUME_RETRY_S):
                resumed = await self._resume()
        except TimeoutError:
            resumed = False
        if not resumed:
            self._start(self._go_on_resuming())

    async def close(self) -> None:
        """Stop following. Nothing is lost: the next process continues where this one stopped."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _go_on_resuming(self) -> None:
        resumed = False
        while not resumed:
            await asyncio.sleep(_RESUME_RETRY_S)
            resumed = await self._resume()

    async def _resume(self) -> bool:
        try:
            async with self._db.session() as session:
                run_ids = await unfinished_runs(session)
        except (SQLAlchemyError, OSError) as e:
            log_failure(_log, "unfinished runs cannot be read yet", e)
            return False
        for run_id in run_ids:
            self.watch(run_id)
        return True

    def _start(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task
