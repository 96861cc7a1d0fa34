"""What the staff of a group sees of its learners together: one table per question, each from one or two queries.

Only what happened in a ``ReportWindow`` counts. A table has a row for each lesson, exercise or cell, never one for each
learner, so its size does not depend on how many learners there are.
"""

from __future__ import annotations

import textwrap
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import ColumnElement, Select, Subquery, case, func, select
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import InstrumentedAttribute

from app import i18n
from app.accounts.models import Account
from app.comments.markdown import to_plain_text
from app.comments.models import Comment, CommentState
from app.exercises.models import Submission, Verdict
from app.exercises.submissions import FAILED_TRIES_BEFORE_SOLUTION
from app.groups.models import Group, GroupMember, GroupRole
from app.groups.report_table import ReportCell, ReportLink, ReportTable, ReportWindow, count_cell
from app.groups.service import group_zone
from app.i18n import gettext
from app.lessons.catalog import CatalogView, OutlineLesson
from app.lessons.model import CellTag
from app.progress.models import LessonProgress
from app.runs.models import JUDGED, UNSUCCESSFUL, Run
from app.runs.status_labels import outcome_label
from runners.wire.protocol import Outcome

STOPPED_AFTER = timedelta(days=7)
"""A learner who has opened no lesson for so long has stopped at the last one, unless it is completed."""
MAX_QUESTIONS = 200
LIMIT_OUTCOMES = (
    *(Outcome.timeout, Outcome.cpu, Outcome.memory, Outcome.output, Outcome.processes, Outcome.disk, Outcome.files),
)
_JUDGED_TRIES = (Verdict.passed, Verdict.failed)


@dataclass(frozen=True, slots=True)
class ReportScope:
    """What a report is about, and who reads it."""

    session: AsyncSession
    group: Group
    window: ReportWindow
    catalog: CatalogView
    language: str
    at: datetime

    def during(self, moment: InstrumentedAttribute[datetime]) -> list[ColumnElement[bool]]:
        """Conditions: the moment is in the window."""
        bounds = []
        if self.window.since is not None:
            bounds.append(moment >= self.window.since)
        if self.window.until is not None:
            bounds.append(moment < self.window.until)
        return bounds

    def progress_during(self) -> list[ColumnElement[bool]]:
        """Conditions: a lesson was opened before the end of the window, and was open after its start."""
        bounds: list[ColumnElement[bool]] = []
        if self.window.since is not None:
            bounds.append(LessonProgress.last_seen_at >= self.window.since)
        if self.window.until is not None:
            bounds.append(LessonProgress.started_at < self.window.until)
        return bounds

    def count_reached(self, moment: InstrumentedAttribute[datetime | None]) -> ColumnElement[int]:
        """Counts the rows whose moment came before the end of the window."""
        until = self.window.until
        return func.count(moment) if until is None else func.count(case((moment < until, 1)))

    def last_reached(self, moment: InstrumentedAttribute[datetime]) -> ColumnElement[datetime]:
        """The latest moment of the rows that came before the end of the window."""
        until = self.window.until
        return func.max(moment) if until is None else func.max(case((moment < until, moment)))

    def reached(self, moment: datetime | None) -> datetime | None:
        """The moment; None if it came after the end of the window."""
        return moment if moment is None or self.window.until is None or moment < self.window.until else None

    def in_course(self, lesson: InstrumentedAttribute[str]) -> ColumnElement[bool]:
        """Condition: the lesson is one of the group's course."""
        return lesson.startswith(f"{self.group.course}/", autoescape=True)

    def learners(self) -> Subquery:
        """The learner IDs of the group's learners."""
        mine = select(Account.learner_id).join(GroupMember, GroupMember.account_id == Account.id)
        return mine.where(GroupMember.group_id == self.group.id, GroupMember.role == GroupRole.learner).subquery()

    def lessons(self) -> Sequence[OutlineLesson]:
        """The lessons of the group's course, in order. Empty if the course is not served, or hidden from the viewer."""
        outline = self.catalog.find_outline(self.group.course, self.language)
        return outline.lessons if outline is not None else ()

    def cell_link(self, what: str, lesson: str, cell: str, anchor: str = "") -> ReportLink:
        """A link to the page with the ``errors``, ``limits`` or ``wrong-answers`` of a cell."""
        parts = {"group_id": self.group.id, "what": what}
        return ReportLink("group_cell", parts, {"lesson": lesson, "cell": cell}, anchor)

    def learner_cell(self, account: Account) -> ReportCell:
        """The name of a learner, which leads to their page."""
        parts = {"group_id": self.group.id, "account_id": account.id}
        return ReportCell(account.name, link=ReportLink("group_learner", parts))

    def moment_cell(self, moment: datetime) -> ReportCell:
        """A moment in the time zone of the group."""
        return ReportCell(i18n.date_and_time(moment.astimezone(group_zone(self.group))), moment)

    def lesson_title(self, key: str) -> ReportCell:
        title = self.catalog.lesson_title(key, self.language)
        return ReportCell(title, link=lesson_link(key))

    def cell_title(self, key: str, cell: str) -> str:
        return self.catalog.cell_title(key, cell, self.language)


