"""The learners of a group one by one: the table of learners and lessons, and the page of one learner."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from sqlalchemy import ColumnElement, Select, case, func, or_, select
from sqlalchemy.ext.asyncio import AsyncSession

from app.accounts.models import Account
from app.db import Database
from app.exercises.models import Submission, Verdict
from app.exercises.submissions import FAILED_TRIES_BEFORE_SOLUTION
from app.groups.cell_details import MAX_CODE, CodeSample, first_errors, shows_code, wrong_kinds
from app.groups.learner_lists import TriedExercise, load_tried, stuck_learners
from app.groups.models import Group, GroupDeadline, GroupMember, GroupRole
from app.groups.report_table import csv_moment, in_zone
from app.groups.reports import LIMIT_OUTCOMES, ReportScope, is_stuck, tries_by_learner
from app.groups.reviews import GroupReview, list_reviews_of_learner
from app.groups.service import group_zone, list_deadlines
from app.i18n import gettext
from app.lessons.catalog import OutlineLesson
from app.progress.models import LessonProgress
from app.runs.models import JUDGED, UNSUCCESSFUL, Run
from app.runs.status_labels import outcome_label
from runners.wire.protocol import Outcome

PAGE_SIZE = 50
"""Learners per page."""
LESSONS_PER_PAGE = 30
_EXPORT_BATCH = 200
MAX_SEARCH_LENGTH = 100
_SHOWN_RUNS = 30


class LessonStanding(StrEnum):
    """How far a learner is in a lesson."""

    none = "none"
    opened = "opened"
    read = "read"
    """Read to the end."""
    completed = "completed"
    late = "late"
    """Completed after its deadline."""
    overdue = "overdue"
    """Not completed, and its deadline has passed."""


class LearnerOrder(StrEnum):
    """What the table is sorted by. Learners who may need help come first, except when sorted by name."""

    name = "name"
    stuck = "stuck"
    """The most exercises first."""
    completed = "completed"
    """The fewest lessons first."""
    seen = "seen"
    """Least recently seen first."""


@dataclass(frozen=True, slots=True)
class LearnerRow:
    """A learner in the table."""

    account: Account
    member: GroupMember
    states: Mapping[str, LessonStanding]
    """By lesson, for those that were opened or have a deadline."""
    completed: int
    """Lessons of the whole course."""
    tried: Mapping[tuple[str, str], TriedExercise]
    """By lesson and cell."""
    last_seen_at: datetime | None

    @property
    def stuck(self) -> int:
        """Exercises at which the learner is stuck."""
        return sum(exercise.is_stuck for exercise in self.tried.values())


@dataclass(frozen=True, slots=True)
class LearnerPage:
    """A page of the table: some learners, some lessons of the course, and the numbers of the next pages, if any."""

    rows: Sequence[LearnerRow]
    lessons: Sequence[OutlineLesson]
    next_learners: int | None
    next_lessons: int | None


@dataclass(frozen=True, slots=True)
class ExerciseRow:
    """A learner's tries at an exercise."""

    lesson: str
    cell: str
    tries: int
    passed_at: datetime | None

    @property
    def is_stuck(self) -> bool:
        return self.passed_at is None and self.tries >= FAILED_TRIES_BEFORE_SOLUTION


@dataclass(frozen=True, slots=True)
class DueRow:
    """A deadline, and whether one learner has met it."""

    deadline: GroupDeadline
    done_at: datetime | None
    state: LessonStanding


@dataclass(frozen=True, slots=True)
class FailedRun:
    """A run that did not end well. ``sample`` is its code, if the learner shows it."""

    lesson: str
    cell: str
    at: datetime
    what: str
    sample: CodeSample | None


@dataclass(frozen=True, slots=True)
class FailedSubmission:
    """A try at an exercise that did not pass. ``sample`` is its code, if the learner shows it."""

    lesson: str
    cell: str
    at: datetime
    checks: Sequence[str]
    """The kinds of what its checks found, or what ended the code before them."""
    sample: CodeSample | None


@dataclass(frozen=True, slots=True)
class LearnerReport:
    """All that the staff of a group sees of a learner, apart from the note. The learner sees the same."""

    account: Account
    member: GroupMember
    lessons: Sequence[LearnerLesson]
    states: Mapping[str, LessonStanding]
    """Of the lessons, by their keys."""
    exercises: Sequence[ExerciseRow]
    deadlines: Sequence[DueRow]
    wrong_answers: Sequence[FailedSubmission]
    failed_runs: Sequence[FailedRun]
    limited_runs: Sequence[FailedRun]
    """Those that met a limit."""
    reviews: Sequence[GroupReview]


