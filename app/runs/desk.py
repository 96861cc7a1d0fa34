"""Where runs are handed over: what the routes need of database, runner and pump, and the one order that matters.

A run is stored and committed, then handed to the supervisor, then followed. If the supervisor does not answer, the run
is withdrawn and the learner told; if this process dies in between, the next one hands it in.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from typing import Annotated

import structlog
from fastapi import Depends
from sqlalchemy.exc import SQLAlchemyError
from starlette.requests import Request

from app import i18n
from app.accounts.models import Account
from app.bus import Bus
from app.db import Database
from app.lessons.catalog import CatalogView, TheCatalog
from app.lessons.model import Cell, Lesson
from app.progress.service import Progress
from app.runs import log
from app.runs.addresses import Addresses
from app.runs.awards import Awards
from app.runs.errors import RunnerDown, declined
from app.runs.machines import Machine
from app.runs.models import Run
from app.runs.place import Place, place
from app.runs.pump import Pump
from app.runs.quotas import Owner, QuotaLimits, Quotas
from app.runs.service import check_code, ever_ran, run_request, runs_ahead, start_run, withdraw_run
from app.runs.stream import RunStreams
from app.settings import Settings
from app.storage import log_failure
from app.web.origin import origin
from runners.client import Refused, RunnerClient, RunnerError, RunnerUnavailable
from runners.protocol import RunAccepted

_log = structlog.get_logger("desk")
_TRY_EVERY_S = 0.1
_CALL_BACK_S = 2.0


class Desk:
    """One for each process, made by ``main``."""

    def __init__(
        self, settings: Settings, db: Database, runner: RunnerClient, bus: Bus, progress: Progress | None = None
    ) -> None:
        self.db = db
        self.runner = runner
        self.bus = bus
        awards = Awards(progress) if progress is not None else None
        self.quotas = Quotas(db, QuotaLimits.of(settings))
        self.pump = Pump(db, runner, bus, awards, most_stored_bytes=settings.most_stored_bytes, quotas=self.quotas)
        self.streams = RunStreams(db, runner, bus, self.pump, visitors_per_address=settings.visitors_per_address)
        self._addresses = Addresses(settings.visitors_per_address)
        self._most_unfinished = settings.most_unfinished_runs
        self._patience_s = settings.handover_patience_s

    def admit(self, request: Request, learner: str) -> None:
        """Let a learner have code run from where they are. Raises AddressFull."""
        self._addresses.admit(request.client.host if request.client else None, learner, time.monotonic())

    def owner(self, request: Request, learner: str, account: Account | None) -> Owner:
        """Whose quotas a run counts for that is asked for now."""
        address = request.client.host if request.client is not None and account is None else None
        return Owner(learner, account is not None, origin(address))

    async def take(self, owner: Owner, lesson: Lesson, cell: Cell, machine: Machine, code: str) -> tuple[Run, Place]:
        """Start a run of a cell on one of the machines it offers.

        Raises:
            QuotaReached, AddressQuotaReached: too much was stored within an hour; nothing was kept.
            RunnerDown: the supervisor does not answer; nothing was kept.
            AllSessionsBusy, SessionFull, RunRefused: the supervisor declined; nothing was kept.
            StorageFull, StorageDown: the output could not be stored, even where the run itself could be.
        """
        await self.db.storage.check()
        check_code(code)
        self.quotas.admit(owner, code)
        async with self.db.writing() as session:
            run = await start_run(session, owner.learner, lesson, cell, machine, code, self._most_unfinished)
        try:
            accepted = await self._hand_over(run)
        except (RunnerUnavailable, Refused) as e:
            await self._withdraw(run)
            if isinstance(e, Refused):
                raise declined(e.status, e.refusal) from e
            await self._call_back(run)
            raise RunnerDown from e
        await self._note_handed_in(run)
        self.pump.watch(run.id, owner.place)
        return run, place(run, accepted.session, accepted.ahead)

    async def stop(self, run: Run) -> None:
        """Stop a run, if it is still going. Its end comes as an event."""
        if run.finished:
            return
        try:
            await self.runner.stop(run.id)
        except Refused:
            self.pump.watch(run.id)  # the supervisor does not have it: the pump finds out why
        except RunnerUnavailable as e:
            raise RunnerDown from e

    async def places(self, runs: list[Run]) -> list[Place]:
        """Where each run stands, without asking the supervisor."""
        async with self.db.session() as session:
            return [place(run, None, await runs_ahead(session, run)) for run in runs]

    async def ever_ran(self, learner: str | None, lesson: Lesson) -> bool:
        """Whether the learner ever ran a cell of the lesson."""
        if learner is None:
            return False
        async with self.db.session() as session:
            return await ever_ran(session, learner, lesson.key)

    async def _withdraw(self, run: Run) -> None:
        try:
            async with self.db.writing() as session:
                await withdraw_run(session, run.id)
        except SQLAlchemyError:
            self.pump.watch(run.id)  # it is still there: better that it ends than that it waits for ever
            raise

    async def _note_handed_in(self, run: Run) -> None:
        """The run goes on, and its learner sees it, whether or not this can be noted: the pump hands it in again."""
        try:
            await log.mark_handed_in(self.db, run.id)
        except SQLAlchemyError as e:
            log_failure(_log, "it could not be noted that a run was handed in", e, run=run.id)

    async def _call_back(self, run: Run) -> None:
        """Stop a withdrawn run, in case the supervisor has it and only its answer was lost."""
        with suppress(RunnerError, TimeoutError):
            async with asyncio.timeout(_CALL_BACK_S):
                await self.runner.stop(run.id)

    async def _hand_over(self, run: Run) -> RunAccepted:
        give_up_at = time.monotonic() + self._patience_s
        while True:
            try:
                return await self.runner.submit(run_request(run))
            except RunnerUnavailable:
                if time.monotonic() >= give_up_at:
                    raise
                await asyncio.sleep(_TRY_EVERY_S)


async def _desk(request: Request) -> Desk:
    desk: Desk = request.app.state.desk
    return desk


async def _asked_lesson(catalog: TheCatalog, lesson: str) -> Lesson:
    return find_lesson(catalog, lesson)


def find_lesson(catalog: CatalogView, key: str) -> Lesson:
    """The lesson ``course/slug`` in the language in use. Raises LessonUnknown or CourseUnknown."""
    course, _, slug = key.partition("/")
    return catalog.lesson(course, slug, i18n.current())


TheDesk = Annotated[Desk, Depends(_desk)]
AskedLesson = Annotated[Lesson, Depends(_asked_lesson)]
"""The lesson named by ``?lesson=course/slug``."""
