"""The followers of all runs that this process follows, one task each, and the adoption of runs that nobody follows."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any

import structlog
from sqlalchemy.exc import SQLAlchemyError

from app.bus import Bus
from app.database_health import log_failure
from app.db import Database
from app.runs import adoption
from app.runs.awards import RunAwards
from app.runs.follower import RunFollower
from app.runs.models import Run
from app.runs.quotas import Quotas
from app.runs.service import run_request
from runners.wire.client import RunnerClient
from runners.wire.protocol import RunRequest

_FIRST_ADOPTION_S = 2.0
"""How long new runs wait for the adoption of earlier ones when the process starts."""
_CLOSE_TIMEOUT_S = 2.0
"""How long the last queries may take when the process ends."""

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
        self._adopting: asyncio.Task[None] | None = None

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

    async def adopt(self) -> None:
        """Adopt runs that no process follows, and say which ones this process follows, until the bus closes.

        Returns after the first adoption, so that earlier runs come before new ones, and continues in the background. If
        the database does not respond in time, requests are served all the same.
        """
        first = asyncio.Event()
        self._adopting = asyncio.create_task(self._keep_adopting(first))
        with suppress(TimeoutError):
            async with asyncio.timeout(_FIRST_ADOPTION_S):
                await first.wait()

    async def close(self) -> None:
        """Stop following. Nothing is lost: other processes adopt the runs, or the next one does."""
        if self._adopting is not None and self._bus.closed:  # it ends by itself; a query is better not cancelled
            await asyncio.wait({self._adopting}, timeout=_CLOSE_TIMEOUT_S)
        left = self.followed()
        tasks = [*self._tasks, *([self._adopting] if self._adopting is not None else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if left:
            await self._release(left)

    async def _release(self, run_ids: list[str]) -> None:
        try:
            async with asyncio.timeout(_CLOSE_TIMEOUT_S), self._db.writing() as session:
                await adoption.release(session, run_ids)
        except TimeoutError:
            pass  # they are adopted a little later
        except (SQLAlchemyError, OSError) as e:
            log_failure(_log, "the runs of this process could not be released", e)

    async def _keep_adopting(self, first: asyncio.Event) -> None:
        with self._bus.subscribe(adoption.UNFOLLOWED_TOPIC) as subscription:
            while not self._bus.closed:
                try:
                    await self._renew()
                    while await self._adopt():
                        pass
                    first.set()
                except (SQLAlchemyError, OSError) as e:
                    log_failure(_log, "unfinished runs cannot be adopted yet", e)
                await subscription.wait(adoption.RENEWAL_INTERVAL_S)

    async def _renew(self) -> None:
        if run_ids := self.followed():
            async with self._db.writing() as session:
                await adoption.renew(session, run_ids)

    async def _adopt(self) -> bool:
        """Adopt some runs. True if there may be more."""
        async with self._db.session() as session:
            found = await adoption.find_unfollowed(session)
        if not found:
            return False
        async with self._db.writing() as session:
            adopted = await adoption.adopt(session, found)
        for run_id in adopted:
            self.watch(run_id)
        return bool(adopted)

    def _start(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task