@dataclass(frozen=True, slots=True)
class LearnerLesson:
    """How far a learner was in a lesson at the end of the group."""

    lesson: str
    started_at: datetime
    end_reached_at: datetime | None
    completed_at: datetime | None
    last_seen_at: datetime | None
    """None if it was open again after the end."""


def lesson_state(row: LearnerLesson | None, due_at: datetime | None, at: datetime) -> LessonStanding:
    """Pure."""
    if row is not None and row.completed_at is not None:
        return LessonStanding.late if due_at is not None and row.completed_at >= due_at else LessonStanding.completed
    if due_at is not None and due_at <= at:
        return LessonStanding.overdue
    if row is None:
        return LessonStanding.none
    return LessonStanding.read if row.end_reached_at is not None else LessonStanding.opened


async def list_learners(
    scope: ReportScope,
    search: str,
    page: int,
    lesson_page: int,
    *,
    only_stuck: bool = False,
    order: LearnerOrder = LearnerOrder.name,
    reverse: bool = False,
) -> LearnerPage:
    """A page of the table of learners and lessons. ``search`` is a part of a name or the beginning of a handle."""
    lessons = scope.lessons()
    start = lesson_page * LESSONS_PER_PAGE
    shown = lessons[start : start + LESSONS_PER_PAGE]
    found = _sorted(scope, _members(scope, search), order, reverse=reverse)
    if only_stuck:
        found = found.where(Account.learner_id.in_(stuck_learners(scope)))
    found = found.offset(page * PAGE_SIZE).limit(PAGE_SIZE + 1)
    members = [(member, account) for member, account in await scope.session.execute(found)]
    rows = await _with_progress(scope, members[:PAGE_SIZE])
    more_lessons = len(lessons) > start + LESSONS_PER_PAGE
    more = len(members) > PAGE_SIZE
    return LearnerPage(rows, shown, page + 1 if more else None, lesson_page + 1 if more_lessons else None)


def _sorted(
    scope: ReportScope, members: Select[GroupMember, Account], order: LearnerOrder, *, reverse: bool
) -> Select[GroupMember, Account]:
    """In this order, then by name, whatever the number of learners: the database sorts them before it takes a page."""
    if order is LearnerOrder.name:
        by_name = (Account.name.desc(), Account.id.desc())
        return members.order_by(None).order_by(*by_name) if reverse else members
    each = (_count_stuck(scope) if order is LearnerOrder.stuck else _sum_progress(scope)).subquery()
    if order is LearnerOrder.seen:
        key: ColumnElement[Any] = each.c.seen
        first = key.desc().nulls_last() if reverse else key.asc().nulls_first()
    else:
        key = func.coalesce(each.c[order], 0)
        first = key.desc() if reverse is (order is LearnerOrder.completed) else key.asc()
    joined = members.outerjoin(each, each.c.learner_id == Account.learner_id)
    return joined.order_by(None).order_by(first, Account.name, Account.id)


def _count_stuck(scope: ReportScope) -> Select[str, int]:
    """The learner IDs of those who are stuck, and at how many exercises."""
    tried = tries_by_learner(scope)
    stuck = select(tried.c.learner_id, func.count().label("stuck")).where(is_stuck(tried))
    return stuck.group_by(tried.c.learner_id)


def _sum_progress(scope: ReportScope) -> Select[str, int, datetime]:
    """How many lessons each learner completed, and when they were seen last."""
    learners, progress = scope.learners(), LessonProgress
    completed = scope.count_reached(progress.completed_at).label("completed")
    return (
        select(progress.learner_id, completed, scope.last_reached(progress.last_seen_at).label("seen"))
        .join(learners, learners.c.learner_id == progress.learner_id)
        .where(scope.in_course(progress.lesson), *scope.progress_during())
        .group_by(progress.learner_id)
    )


