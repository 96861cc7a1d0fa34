"""The deadlines of a learner's groups, on the pages of the course and of its lessons.

They are a piece of the page, so they are in no page that is cached, and nobody but the learner gets them.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any
from zoneinfo import ZoneInfo

from markupsafe import Markup
from sqlalchemy import ColumnElement, Select, String, and_, case, cast, func, literal, select
from sqlalchemy.ext.asyncio import AsyncSession

from app import i18n
from app.accounts.models import Account
from app.accounts.page_pieces import ACCOUNT_ID, LEARNER_ID, PagePiece, PageViewer
from app.db import now
from app.groups.models import Group, GroupDeadline, GroupMember, GroupRole
from app.groups.service import day_before
from app.i18n import gettext, ngettext
from app.lessons.catalog import CatalogView
from app.progress.models import LearnerTimeZone, LedgerEntry
from app.progress.timezones import learner_timezone

_MOST_IN_COURSE = 6
"""On a course's page; the learner's page of the group has them all."""
_IS_EXERCISE = GroupDeadline.exercise != ""


@dataclass(frozen=True, slots=True)
class ShownDeadline:
    """A deadline as its learner sees it."""

    slug: str
    """Of the lesson."""
    exercise: str
    """The name of its cell; empty for the lesson as a whole."""
    lesson_title: str
    exercise_title: str
    language: str
    """Of the titles."""
    group_id: str
    group_name: str
    due_at: datetime
    due: str
    """The last day, or day and time if the reader's day does not end with it."""
    words: str
    overdue: bool


def _own_deadlines(account_id: ColumnElement[str], learner_id: ColumnElement[str], *columns: Any) -> Select[Any]:
    """The deadlines of the groups in which an account is a learner. ``LedgerEntry`` is NULL until one is met."""
    subject = case((_IS_EXERCISE, GroupDeadline.lesson + "#" + GroupDeadline.exercise), else_=GroupDeadline.lesson)
    kind = case((_IS_EXERCISE, literal("exercise")), else_=literal("lesson"))
    met = and_(LedgerEntry.learner_id == learner_id, LedgerEntry.kind == kind, LedgerEntry.subject == subject)
    return (
        select(*columns)
        .select_from(GroupMember)
        .join(Group, Group.id == GroupMember.group_id)
        .join(GroupDeadline, GroupDeadline.group_id == Group.id)
        .outerjoin(LedgerEntry, met)
        .where(GroupMember.account_id == account_id, GroupMember.role == GroupRole.learner)
    )


def _text(*columns: Any) -> ColumnElement[str]:
    joined: ColumnElement[str] = literal("")
    for column in columns:
        joined = joined + func.coalesce(cast(column, String), "") + literal("\x1f")
    return joined


_FACTS = (
    _own_deadlines(
        ACCOUNT_ID,
        LEARNER_ID,
        func.aggregate_strings(
            _text(
                Group.id,
                Group.name,
                Group.ends_at,
                GroupDeadline.lesson,
                GroupDeadline.exercise,
                GroupDeadline.due_at,
                LedgerEntry.kind,
            ),
            "\n",
        ),
    ).scalar_subquery(),
    select(LearnerTimeZone.time_zone).where(LearnerTimeZone.learner_id == LEARNER_ID).scalar_subquery(),
)


async def deadlines_context(
    session: AsyncSession, account: Account, catalog: CatalogView, course: str, slug: str
) -> dict[str, Any]:
    """The context of ``groups/deadlines.html``: a lesson's deadlines or, without ``slug``, the next ones of a course.

    Those of a group that is over and those of lessons that learners cannot see are left out; on a course's page, those
    that are met, too.
    """
    columns = (Group, GroupDeadline, LedgerEntry.occurred_at)
    rows = await session.execute(_own_deadlines(literal(account.id), literal(account.learner_id), *columns))
    moment, zone = now(), await learner_timezone(session, account.learner_id)
    shown = [
        one
        for group, deadline, met_at in rows
        if group.course == course and (group.ends_at is None or group.ends_at > moment)
        if (one := _show(group, deadline, met_at is not None, catalog, moment, zone)) is not None
        if one.slug == slug or (not slug and met_at is None)
    ]
    several_groups = len({one.group_id for one in shown}) > 1
    if not slug:
        shown = sorted(shown, key=lambda one: abs(one.due_at - moment))[:_MOST_IN_COURSE]
    shown.sort(key=lambda one: (one.due_at, one.slug, one.exercise, one.group_id))
    groups = {one.group_id: one.group_name for one in shown}
    return {"deadlines": shown, "groups": groups, "several_groups": several_groups, "course": course, "slug": slug}


def _show(
    group: Group, deadline: GroupDeadline, met: bool, catalog: CatalogView, moment: datetime, zone: ZoneInfo
) -> ShownDeadline | None:
    """A deadline as it is at a moment, in the reader's time zone; None if its lesson is not there."""
    language = i18n.current_language()
    lesson = catalog.find_lesson(deadline.lesson, language)
    if lesson is None:
        return None
    overdue = not met and deadline.due_at <= moment
    last_day, today = day_before(deadline.due_at, zone), moment.astimezone(zone).date()
    return ShownDeadline(
        slug=lesson.slug,
        exercise=deadline.exercise,
        lesson_title=lesson.title,
        exercise_title=catalog.cell_title(lesson.key, deadline.exercise, language) if deadline.exercise else "",
        language=lesson.language,
        group_id=group.id,
        group_name=group.name,
        due_at=deadline.due_at,
        due=_due(deadline.due_at.astimezone(zone), last_day),
        words=gettext("done") if met else gettext("was due") if overdue else _time_left(last_day, today),
        overdue=overdue,
    )


def _due(due_at: datetime, last_day: date) -> str:
    """The last day if it ends with the deadline; else the moment. Pure."""
    ends_at_midnight = (due_at.hour, due_at.minute, due_at.second) == (0, 0, 0)
    return i18n.date(last_day) if ends_at_midnight else i18n.date_and_time(due_at)


def _time_left(last_day: date, today: date) -> str:
    """Pure."""
    days = (last_day - today).days
    if days <= 0:
        return gettext("due today")
    if days == 1:
        return gettext("due tomorrow")
    return ngettext("due in %(num)s day", "due in %(num)s days", days) % {"num": i18n.number(days)}


def deadlines_piece(catalog: CatalogView) -> PagePiece:
    """The piece of one process; nothing on pages without a course. ``catalog`` is the one for everyone."""

    def values(viewer: PageViewer) -> Hashable:
        return viewer.account and viewer.account.time_zone, viewer.course, viewer.lesson

    async def render(session: AsyncSession, viewer: PageViewer, _before: Mapping[str, Markup]) -> Markup:
        if viewer.account is None or not viewer.course:
            return Markup("")
        context = await deadlines_context(session, viewer.account, catalog, viewer.course, viewer.lesson)
        return viewer.render("groups/deadlines.html", **context) if context["deadlines"] else Markup("")

    return PagePiece(
        name="deadlines",
        target="#deadlines",
        facts=_FACTS,
        values=values,
        edition=lambda: catalog.digest,
        render=render,
    )
