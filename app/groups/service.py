"""Creating and changing groups and their deadlines.

Days are those of the group's time zone. Services flush; the caller commits.
"""

from __future__ import annotations

import secrets
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

from sqlalchemy import delete, func, or_, select
from sqlalchemy.ext.asyncio import AsyncSession

from app.accounts.models import Account, Role
from app.db import now
from app.groups.errors import DeadlineChanged, GroupChanged, GroupNotFound, InvalidGroup
from app.groups.models import Group, GroupDeadline, GroupMember, GroupRole
from app.groups.permissions import Staff
from app.i18n import gettext
from app.lessons.catalog import CatalogView
from app.lessons.errors import CourseNotFound
from app.progress.timezones import get_timezone, is_timezone, learner_timezone
from app.web.user_text import clean_text

MAX_NAME_LENGTH = 100


@dataclass(frozen=True, slots=True)
class GroupFields:
    """What a form says about a group, checked. The days are the first and the last one of the group."""

    name: str
    first_day: date | None
    last_day: date | None
    time_zone: str


@dataclass(frozen=True, slots=True)
class OwnGroup:
    """A group in the list of one of its members."""

    group: Group
    member: GroupMember
    learners: int
    staff: Sequence[tuple[str, str]]
    """Roles and names of its instructors and assistants: they see the work of its learners."""


def group_zone(group: Group) -> ZoneInfo:
    return get_timezone(group.time_zone)


def day_start(day: date, zone: ZoneInfo) -> datetime:
    """The first moment of a day. Pure."""
    return datetime.combine(day, time(), zone).astimezone(UTC)


def day_after(day: date, zone: ZoneInfo) -> datetime:
    """The first moment after a day. Pure."""
    return day_start(day + timedelta(days=1), zone)


def day_before(moment: datetime, zone: ZoneInfo) -> date:
    """The last day that ends at or before this moment, which is the first one after something. Pure."""
    return (moment.astimezone(zone) - timedelta(microseconds=1)).date()


def read_group_fields(fields: Mapping[str, str]) -> GroupFields:
    """Check a form. Pure. Raises InvalidGroup, TextEmpty, TextTooLong or TextInvalid."""
    name = " ".join(clean_text(fields.get("name", ""), MAX_NAME_LENGTH).split())
    first, last = (read_day(fields.get(field, "")) for field in ("first_day", "last_day"))
    if first is not None and last is not None and last < first:
        raise InvalidGroup(reason=gettext("the last day is before the first one."))
    zone = fields.get("time_zone", "")
    if not is_timezone(zone):
        raise InvalidGroup(reason=gettext("choose a time zone from the list."))
    return GroupFields(name, first, last, zone)


def read_day(text: str) -> date | None:
    """A day of a form; None if the field is empty. Pure. Raises InvalidGroup."""
    if not text.strip():
        return None
    try:
        day = date.fromisoformat(text.strip())
    except ValueError:
        day = None
    if day is None or not 2000 <= day.year <= 2200:
        raise InvalidGroup(reason=gettext("write a day as in 2027-03-31."))
    return day


async def create_group(
    session: AsyncSession, account: Account, catalog: CatalogView, fields: Mapping[str, str]
) -> Group:
    """Create a group with the account as its instructor. Raises InvalidGroup and what ``clean_text`` raises."""
    zone = fields.get("time_zone") or (await learner_timezone(session, account.learner_id)).key
    checked = read_group_fields({**fields, "time_zone": zone})
    course = fields.get("course", "")
    try:
        catalog.course(course, "en")
    except CourseNotFound as e:
        raise InvalidGroup(reason=gettext("choose a course from the list.")) from e
    moment = now()
    group = Group(id=secrets.token_hex(16), course=course, created_at=moment)
    _apply(group, checked)
    session.add(group)
    await session.flush()
    member = {"group_id": group.id, "account_id": account.id, "role": GroupRole.instructor, "joined_at": moment}
    session.add(GroupMember(**member, accepts_reminders=False, note=""))
    await session.flush()
    return group


def group_form(group: Group) -> dict[str, str]:
    """What a form shows of a group. Pure."""
    zone = group_zone(group)
    first = group.starts_at.astimezone(zone).date().isoformat() if group.starts_at else ""
    last = day_before(group.ends_at, zone).isoformat() if group.ends_at else ""
    return {"name": group.name, "first_day": first, "last_day": last, "time_zone": group.time_zone}


async def change_group(session: AsyncSession, staff: Staff, fields: Mapping[str, str]) -> None:
    """Change those of the name, the days, and the time zone that the form changed.

    ``was_name`` and the like are what the form showed: what was left as it was shown stays as it is now.
    The deadlines keep their last days: in another time zone these end at other moments. Raises GroupChanged if both the
    form and somebody else changed one of them, GroupNotFound, InvalidGroup, and what ``clean_text`` raises.
    """
    await _lock(session, staff.group)
    stored, zone = group_form(staff.group), group_zone(staff.group)
    wanted = {field: text for field in stored if (text := fields.get(field, "")) != fields.get(f"was_{field}")}
    taken = [field for field in wanted if fields.get(f"was_{field}", stored[field]) != stored[field] != wanted[field]]
    if taken:
        raise GroupChanged({field: stored[field] for field in taken})
    _apply(staff.group, read_group_fields(stored | wanted))
    await _move_deadlines(session, staff.group, zone)
    await session.flush()