async def export_learners(
    db: Database, group: Group, scope_of: Callable[[AsyncSession], ReportScope], lessons: Sequence[OutlineLesson]
) -> AsyncIterator[Sequence[str]]:
    """Yield the whole table row by row, with a column for each of these lessons of the course and their exercises.

    Holds no connection while the client reads.
    """
    zone = group_zone(group)
    keys = [f"{group.course}/{entry.slug}" for entry in lessons]
    cells = [(entry, cell) for entry in lessons for cell in (entry.lesson.exercises if entry.lesson else ())]
    yield [
        gettext("Name"),
        gettext("Handle"),
        gettext("Lessons completed"),
        gettext("Stuck"),
        in_zone(gettext("Last seen"), zone),
        *(f"{entry.number}. {entry.title}" for entry in lessons),
        *(f"{entry.number}. {gettext('Exercise: %(title)s') % {'title': cell.title}}" for entry, cell in cells),
    ]
    exercises = [(f"{group.course}/{entry.slug}", cell.name) for entry, cell in cells]
    page = 0
    while True:
        async with db.session() as session:
            scope = scope_of(session)
            query = _members(scope, "").offset(page * _EXPORT_BATCH).limit(_EXPORT_BATCH)
            members = [(member, account) for member, account in await session.execute(query)]
            rows = await _with_progress(scope, members)
        for row in rows:
            seen = csv_moment(row.last_seen_at, zone) if row.last_seen_at else ""
            states = [row.states.get(key, LessonStanding.none) for key in keys]
            words = ["" if state is LessonStanding.none else standing_name(state) for state in states]
            tried = [_tried_name(row.tried.get(exercise)) for exercise in exercises]
            yield [row.account.name, row.account.handle, str(row.completed), str(row.stuck), seen, *words, *tried]
        if len(members) < _EXPORT_BATCH:
            return
        page += 1


def standing_name(state: str, *, of_exercise: bool = False) -> str:
    """A ``LessonStanding`` in words. An exercise meets its deadline with its checks, whatever a review says later."""
    if of_exercise and state == LessonStanding.completed:
        return gettext("passed")
    if of_exercise and state == LessonStanding.late:
        return gettext("passed late")
    return {
        LessonStanding.none: gettext("not opened"),
        LessonStanding.opened: gettext("opened"),
        LessonStanding.read: gettext("read to the end"),
        LessonStanding.completed: gettext("completed"),
        LessonStanding.late: gettext("completed late"),
        LessonStanding.overdue: gettext("overdue"),
    }[LessonStanding(state)]


def _tried_name(tried: TriedExercise | None) -> str:
    if tried is None:
        return ""
    if tried.passed:
        return gettext("passed")
    return gettext("stuck") if tried.is_stuck else gettext("tried")


async def load_learners_after(scope: ReportScope, account_id: str, most: int) -> Sequence[LearnerRow]:
    """At most this many learners, in the order of their accounts' IDs, after this one."""
    query = _members(scope, "").where(Account.id > account_id).order_by(None).order_by(Account.id).limit(most)
    members = [(member, account) for member, account in await scope.session.execute(query)]
    return await _with_progress(scope, members)


async def report_learner(scope: ReportScope, account: Account, member: GroupMember) -> LearnerReport:
    """What the staff of the group sees of one learner."""
    mine = (await _progress_of(scope, [account.learner_id])).get(account.learner_id, {})
    exercises = await _exercises(scope, account)
    passed = {(row.lesson, row.cell): row.passed_at for row in exercises}
    deadlines = []
    for deadline in await list_deadlines(scope.session, scope.group):
        if deadline.exercise:
            done_at = passed.get((deadline.lesson, deadline.exercise))
        else:
            done_at = mine[deadline.lesson].completed_at if deadline.lesson in mine else None
        deadlines.append(DueRow(deadline, done_at, _due_state(done_at, deadline.due_at, scope.at)))
    due = {row.deadline.lesson: row.deadline.due_at for row in deadlines if not row.deadline.exercise}
    keys = [f"{scope.group.course}/{entry.slug}" for entry in scope.lessons()]
    rows = [mine[key] for key in keys if key in mine]
    states = {row.lesson: lesson_state(row, due.get(row.lesson), scope.at) for row in rows}
    wrong = await _wrong_answers(scope, account, member)
    failed = await _failed_runs(scope, account, member, (Outcome.error, Outcome.crash))
    limited = await _failed_runs(scope, account, member, LIMIT_OUTCOMES)
    reviews = await list_reviews_of_learner(scope.session, scope.group, account.id)
    return LearnerReport(account, member, rows, states, exercises, deadlines, wrong, failed, limited, reviews)


def _due_state(done_at: datetime | None, due_at: datetime, at: datetime) -> LessonStanding:
    if done_at is not None:
        return LessonStanding.completed if done_at < due_at else LessonStanding.late
    return LessonStanding.overdue if due_at <= at else LessonStanding.none


def _members(scope: ReportScope, search: str) -> Select[GroupMember, Account]:
    found = select(GroupMember, Account).join(Account, Account.id == GroupMember.account_id)
    found = found.where(GroupMember.group_id == scope.group.id, GroupMember.role == GroupRole.learner)
    if text := search.strip().removeprefix("@"):
        by_name = Account.name.icontains(text, autoescape=True)
        found = found.where(or_(by_name, Account.handle.istartswith(text, autoescape=True)))
    return found.order_by(Account.name, Account.id)