def lesson_link(key: str, anchor: str = "") -> ReportLink:
    """A link to a lesson, or to a place in it."""
    course, _, slug = key.partition("/")
    return ReportLink("lesson", {"course": course, "slug": slug}, {}, anchor)


async def count_learners(scope: ReportScope) -> tuple[int, int]:
    """How many learners the group has, and how many of them opened a lesson of the course in the window."""
    learners = scope.learners()
    opened = select(LessonProgress.lesson).where(
        LessonProgress.learner_id == learners.c.learner_id,
        scope.in_course(LessonProgress.lesson),
        *scope.progress_during(),
    )
    # EXISTS ends at the first lesson that it finds; a count of distinct learners would read all of them.
    counted = select(func.count(), func.count(case((opened.correlate(learners).exists(), 1)))).select_from(learners)
    found = (await scope.session.execute(counted)).one()
    return found[0], found[1]


async def count_all_learners(scope: ReportScope) -> int:
    """How many learners the group has: the whole of the shares in its tables."""
    mine = (GroupMember.group_id == scope.group.id, GroupMember.role == GroupRole.learner)
    return await scope.session.scalar(select(func.count()).where(*mine)) or 0


async def report_lessons(scope: ReportScope) -> ReportTable:
    """For each lesson of the course, in its order: who opened it, who finished it, and who stopped there."""
    learners, progress = scope.learners(), LessonProgress
    mine = (scope.in_course(progress.lesson), *scope.progress_during())
    counts = (
        select(
            progress.lesson,
            func.count(),
            scope.count_reached(progress.end_reached_at),
            scope.count_reached(progress.completed_at),
        )
        .where(progress.learner_id.in_(select(learners.c.learner_id)), *mine)
        .group_by(progress.lesson)
    )
    by_lesson = {row[0]: row[1:] for row in await scope.session.execute(counts)}
    stopped = await _count_stopped(scope)
    every = await count_all_learners(scope)
    rows = []
    for entry in scope.lessons():
        key = f"{scope.group.course}/{entry.slug}"
        opened, end_reached, completed = by_lesson.get(key, (0, 0, 0))
        title = ReportCell(entry.title, link=lesson_link(key))
        counted = [count_cell(count, every) for count in (opened, end_reached, completed)]
        left = stopped.get(key, 0)
        link = ReportLink("group_stopped", {"group_id": scope.group.id}, {"lesson": key}) if left else None
        rows.append((title, *counted, count_cell(left, every, link)))
    return ReportTable(
        "lessons",
        gettext("Lessons"),
        (
            gettext("Lesson"),
            gettext("Opened"),
            gettext("Read to the end"),
            gettext("Completed"),
            gettext("Stopped here"),
        ),
        rows,
        gettext("The course has no lessons."),
        stopped_hint(),
        last_first=True,
    )


def stopped_hint() -> str:
    return gettext(
        "Learners who stopped in a lesson opened it last, did not complete it, and have not been back for a week."
    )


def stopped_progress(scope: ReportScope) -> Select[str, str, datetime]:
    """Learner ID, lesson, and when it was open last, of each learner who stopped in one.

    Each learner's last lesson is found by itself: to rank the lessons of all learners, SQLite would sort them all.
    """
    learners, progress = scope.learners(), LessonProgress
    last = (
        select(progress.lesson)
        .where(progress.learner_id == learners.c.learner_id)
        .where(scope.in_course(progress.lesson), *scope.progress_during())
        .order_by(progress.last_seen_at.desc(), progress.lesson)
        .limit(1)
        .correlate(learners)
        .scalar_subquery()
    )
    each = select(learners.c.learner_id, last.label("lesson")).subquery()
    return (
        select(progress.learner_id, progress.lesson, progress.last_seen_at)
        .join(each, (each.c.learner_id == progress.learner_id) & (each.c.lesson == progress.lesson))
        .where(progress.last_seen_at < scope.at - STOPPED_AFTER, progress.completed_at.is_(None))
    )


async def _count_stopped(scope: ReportScope) -> Mapping[str, int]:
    """How many learners stopped in each lesson."""
    stopped = stopped_progress(scope).subquery()
    found = select(stopped.c.lesson, func.count()).group_by(stopped.c.lesson)
    return {row[0]: row[1] for row in await scope.session.execute(found)}