async def _lock(session: AsyncSession, group: Group) -> None:
    """Let one transaction at a time change a group or its deadlines, and read what it is now. Raises GroupNotFound."""
    if await session.get(Group, group.id, populate_existing=True, with_for_update=True) is None:
        raise GroupNotFound


async def _move_deadlines(session: AsyncSession, group: Group, former: ZoneInfo) -> None:
    """Give the deadlines the same last days in the group's time zone as they had in the former one."""
    zone = group_zone(group)
    if zone.key != former.key:
        for deadline in await list_deadlines(session, group):
            deadline.due_at = day_after(day_before(deadline.due_at, former), zone)


def _apply(group: Group, fields: GroupFields) -> None:
    zone = get_timezone(fields.time_zone)
    group.name, group.time_zone = fields.name, fields.time_zone
    group.starts_at = day_start(fields.first_day, zone) if fields.first_day else None
    group.ends_at = day_after(fields.last_day, zone) if fields.last_day else None


async def delete_group(session: AsyncSession, staff: Staff) -> None:
    """Delete the group, its members' rows with the notes, its links, and its deadlines."""
    await session.execute(delete(Group).where(Group.id == staff.group.id))


async def list_own_groups(session: AsyncSession, account: Account) -> Sequence[OwnGroup]:
    """The groups of an account, by name."""
    learners = (
        select(func.count())
        .where(GroupMember.group_id == Group.id, GroupMember.role == GroupRole.learner)
        .correlate(Group)
        .scalar_subquery()
    )
    mine = select(Group, GroupMember, learners).join(GroupMember, GroupMember.group_id == Group.id)
    found = await session.execute(mine.where(GroupMember.account_id == account.id).order_by(Group.name, Group.id))
    rows = [(group, member, count) for group, member, count in found]
    staff = await _staff_names(session, [group.id for group, *_ in rows])
    return [OwnGroup(group, member, count, staff[group.id]) for group, member, count in rows]


async def _staff_names(session: AsyncSession, groups: Sequence[str]) -> Mapping[str, Sequence[tuple[str, str]]]:
    """Who sees the learners of each of these groups, apart from admins; see ``permissions.staff_role``."""
    sees = or_(GroupMember.role == GroupRole.assistant, Account.role != Role.learner)
    mine = select(GroupMember.group_id, GroupMember.role, Account.name).join(
        Account, Account.id == GroupMember.account_id
    )
    staff = mine.where(GroupMember.group_id.in_(groups), GroupMember.role != GroupRole.learner, sees)
    names: defaultdict[str, list[tuple[str, str]]] = defaultdict(list)
    for group, role, name in await session.execute(staff.order_by(Account.name, Account.id)):
        names[group].append((role, name))
    return names


async def list_other_groups(session: AsyncSession, account: Account, most: int) -> Sequence[Group]:
    """The newest groups that an account is not a member of, for admins."""
    mine = select(GroupMember.group_id).where(GroupMember.account_id == account.id)
    others = select(Group).where(Group.id.not_in(mine)).order_by(Group.created_at.desc(), Group.id).limit(most)
    return (await session.scalars(others)).all()


async def list_deadlines(session: AsyncSession, group: Group) -> Sequence[GroupDeadline]:
    """The deadlines of a group, the earliest first."""
    found = select(GroupDeadline).where(GroupDeadline.group_id == group.id)
    ordered = found.order_by(GroupDeadline.due_at, GroupDeadline.lesson, GroupDeadline.exercise)
    return (await session.scalars(ordered)).all()


def deadline_choice(lesson: str, exercise: str, last_day: str) -> str:
    """What a form sends of a lesson or an exercise, with the last day that it showed, or an empty one. Pure."""
    return f"{lesson}{'#' if exercise else ''}{exercise}@{last_day}"


async def set_deadline(session: AsyncSession, staff: Staff, catalog: CatalogView, what: str, day_text: str) -> None:
    """Set the last day for ``what``, a ``deadline_choice``; no day removes it. Without an @ it replaces any other.

    Raises DeadlineChanged if somebody else has set another last day since the form was shown, GroupNotFound or
    InvalidGroup.
    """
    await _lock(session, staff.group)
    what, checked, shown = what.partition("@")
    key, _, exercise = what.partition("#")
    day = read_day(day_text)
    zone = group_zone(staff.group)
    mine = (staff.group.id, key[:200], exercise[:100])
    found = await session.get(GroupDeadline, mine)
    stored = day_before(found.due_at, zone) if found is not None else None
    if checked and stored != day and (stored.isoformat() if stored else "") != shown:
        raise DeadlineChanged(stored)
    if day is None:
        if found is not None:
            await session.delete(found)
        return
    lesson = catalog.find_lesson(key, "en") if key.partition("/")[0] == staff.group.course else None
    if lesson is None or (exercise and exercise not in {cell.name for cell in lesson.exercises}):
        raise InvalidGroup(reason=gettext("choose a lesson or an exercise from the list."))
    await session.merge(GroupDeadline(group_id=mine[0], lesson=key, exercise=exercise, due_at=day_after(day, zone)))