async def _progress_of(scope: ReportScope, learners: Sequence[str]) -> Mapping[str, Mapping[str, LearnerLesson]]:
    """The progress of these learners in the course, by learner and lesson."""
    mine = select(LessonProgress).where(LessonProgress.learner_id.in_(learners))
    within = (scope.in_course(LessonProgress.lesson), *scope.progress_during())
    found: defaultdict[str, dict[str, LearnerLesson]] = defaultdict(dict)
    for progress in await scope.session.scalars(mine.where(*within)):
        moments = (progress.end_reached_at, progress.completed_at, progress.last_seen_at)
        row = LearnerLesson(progress.lesson, progress.started_at, *map(scope.reached, moments))
        found[progress.learner_id][progress.lesson] = row
    return found


async def _with_progress(scope: ReportScope, members: Sequence[tuple[GroupMember, Account]]) -> Sequence[LearnerRow]:
    learners = [account.learner_id for _, account in members]
    of_learner = await _progress_of(scope, learners)
    tried = await load_tried(scope, learners)
    due = {one.lesson: one.due_at for one in await list_deadlines(scope.session, scope.group) if not one.exercise}
    rows = []
    for member, account in members:
        mine = of_learner.get(account.learner_id, {})
        states = {key: lesson_state(mine.get(key), due.get(key), scope.at) for key in mine.keys() | due.keys()}
        completed = sum(row.completed_at is not None for row in mine.values())
        seen = max((row.last_seen_at for row in mine.values() if row.last_seen_at), default=None)
        rows.append(LearnerRow(account, member, states, completed, tried.get(account.learner_id, {}), seen))
    return rows


async def _exercises(scope: ReportScope, account: Account) -> Sequence[ExerciseRow]:
    passed_at = func.min(case((Submission.verdict == Verdict.passed, Run.created_at)))
    found = (
        select(Run.lesson, Run.cell, func.count(), passed_at)
        .join(Submission, Submission.run_id == Run.id)
        .where(JUDGED, Run.learner_id == account.learner_id, scope.in_course(Run.lesson))
        .where(Submission.verdict.in_((Verdict.passed, Verdict.failed)), *scope.during(Run.created_at))
        .group_by(Run.lesson, Run.cell)
        .order_by(Run.lesson, Run.cell)
    )
    return [ExerciseRow(*row) for row in await scope.session.execute(found)]


async def _wrong_answers(scope: ReportScope, account: Account, member: GroupMember) -> Sequence[FailedSubmission]:
    query = (
        select(Run, Submission.results)
        .join(Submission, Submission.run_id == Run.id)
        .where(JUDGED, Run.learner_id == account.learner_id, scope.in_course(Run.lesson))
        .where(Submission.verdict == Verdict.failed, *scope.during(Run.created_at))
        .order_by(Run.created_at.desc(), Run.id)
        .limit(_SHOWN_RUNS)
    )
    answers = []
    submissions = [(run, results) for run, results in await scope.session.execute(query)]
    kinds = await wrong_kinds(scope, submissions)
    for run, _ in submissions:
        found = kinds[run.id]
        sample = None
        if shows_code(member, run.created_at):
            messages = "\n".join(dict.fromkeys(message for _, message in found if message))
            sample = CodeSample(account.id, account.name, run.created_at, messages, run.code[:MAX_CODE])
        answers.append(FailedSubmission(run.lesson, run.cell, run.created_at, [check for check, _ in found], sample))
    return answers


async def _failed_runs(
    scope: ReportScope, account: Account, member: GroupMember, outcomes: Sequence[Outcome]
) -> Sequence[FailedRun]:
    query = (
        select(Run)
        .where(UNSUCCESSFUL, Run.learner_id == account.learner_id, scope.in_course(Run.lesson))
        .where(Run.outcome.in_(outcomes), *scope.during(Run.created_at))
        .order_by(Run.created_at.desc(), Run.id)
        .limit(_SHOWN_RUNS)
    )
    runs = (await scope.session.scalars(query)).all()
    errors = await first_errors(scope, [run.id for run in runs if run.outcome not in LIMIT_OUTCOMES])
    failed = []
    for run in runs:
        name, message = errors.get(run.id, ("", ""))
        sample = None
        if shows_code(member, run.created_at):
            sample = CodeSample(account.id, account.name, run.created_at, message, run.code)
        failed.append(
            FailedRun(
                run.lesson,
                run.cell,
                run.created_at,
                name or outcome_label(Outcome(run.outcome or Outcome.lost)),
                sample,
            )
        )
    return failed
