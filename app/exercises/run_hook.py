"""Updates exercises and predictions in the transaction that stores a run's events."""

from __future__ import annotations

import hashlib
import re

from sqlalchemy.ext.asyncio import AsyncSession

from app import i18n
from app.exercises.check_sentences import check_sentence
from app.exercises.guesses import result_of_run
from app.exercises.models import PredictionAnswer, Submission, Verdict
from app.exercises.predictions import Answer, can_show_result, record_answer, settles_predictions
from app.exercises.reviews import ReviewGroups, exercise_event
from app.exercises.verdicts import FAULT, Judged, decide, dump_results, load_results
from app.feedback.service import record_check_failure
from app.lessons.catalog import Catalog
from app.lessons.model import Lesson, Prediction
from app.progress.events import LearningEvent
from app.progress.ledger import lock_current_learner
from app.progress.service import ProgressService
from app.runs.event_log import read_events
from app.runs.models import Run
from app.runs.printed_lines import printed_lines
from runners.wire import check_messages
from runners.wire.protocol import CheckEvent, FinishedEvent

_PLACE = re.compile(r'^  File "[^"\n]*", line \d+', re.MULTILINE)
MAX_SUBJECT_LENGTH = 320
"""The maximum length of a subject in the ledger."""


class ExerciseRunHook:
    """The RunHook of exercises. One per process."""

    def __init__(self, catalog: Catalog, progress: ProgressService, review_groups: ReviewGroups) -> None:
        self._catalog = catalog
        self._progress = progress
        self._review_groups = review_groups

    async def visible_check(self, session: AsyncSession, run_id: str, event: CheckEvent) -> CheckEvent:
        """The event in the learner's language, without its traceback, which goes to the instructors' inbox."""
        run = await session.get_one(Run, run_id)
        lesson = self._catalog.with_drafts.find_lesson(run.lesson, run.language)
        cell = lesson.cell(run.cell) if lesson is not None else None
        words = cell.exercise.translations if cell is not None and cell.exercise is not None else {}
        with i18n.use_language(run.language):
            message = words.get(event.message) or check_sentence(event.message)
        if event.outcome == FAULT:
            where = "\n".join((run.lesson, run.cell, event.name, *_places(event.detail)))
            key = hashlib.sha256(where.encode()).hexdigest()
            text = f"The check “{event.name}” failed on its own.\n\n{event.detail}"
            await record_check_failure(session, run.lesson, run.cell, text, key)
            with i18n.use_language(run.language):
                message = check_sentence(check_messages.FAULT)
            return event.model_copy(
                update={"message": message, "values": {}, "got": None, "wanted": None, "detail": ""}
            )
        return event.model_copy(update={"message": message, "detail": ""})

    async def run_ended(self, session: AsyncSession, run: Run, end: FinishedEvent) -> None:
        if run.judgement:
            await self._judge(session, run, end)
        elif run.started_at is not None:
            await self._settle_predictions(session, run, end)

    async def _judge(self, session: AsyncSession, run: Run, end: FinishedEvent) -> None:
        submission = await session.get_one(Submission, run.id)
        events = [event for event in await read_events(session, run.id, "check") if isinstance(event, CheckEvent)]
        judged = decide(load_results(submission.results), events, end.outcome, end.limit)
        submission.verdict, submission.results = judged.verdict, dump_results(judged.results)
        await session.flush()
        if self._progress.counts(run.lesson) and (facts := await self._facts(session, run, judged)):
            await self._progress.task_done(session, run.learner_id, run.lesson, f"cell-{run.cell}", facts)

    async def _facts(self, session: AsyncSession, run: Run, judged: Judged) -> list[LearningEvent]:
        exercise = f"{run.lesson}#{run.cell}"
        facts = [
            LearningEvent("check", f"{exercise}/{result.name}"[:MAX_SUBJECT_LENGTH], result.xp)
            for result in judged.passed_checks
        ]
        if judged.verdict is Verdict.passed:
            lesson = self._catalog.with_drafts.find_lesson(run.lesson, run.language)
            if not await self._waits_for_review(session, run, lesson):
                facts.append(exercise_event(lesson, run.lesson, run.cell))
        return facts

    async def _waits_for_review(self, session: AsyncSession, run: Run, lesson: Lesson | None) -> bool:
        """Whether the exercise is done only once somebody has accepted what passed."""
        cell = lesson.cell(run.cell) if lesson is not None else None
        if lesson is None or cell is None or cell.exercise is None or not cell.exercise.is_reviewed:
            return False
        return bool(await self._review_groups(session, run.learner_id, lesson.course))

    async def _settle_predictions(self, session: AsyncSession, run: Run, end: FinishedEvent) -> None:
        """Store the run's result with the answers that wait for it.

        A prediction that is not answered yet was skipped: the page asks before it runs the cell, but other clients
        need not.
        """
        lesson = self._catalog.with_drafts.find_lesson(run.lesson, run.language)
        cell = lesson.cell(run.cell) if lesson is not None else None
        asked = [one for one in lesson.predictions if one.cell == run.cell] if lesson is not None else []
        if lesson is None or cell is None or not asked:
            return
        learner = await lock_current_learner(session, run.learner_id)
        tells = settles_predictions(cell, run)
        errors: tuple[str, ...] | None = None
        printed: str | None = None
        for prediction in asked:
            key = (learner, run.lesson, prediction.name)
            if await session.get(PredictionAnswer, key) is None:
                skipped = Answer(guess=None, informed=True, at=run.created_at)
                await record_answer(session, self._progress, learner, lesson, prediction, skipped)
            answer = await session.get_one(PredictionAnswer, key)
            if not tells or answer.result is not None or answer.answered_at > run.created_at:
                continue
            if errors is None:
                errors = printed_lines(await read_events(session, run.id, "error"))
            if not can_show_result(prediction, cell, end.outcome, errors):
                continue
            if printed is None:
                printed = "\n".join(printed_lines(await read_events(session, run.id, "text")))
            await self._settle(session, run, cell.code, prediction, answer, printed)

    async def _settle(
        self, session: AsyncSession, run: Run, code: str, prediction: Prediction, answer: PredictionAnswer, printed: str
    ) -> None:
        """``code``: the lesson's own code of the cell. Changed code can print the guess, so it earns no foresight."""
        result = result_of_run(prediction, printed)
        if result is None:
            return
        answer.result = result.value
        answer.right = None if answer.guess is None else result.agrees(answer.guess)
        await session.flush()
        unchanged = run.code.strip() == code.strip()
        if answer.right and unchanged and not answer.informed and self._progress.counts(run.lesson):
            fact = LearningEvent("foresight", f"{run.lesson}#{prediction.name}")
            await self._progress.task_done(session, run.learner_id, run.lesson, f"cell-{run.cell}", [fact])


def _places(traceback: str) -> list[str]:
    """The lines of code in a traceback, each once.

    Only these tell failures apart: the error's text may contain what a submission returned, and would give each
    submission a report of its own.
    """
    return sorted(set(_PLACE.findall(traceback)))
