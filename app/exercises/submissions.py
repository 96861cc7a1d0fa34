"""Submissions: the tries at an exercise. These functions flush; the caller commits."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import func, select
from sqlalchemy.ext.asyncio import AsyncSession

from app import i18n
from app.accounts.merge import merged_visitor_ids, resolve_learner_id
from app.errors import LockstepError
from app.exercises.errors import AnotherCheckRunning, ExerciseNotFound, SubmissionNotFound
from app.exercises.models import Submission, Verdict
from app.exercises.verdicts import CheckResult, dump_results, load_results, pending_results
from app.lessons.catalog import CatalogView
from app.lessons.model import Cell, Exercise, Lesson
from app.rate_limit import RateLimitPolicy, count_attempt, network_limit_key
from app.runs.dispatcher import RunDispatcher
from app.runs.machines import cell_machines
from app.runs.models import Run, RunState
from app.runs.pruning import TRIES_KEPT
from app.runs.queue_position import QueuePosition, look_up_position
from app.runs.quotas import QuotaOwner
from app.runs.service import get_run

FAILED_TRIES_BEFORE_SOLUTION = 3
CHECKS_PER_LEARNER = RateLimitPolicy(free_attempts=40, initial_delay_s=2.0, max_delay_s=10.0)
CHECKS_PER_NETWORK = RateLimitPolicy(free_attempts=600, initial_delay_s=1.0, max_delay_s=5.0)
"""A network may be shared by many people, such as a classroom."""


@dataclass(frozen=True, slots=True)
class Try:
    """One submission, as its learner sees it."""

    run_id: str
    code: str
    created_at: datetime
    verdict: Verdict | None
    """None while it is being judged."""
    results: tuple[CheckResult, ...]


@dataclass(frozen=True, slots=True)
class Tries:
    """A learner's tries at one exercise, latest first."""

    tries: tuple[Try, ...] = ()

    @property
    def latest(self) -> Try | None:
        return self.tries[0] if self.tries else None

    @property
    def passed(self) -> bool:
        """Whether any try passed."""
        return any(one.verdict is Verdict.passed for one in self.tries)

    @property
    def failed_count(self) -> int:
        """The number of failed tries; tries that were lost, or in which a check itself failed, do not count."""
        return sum(one.verdict is Verdict.failed for one in self.tries)


def find_exercise(lesson: Lesson, name: str) -> tuple[Cell, Exercise]:
    """The exercise with this name. Raises ExerciseNotFound."""
    cell = lesson.cell(name)
    if cell is None or cell.exercise is None:
        raise ExerciseNotFound(exercise=name[:100])
    return cell, cell.exercise


class _AlreadySubmitted(Exception):
    def __init__(self, run: Run) -> None:
        super().__init__(run.id)
        self.run = run


async def submit(
    dispatcher: RunDispatcher,
    catalog: CatalogView,
    owner: QuotaOwner,
    address: str | None,
    lesson: Lesson,
    cell: Cell,
    code: str,
    key: str,
) -> tuple[Run, QueuePosition]:
    """Submit the learner's code to be judged. ``address`` is the client's network address.

    Returns the earlier run if a submission with the same ``key`` exists, whatever limit the learner has reached since,
    or if the exercise is still being judged.

    Raises:
        AnotherCheckRunning: a submission for another exercise is being judged.
        TooManyAttempts: this learner or network has sent too many lately.
        AddressLimitReached: too many other learners use the same network.
        LockstepError: as for every run, see ``RunDispatcher.dispatch``. Nothing was stored, and no try was used.
    """
    exercise = cell.exercise
    assert exercise is not None

    async def store(session: AsyncSession, run: Run) -> None:
        before = await _submitted_with(session, run.learner_id, key) or await _unfinished_judgement(session, run)
        if before is not None:
            raise _AlreadySubmitted(before)
        await count_attempt(session, network_limit_key("check", owner.network), CHECKS_PER_NETWORK)
        await count_attempt(session, f"check learner {owner.learner}", CHECKS_PER_LEARNER)
        results = dump_results(pending_results(exercise))
        session.add(
            Submission(
                run_id=run.id,
                idempotency_key=_key_of(run.learner_id, key),
                verdict=None,
                results=results,
                lesson_digest=lesson.digest,
            )
        )
        await session.flush()

    try:
        dispatcher.admit(address, owner.learner)
        return await dispatcher.dispatch(owner, lesson, cell, cell_machines(cell)[0], code, judgement=store)
    except _AlreadySubmitted as e:
        run = e.run
    except LockstepError:
        async with dispatcher.db.session() as session:
            learner = await resolve_learner_id(session, owner.learner)
            earlier = await _submitted_with(session, learner, key)
        if earlier is None:
            raise
        run = earlier
    if (run.lesson, run.cell) != (lesson.key, cell.name):
        raise AnotherCheckRunning(exercise=catalog.cell_title(run.lesson, run.cell, i18n.current_language()))
    dispatcher.followers.watch(run.id, owner.network)
    return run, await look_up_position(dispatcher.runner, run, 0)


