"""Stores a run, submits it to the supervisor and has it followed, in the one order that loses nothing.

A run is first stored and committed, then submitted to the supervisor, then followed. If the supervisor does not
respond, the run is withdrawn and the learner gets an error. If this process dies in between, another one adopts the
run (``runs.adoption``) and submits it.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from datetime import timedelta
from typing import Annotated

import structlog
from fastapi import Depends
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncSession

from app.accounts.dependencies import LearnerId, OptionalAccount
from app.bus import Bus
from app.database_health import log_failure
from app.db import Database, now
from app.lessons.catalog import Catalog
from app.lessons.model import Cell, Lesson
from app.progress.service import ProgressService
from app.runs import event_log
from app.runs.adoption import FOLLOWED_FOR
from app.runs.awards import RunAwards
from app.runs.errors import CellNotFound, NoNewSessions, RunnerOffline, refusal_error
from app.runs.follower_pool import FollowerPool
from app.runs.introspection import QuestionLimiter
from app.runs.ip_limits import AddressLimiter
from app.runs.judgements import ExerciseGone, RunHook, RunRequests
from app.runs.machines import Machine
from app.runs.models import Run
from app.runs.queue_position import QueuePosition, position_of_run
from app.runs.quotas import QuotaLimits, QuotaOwner, Quotas
from app.runs.service import check_code, count_runs_ahead, has_run, session_id, start_run, withdraw_run
from app.runs.stream import RunStreams
from app.settings import Settings
from app.site_switches import Switch, SwitchStates
from app.tracing import current_context
from app.web.client_network import ClientAddress, client_network, is_this_machine
from app.web.dependencies import AppKey
from runners.wire.client import RequestRefused, RunnerClient, RunnerError, RunnerUnavailable
from runners.wire.protocol import RunAccepted, SessionState

_log = structlog.get_logger("dispatcher")
_SUBMIT_RETRY_INTERVAL_S = 0.1
_CANCEL_TIMEOUT_S = 2.0


class RunDispatcher:
    """One per process, created by ``feature.py``."""

    def __init__(
        self,
        settings: Settings,
        db: Database,
        runner: RunnerClient,
        bus: Bus,
        catalog: Catalog,
        progress: ProgressService,
        hooks: Sequence[RunHook] = (),
        switches: SwitchStates | None = None,
    ) -> None:
        self.db = db
        self.runner = runner
        self.bus = bus
        self.quotas = Quotas(db, QuotaLimits.of(settings))
        self._request_of = RunRequests(catalog)
        self.followers = FollowerPool(db, runner, bus, self.quotas, RunAwards(progress, hooks), self._request_of)
        self.streams = RunStreams(db, runner, bus, self.followers, visitors_per_address=settings.visitors_per_address)
        self.questions = QuestionLimiter()
        self._addresses = AddressLimiter(settings.visitors_per_address)
        self._switches = switches or SwitchStates()
        self._max_unfinished = settings.max_unfinished_runs
        self._submit_timeout_s = settings.submit_timeout_s

    def admit(self, address: str | None, learner: str) -> None:
        """Check the number of learners at the client's network address. Raises AddressLimitReached.

        A client elsewhere shows that others can reach this site, whatever it listens on: a proxy may stand before it.
        """
        if not is_this_machine(address):
            self.runner.mark_users_untrusted()
        self._addresses.admit(address, learner, time.monotonic())

    async def dispatch(
        self,
        owner: QuotaOwner,
        lesson: Lesson,
        cell: Cell,
        machine: Machine,
        code: str,
        judgement: Callable[[AsyncSession, Run], Awaitable[None]] | None = None,
    ) -> tuple[Run, QueuePosition]:
        """Start a run of a cell on one of the machines that the cell offers.

        With ``judgement``, the code is judged as a submission. It is called in the transaction that stores the run; if
        it raises, nothing is stored.

        Raises:
            QuotaReached, AddressQuotaReached: too much was stored within an hour; nothing was stored.
            RunnerOffline: the supervisor does not respond; nothing was stored.
            NoNewSessions: the runner is drained, and the learner has no session on this machine; nothing was stored.
            AllSessionsBusy, SessionQueueFull, RunRefused: the supervisor rejected the run; nothing was stored.
            DatabaseFull, DatabaseUnavailable: the output could not be stored, even if the run itself could be.
        """
        await self.db.health.check()
        check_code(code)
        if self.drained and (judgement is not None or not await self._has_session(owner.learner, lesson, machine)):
            raise NoNewSessions
        self.quotas.admit(owner, code)
        async with self.db.writing() as session:
            run = await start_run(
                session,
                owner.learner,
                lesson,
                cell,
                machine,
                code,
                self._max_unfinished,
                judgement=judgement is not None,
                followed_until=now() + FOLLOWED_FOR + timedelta(seconds=self._submit_timeout_s),
            )
            if judgement is not None:
                await judgement(session, run)
        try:
            accepted = await self._hand_over(run)
        except (RunnerUnavailable, RequestRefused) as e:
            await self._withdraw(run)
            if isinstance(e, RequestRefused):
                raise refusal_error(e.status, e.refusal) from e
            await self._call_back(run)
            raise RunnerOffline from e
        except ExerciseGone as e:  # the lesson has changed since the request began
            await self._withdraw(run)
            raise CellNotFound(cell=run.cell) from e
        await self._note_submitted(run)
        self.followers.watch(run.id, owner.network)
        return run, position_of_run(run, accepted.session, accepted.ahead)

    @property
    def drained(self) -> bool:
        """Whether no new sessions may start."""
        return self._switches.since(Switch.drain) is not None

    async def _has_session(self, learner: str, lesson: Lesson, machine: Machine) -> bool:
        try:
            found = await self.runner.session(session_id(learner, lesson.key, machine))
        except RequestRefused:
            return False
        except RunnerUnavailable as e:
            raise RunnerOffline from e
        return found.state not in (SessionState.gone, SessionState.queued)

    async def stop(self, run: Run) -> None:
        """Stop a run unless it has finished. Its end arrives as an event."""
        if run.finished:
            return
        try:
            await self.runner.stop(run.id)
        except RequestRefused:
            self.followers.watch(run.id)  # the supervisor does not have it: its follower finds out why
        except RunnerUnavailable as e:
            raise RunnerOffline from e

    async def queue_positions(self, runs: list[Run]) -> list[QueuePosition]:
        """The queue position of each run, without asking the supervisor."""
        async with self.db.session() as session:
            return [position_of_run(run, None, await count_runs_ahead(session, run)) for run in runs]

    async def has_run_lesson(self, learner: str | None, lesson: Lesson) -> bool:
        """Whether the learner has ever run a cell of the lesson."""
        if learner is None:
            return False
        async with self.db.session() as session:
            return await has_run(session, learner, lesson.key)

    async def _withdraw(self, run: Run) -> None:
        try:
            async with self.db.writing() as session:
                await withdraw_run(session, run.id)
        except SQLAlchemyError:
            self.followers.watch(run.id)  # it is still stored: better that it runs than that it waits forever
            raise

    async def _note_submitted(self, run: Run) -> None:
        """Record the submission. If that fails, the run continues all the same: its follower submits it again."""
        try:
            await event_log.mark_submitted(self.db, run.id)
        except SQLAlchemyError as e:
            log_failure(_log, "the submission of a run could not be recorded", e, run=run.id)

    async def _call_back(self, run: Run) -> None:
        """Stop a withdrawn run, in case the supervisor accepted it and only its response was lost."""
        with suppress(RunnerError, TimeoutError):
            async with asyncio.timeout(_CANCEL_TIMEOUT_S):
                await self.runner.stop(run.id)

    async def _hand_over(self, run: Run) -> RunAccepted:
        give_up_at = time.monotonic() + self._submit_timeout_s
        request = self._request_of(run).model_copy(update={"trace_context": current_context()})
        while True:
            try:
                return await self.runner.submit(request)
            except RunnerUnavailable:
                if time.monotonic() >= give_up_at:
                    raise
                await asyncio.sleep(_SUBMIT_RETRY_INTERVAL_S)


async def _visitor_address(address: ClientAddress, account: OptionalAccount) -> str | None:
    return address if account is None else None


async def _quota_owner(
    learner: LearnerId, account: OptionalAccount, address: Annotated[str | None, Depends(_visitor_address)]
) -> QuotaOwner:
    return QuotaOwner(learner, account.role if account else None, client_network(address))


DISPATCHER = AppKey[RunDispatcher]("dispatcher")
RunDispatcherDep = Annotated[RunDispatcher, Depends(DISPATCHER.from_request)]
VisitorAddress = Annotated[str | None, Depends(_visitor_address)]
"""The IP address of a learner without an account; None for one with an account."""
RequestedQuotaOwner = Annotated[QuotaOwner, Depends(_quota_owner)]
"""The owner of a new run, whose quotas it counts toward."""
