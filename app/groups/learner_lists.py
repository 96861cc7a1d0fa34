"""The learners behind a number of a report: those stuck at an exercise, and those who stopped in a lesson.

They have the names and results of all learners, and neither code nor messages, which learners agree to show.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import Select, select

from app.accounts.models import Account
from app.exercises.models import Submission
from app.groups.cell_details import wrong_kinds
from app.groups.report_table import ReportCell, ReportTable, count_cell
from app.groups.reports import ReportScope, is_stuck, stopped_hint, stopped_progress, stuck_hint, tries_by_learner
from app.i18n import gettext
from app.runs.models import JUDGED, Run

MAX_LISTED = 200
"""Learners in a list, the latest first."""


async def list_stuck(scope: ReportScope, lesson: str, cell: str) -> ReportTable:
    """The learners who are stuck at an exercise, with the first kind of mistake of their latest try."""
    tried = tries_by_learner(scope, Run.lesson == lesson, Run.cell == cell)
    found = (
        select(Account, tried.c.tries, Run, Submission.results)
        .join(tried, tried.c.learner_id == Account.learner_id)
        .join(Run, (Run.learner_id == tried.c.learner_id) & (Run.created_at == tried.c.last_at))
        .join(Submission, Submission.run_id == Run.id)
        .where(is_stuck(tried), JUDGED, Run.lesson == lesson, Run.cell == cell)
        .order_by(tried.c.last_at.desc(), Account.id, Run.id)
        .limit(MAX_LISTED + 1)
    )
    latest = {
        account.id: (account, tries, run, results)
        for account, tries, run, results in await scope.session.execute(found)
    }
    kinds = await wrong_kinds(scope, [(run, results) for _, _, run, results in latest.values()])
    rows = [
        (
            scope.learner_cell(account),
            count_cell(tries),
            scope.moment_cell(run.created_at),
            ReportCell(next((kind for kind, _ in kinds[run.id]), "–")),
        )
        for account, tries, run, _ in latest.values()
    ]
    return ReportTable(
        "stuck",
        gettext("Stuck"),
        (gettext("Learner"), gettext("Tries"), gettext("Last try"), gettext("What went wrong")),
        rows[:MAX_LISTED],
        gettext("Nobody is stuck here in this time."),
        _hint(rows, stuck_hint()),
    )


async def list_stopped(scope: ReportScope, lesson: str) -> ReportTable:
    """The learners who stopped in a lesson."""
    stopped = stopped_progress(scope).subquery()
    found = (
        select(Account, stopped.c.last_seen_at)
        .join(stopped, stopped.c.learner_id == Account.learner_id)
        .where(stopped.c.lesson == lesson)
        .order_by(stopped.c.last_seen_at.desc(), Account.id)
        .limit(MAX_LISTED + 1)
    )
    listed = await scope.session.execute(found)
    rows = [(scope.learner_cell(account), scope.moment_cell(last_seen_at)) for account, last_seen_at in listed]
    return ReportTable(
        "stopped",
        gettext("Stopped here"),
        (gettext("Learner"), gettext("Last seen")),
        rows[:MAX_LISTED],
        gettext("Nobody stopped here in this time."),
        _hint(rows, stopped_hint()),
    )


@dataclass(frozen=True, slots=True)
class TriedExercise:
    """A learner's tries at an exercise together."""

    passed: bool
    is_stuck: bool


async def load_tried(
    scope: ReportScope, learners: Sequence[str]
) -> Mapping[str, Mapping[tuple[str, str], TriedExercise]]:
    """The exercises that these learners tried, by learner, then by lesson and cell."""
    tried = tries_by_learner(scope, Run.learner_id.in_(learners))
    found = select(tried.c.learner_id, tried.c.lesson, tried.c.cell, tried.c.passed == 1, is_stuck(tried))
    each: defaultdict[str, dict[tuple[str, str], TriedExercise]] = defaultdict(dict)
    for learner, lesson, cell, passed, stuck in await scope.session.execute(found):
        each[learner][lesson, cell] = TriedExercise(passed, stuck)
    return each


def stuck_learners(scope: ReportScope) -> Select[str]:
    """The learner IDs of those who are stuck at an exercise."""
    tried = tries_by_learner(scope)
    return select(tried.c.learner_id).where(is_stuck(tried))


def _hint(rows: Sequence[object], hint: str) -> str:
    if len(rows) <= MAX_LISTED:
        return hint
    incomplete = gettext("This list shows the latest {most}.").format(most=MAX_LISTED)
    return f"{hint} {incomplete}"