async def list_tries(
    session: AsyncSession, learner: str | None, lesson: str, exercise: str | None = None
) -> dict[str, Tries]:
    """A learner's latest tries at each exercise of a lesson, or at one of them, by the cell's name."""
    if learner is None:
        return {}
    latest_first = (Run.created_at.desc(), Run.id.desc())
    place = func.row_number().over(partition_by=Run.cell, order_by=latest_first)
    mine = [Run.learner_id == learner, Run.lesson == lesson, Run.judgement.is_(True)]
    if exercise is not None:
        mine.append(Run.cell == exercise)
    ranked = select(Run.id, place.label("place")).where(*mine).subquery().c
    listed = select(ranked.id).where(ranked.place <= TRIES_KEPT)
    query = select(Run, Submission).join(Submission, Submission.run_id == Run.id).where(Run.id.in_(listed))
    tries: defaultdict[str, list[Try]] = defaultdict(list)
    for run, submission in await session.execute(query.order_by(*latest_first)):
        tries[run.cell].append(_as_try(run, submission))
    return {cell: Tries(tuple(of_cell)) for cell, of_cell in tries.items()}


async def get_try(session: AsyncSession, learner: str | None, run_id: str) -> tuple[Run, Try]:
    """One of the learner's own tries. Raises RunNotFound or SubmissionNotFound."""
    run = await get_run(session, learner, run_id)
    submission = await session.get(Submission, run.id)
    if submission is None:
        raise SubmissionNotFound
    return run, _as_try(run, submission)


def _as_try(run: Run, submission: Submission) -> Try:
    verdict = Verdict(submission.verdict) if submission.verdict else None
    if verdict is None and run.finished:
        verdict = Verdict.fault  # the run's end was stored, but the verdict could not be: the log has the reason
    return Try(run.id, run.code, run.created_at, verdict, load_results(submission.results))


def _key_of(learner: str, key: str) -> str:
    """Makes keys of different learners different."""
    return hashlib.sha256(f"{learner}\n{key}".encode()).hexdigest()


async def _submitted_with(session: AsyncSession, learner: str, key: str) -> Run | None:
    """The run with this key, also if it was submitted before the learner signed in."""
    known_as = (learner, *await merged_visitor_ids(session, learner))
    same = Submission.idempotency_key.in_([_key_of(one, key) for one in known_as])
    return (await session.scalars(select(Run).join(Submission, Submission.run_id == Run.id).where(same))).first()


async def _unfinished_judgement(session: AsyncSession, but: Run) -> Run | None:
    """Another unfinished judgement of the learner. Queried after ``but`` was stored, so that the later one sees it."""
    others = select(Run).where(
        Run.learner_id == but.learner_id,
        Run.judgement.is_(True),
        Run.state != RunState.finished,
        Run.id != but.id,
    )
    return (await session.scalars(others.order_by(Run.created_at, Run.id).limit(1))).first()
