"""Judgements: runs in which checks judge a submission.

They are queued, followed, stored, stopped and resumed like every run. Two things differ: the supervisor also gets the
checks and the solution, from the lesson at the time of submission; and events of checks are stored in the form that
the learner may see.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from sqlalchemy.ext.asyncio import AsyncSession

from app.lessons.catalog import Catalog
from app.lessons.judgements import judgement_of
from app.runs.models import Run
from app.runs.service import run_request
from app.web.dependencies import AppKey
from runners.wire.protocol import CheckEvent, FinishedEvent, Judgement, RunRequest


class ExerciseGone(Exception):
    """The lesson no longer has the exercise, so nothing can judge the submission."""


class RunHook(Protocol):
    """What a feature adds to the transactions that store the events of runs."""

    async def visible_check(self, session: AsyncSession, run_id: str, event: CheckEvent) -> CheckEvent:
        """The event of a check in the form that its learner may see. Called before it is stored."""

    async def run_ended(self, session: AsyncSession, run: Run, end: FinishedEvent) -> None:
        """Called with the run's last event, after all events are stored and while the run's row is locked."""


RUN_HOOKS = AppKey[Sequence[RunHook]]("run_hooks")
"""The hooks of all features."""


class RunRequests:
    """Creates the supervisor's requests for runs. One per process."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog

    def __call__(self, run: Run) -> RunRequest:
        """Raises ExerciseGone."""
        return run_request(run, self._judgement(run) if run.judgement else None)

    def _judgement(self, run: Run) -> Judgement:
        lesson = self._catalog.with_drafts.find_lesson(run.lesson, run.language)
        cell = lesson.cell(run.cell) if lesson is not None else None
        if lesson is None or cell is None or cell.exercise is None:
            raise ExerciseGone(f"{run.lesson}#{run.cell}")
        return judgement_of(lesson, cell)
