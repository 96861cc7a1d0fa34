"""Awards XP for a run, and calls the hooks of features, in the transaction that stores its end."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Sequence

import structlog
from sqlalchemy import func, select
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncSession

from app.db import now
from app.lessons.model import CellTag
from app.progress.events import CompletedRun, needs_first_run, needs_notices
from app.progress.service import ProgressService
from app.runs.judgements import RunHook
from app.runs.models import Run, RunEvent
from app.runs.scratch_cells import is_scratch_name
from runners.wire.protocol import CheckEvent, Event, FinishedEvent, Outcome

_log = structlog.get_logger("awards")


class RunAwards:
    """Called by ``event_log.append_events`` for each run that ends, and for each check of a judgement."""

    def __init__(self, progress: ProgressService, hooks: Sequence[RunHook] = ()) -> None:
        self._progress = progress
        self._hooks = hooks

    async def visible(self, session: AsyncSession, run_id: str, events: Sequence[Event]) -> Sequence[Event]:
        """The events in the form that their learner may see."""
        return [
            await self._visible_check(session, run_id, event) if isinstance(event, CheckEvent) else event
            for event in events
        ]

    async def for_end(self, session: AsyncSession, run_id: str, end: FinishedEvent) -> None:
        """Award the XP for a run, and call the hooks. The caller has locked the run's row.

        Output matters more: an error here that is not the database's is logged, and the run's end is still stored.
        """
        run = await session.get_one(Run, run_id, populate_existing=True)
        if not run.judgement:
            await self._try(session, run_id, self._award(session, run, end))
        for hook in self._hooks:
            await self._try(session, run_id, hook.run_ended(session, run, end))

    async def _visible_check(self, session: AsyncSession, run_id: str, event: CheckEvent) -> CheckEvent:
        """The event as its learner may see it. If that cannot be made, its traceback goes all the same."""
        try:
            async with session.begin_nested():
                for hook in self._hooks:
                    event = await hook.visible_check(session, run_id, event)
        except SQLAlchemyError:
            raise
        except Exception:
            _log.exception("a check could not be prepared for its learner", run=run_id)
        return event.model_copy(update={"detail": ""})

    async def _try(self, session: AsyncSession, run_id: str, award: Awaitable[None]) -> None:
        try:
            async with session.begin_nested():
                await award
        except SQLAlchemyError:
            raise
        except Exception:
            _log.exception("awarding XP for a run failed", run=run_id)

    async def _award(self, session: AsyncSession, run: Run, end: FinishedEvent) -> None:
        learner_id, lesson, name, code = run.learner_id, run.lesson, run.cell, run.code
        topology, keras = run.topology, run.keras
        if not self._progress.counts(lesson) or is_scratch_name(name):
            return
        cell = self._progress.cell(lesson, name)
        announced = cell is not None and CellTag.raises_exception in cell.tags
        if end.exited or (end.outcome is not Outcome.ok and not (announced and end.outcome is Outcome.error)):
            return
        lesson_code = cell.code if cell is not None else None
        facts = CompletedRun(
            lesson=lesson,
            cell=name,
            code=code,
            lesson_code=lesson_code,
            topology=topology,
            keras=keras,
            ok=end.outcome is Outcome.ok,
            ended=now(),
            duration_ms=end.duration_ms,
            notices=await _notice_codes(session, run.id) if needs_notices(topology) else (),
            first=needs_first_run(code, lesson_code, topology)
            and await _is_first_run(session, learner_id, lesson, name),
        )
        await self._progress.run_ended(session, learner_id, facts)


async def _notice_codes(session: AsyncSession, run_id: str) -> list[str]:
    payloads = select(RunEvent.payload).where(RunEvent.run_id == run_id, RunEvent.kind == "notice")
    return [json.loads(payload)["code"] for payload in await session.scalars(payloads)]


async def _is_first_run(session: AsyncSession, learner_id: str, lesson: str, cell: str) -> bool:
    mine = (Run.learner_id == learner_id, Run.lesson == lesson, Run.cell == cell, Run.judgement.is_(False))
    return await session.scalar(select(func.count()).where(*mine)) == 1