def tries_by_learner(scope: ReportScope, *conditions: ColumnElement[bool]) -> Subquery:
    """How often each learner tried each exercise, whether they passed, and when they tried last."""
    learners = scope.learners()
    passed = func.max(case((Submission.verdict == Verdict.passed, 1), else_=0))
    tries, last_at = func.count().label("tries"), func.max(Run.created_at).label("last_at")
    return (
        select(Run.lesson, Run.cell, Run.learner_id, tries, passed.label("passed"), last_at)
        .join(learners, learners.c.learner_id == Run.learner_id)
        .join(Submission, Submission.run_id == Run.id)
        .where(JUDGED, scope.in_course(Run.lesson), *scope.during(Run.created_at), *conditions)
        .where(Submission.verdict.in_(_JUDGED_TRIES))
        .group_by(Run.lesson, Run.cell, Run.learner_id)
        .subquery()
    )


def is_stuck(tried: Subquery) -> ColumnElement[bool]:
    """Condition on rows of ``tries_by_learner``: the learner tried often enough, and never passed."""
    return (tried.c.passed == 0) & (tried.c.tries >= FAILED_TRIES_BEFORE_SOLUTION)


def stuck_hint() -> str:
    return gettext("Learners are stuck after {n} tries without passing.").format(n=FAILED_TRIES_BEFORE_SOLUTION)


async def report_exercises(scope: ReportScope) -> ReportTable:
    """For each exercise that somebody tried: how many tries it takes, and how many learners are stuck."""
    per_learner = tries_by_learner(scope)
    tried = per_learner.c
    at_once = func.sum(case(((tried.passed == 1) & (tried.tries == 1), 1), else_=0))
    stuck = func.sum(case((is_stuck(per_learner), 1), else_=0))
    found = select(
        tried.lesson, tried.cell, func.count(), func.sum(tried.tries), func.sum(tried.passed), at_once, stuck
    ).group_by(tried.lesson, tried.cell)
    by_cell = {(row[0], row[1]): row[2:] for row in await scope.session.execute(found)}
    every = await count_all_learners(scope)
    rows = []
    for key, cell in _in_order(scope, by_cell):
        count, tries, done, first, left = map(int, by_cell[key, cell])
        name = f"{scope.cell_title(key, cell)} · {scope.catalog.lesson_title(key, scope.language)}"
        link = scope.cell_link("wrong-answers", key, cell)
        average = round(tries / count, 1)
        each = ReportCell(i18n.number(average), average)
        counted = [count_cell(learners, every) for learners in (count, done, first)]
        to_stuck = scope.cell_link("wrong-answers", key, cell, "#stuck") if left else None
        rows.append((ReportCell(name, link=link), *counted, each, count_cell(left, every, to_stuck)))
    columns = (gettext("Tried"), gettext("Passed"), gettext("Passed at once"), gettext("Tries per learner"))
    return ReportTable(
        "exercises",
        gettext("Exercises"),
        (gettext("Exercise"), *columns, gettext("Stuck")),
        rows,
        gettext("Nobody has tried an exercise in this time."),
        stuck_hint(),
        last_first=True,
    )


async def report_errors(scope: ReportScope) -> ReportTable:
    """For each cell whose runs ended with an error although the lesson does not announce one: how many, and whose."""
    by_cell = {
        (lesson, cell): (runs, who)
        for lesson, cell, _, runs, who in await _unsuccessful(scope, (Outcome.error, Outcome.crash))
        if not _announces_error(scope, lesson, cell)
    }
    every = await count_all_learners(scope)
    rows = [
        (
            ReportCell(
                f"{scope.cell_title(key, cell)} · {scope.catalog.lesson_title(key, scope.language)}",
                link=scope.cell_link("errors", key, cell),
            ),
            count_cell(by_cell[key, cell][1], every),
            count_cell(by_cell[key, cell][0]),
        )
        for key, cell in sorted(by_cell, key=lambda one: (-by_cell[one][1], one))
    ]
    return ReportTable(
        "errors",
        gettext("Errors"),
        (gettext("Cell"), gettext("Learners"), gettext("Runs")),
        rows,
        gettext("No run ended with an error in this time."),
    )


async def report_limits(scope: ReportScope) -> ReportTable:
    """The runs that met a limit, by cell and limit."""
    found = await _unsuccessful(scope, LIMIT_OUTCOMES)
    every = await count_all_learners(scope)
    rows = [
        (
            ReportCell(
                f"{scope.cell_title(lesson, cell)} · {scope.catalog.lesson_title(lesson, scope.language)}",
                link=scope.cell_link("limits", lesson, cell),
            ),
            ReportCell(outcome_label(Outcome(outcome))),
            count_cell(who, every),
            count_cell(runs),
        )
        for lesson, cell, outcome, runs, who in sorted(found, key=lambda row: (-row[4], *row[:3]))
    ]
    return ReportTable(
        "limits",
        gettext("Limits"),
        (gettext("Cell"), gettext("Outcome"), gettext("Learners"), gettext("Runs")),
        rows,
        gettext("No run met a limit in this time."),
    )


async def _unsuccessful(scope: ReportScope, outcomes: tuple[Outcome, ...]) -> list[Any]:
    """Lesson, cell, outcome, runs and learners. Cells of an account's own are left out: only lessons have these."""
    learners = scope.learners()
    found = (
        select(Run.lesson, Run.cell, Run.outcome, func.count(), func.count(Run.learner_id.distinct()))
        .join(learners, learners.c.learner_id == Run.learner_id)
        .where(UNSUCCESSFUL, scope.in_course(Run.lesson), Run.outcome.in_(outcomes), *scope.during(Run.created_at))
        .group_by(Run.lesson, Run.cell, Run.outcome)
    )
    rows = (await scope.session.execute(found)).all()
    return [row for row in rows if _is_of_lesson(scope, row[0], row[1])]


async def report_questions(scope: ReportScope) -> ReportTable:
    """The learners' threads that have no answer, those without any reply first, then the oldest."""
    conditions = (
        Comment.thread_id.is_(None),
        Comment.answer_id.is_(None),
        Comment.state == CommentState.shown,
        GroupMember.group_id == scope.group.id,
        GroupMember.role == GroupRole.learner,
    )
    found = (
        select(Comment, Account.name)
        .join(GroupMember, GroupMember.account_id == Comment.author_id)
        .join(Account, Account.id == Comment.author_id)
        .where(*conditions, scope.in_course(Comment.lesson), *scope.during(Comment.created_at))
        .order_by(Comment.reply_count > 0, Comment.id)
        .limit(MAX_QUESTIONS)
    )
    rows = [
        (
            ReportCell(
                _shorten(to_plain_text(comment.source[:_MAX_PARSED])),
                link=ReportLink("comment", {"comment_id": comment.id}),
            ),
            ReportCell(name),
            scope.lesson_title(comment.lesson),
            ReportCell(scope.cell_title(comment.lesson, comment.cell) if comment.cell else ""),
            ReportCell(i18n.relative_time(comment.created_at), comment.created_at),
            count_cell(comment.reply_count),
        )
        for comment, name in await scope.session.execute(found)
    ]
    return ReportTable(
        "questions",
        gettext("Questions"),
        (
            gettext("Comment"),
            gettext("Learner"),
            gettext("Lesson"),
            gettext("Cell"),
            gettext("Asked"),
            gettext("Replies"),
        ),
        rows,
        gettext("Every question has an answer."),
        gettext(
            "Comments of the group's learners whose thread has no reply marked as the answer; at most {most}."
        ).format(most=MAX_QUESTIONS),
        has_addresses=True,
    )


_MAX_PARSED = 600
"""Of a question, in characters: 120 are shown, and parsing 200 long ones would hold up everybody."""


def _shorten(text: str) -> str:
    return textwrap.shorten(text, 120, placeholder=" …") or text[:120]


def _is_of_lesson(scope: ReportScope, key: str, name: str) -> bool:
    lesson = scope.catalog.find_lesson(key, scope.language)
    return lesson is not None and lesson.cell(name) is not None


def _announces_error(scope: ReportScope, key: str, name: str) -> bool:
    lesson = scope.catalog.find_lesson(key, scope.language)
    cell = lesson.cell(name) if lesson is not None else None
    return cell is not None and CellTag.raises_exception in cell.tags


def _in_order(scope: ReportScope, cells: Mapping[tuple[str, str], Any]) -> list[tuple[str, str]]:
    """Cells in the order of the course; those that the course no longer has are left out."""
    ordered = []
    for entry in scope.lessons():
        key = f"{scope.group.course}/{entry.slug}"
        ordered += [
            (key, cell.name) for cell in (entry.lesson.cells if entry.lesson else ()) if (key, cell.name) in cells
        ]
    return ordered


REPORTS: Mapping[str, Callable[[ReportScope], Awaitable[ReportTable]]] = {
    "lessons": report_lessons,
    "exercises": report_exercises,
    "errors": report_errors,
    "limits": report_limits,
    "questions": report_questions,
}
"""By the name of their tables, in the order in which pages list them."""
