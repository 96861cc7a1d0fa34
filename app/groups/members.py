"""The members of a group: how they join and leave, what they agree to, their roles, and notes about them.

Services flush; the caller commits.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Sequence
from datetime import datetime, timedelta

from sqlalchemy import delete, func, select, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncSession

from app.accounts.models import Account, Role
from app.accounts.service import AccountDeleted
from app.accounts.tokens import token_hash
from app.db import advisory_lock, dialect_insert, now
from app.exercises.reviews import withdraw_reviews_of_member
from app.groups.errors import (
    GroupFull,
    InvalidGroupInvitation,
    LastInstructor,
    MemberNotFound,
    NotAnInstructorHere,
    NoteChanged,
    TooManyInvitations,
)
from app.groups.models import Group, GroupInvitation, GroupMember, GroupRole
from app.groups.permissions import Staff
from app.web.user_text import clean_text

MAX_MEMBERS = 20_000
MAX_INVITATIONS = 20
MAX_NOTE_LENGTH = 5_000
LIFETIMES_DAYS = (7, 30, 180)
"""How long an invitation link can work."""
_TOKEN = re.compile(r"[A-Za-z0-9_-]{43}")
_INVITATION_PATH = re.compile(rf"/\w+/groups/join/({_TOKEN.pattern})")


async def _lock_group(session: AsyncSession, group_id: str) -> None:
    """Let one transaction at a time add members, revoke links, or take the role of an instructor away."""
    await advisory_lock(session, f"group {group_id}")


# --- invitations ------------------------------------------------------------------------------------------------------


async def create_invitation(session: AsyncSession, staff: Staff, days: int) -> str:
    """Create a link. Returns its token, which cannot be read again. Raises TooManyInvitations."""
    await _lock_group(session, staff.group.id)
    moment = now()
    mine = GroupInvitation.group_id == staff.group.id
    await session.execute(delete(GroupInvitation).where(mine, GroupInvitation.expires_at <= moment))
    count = await session.scalar(select(func.count()).select_from(GroupInvitation).where(mine)) or 0
    if count >= MAX_INVITATIONS:
        raise TooManyInvitations(most=MAX_INVITATIONS)
    token = secrets.token_urlsafe(32)
    lifetime = timedelta(days=days if days in LIFETIMES_DAYS else LIFETIMES_DAYS[0])
    row = {"group_id": staff.group.id, "created_at": moment, "expires_at": moment + lifetime}
    session.add(GroupInvitation(token_hash=token_hash(token), **row))
    await session.flush()
    return token


async def list_invitations(session: AsyncSession, group: Group) -> Sequence[GroupInvitation]:
    """The links that still work, the newest first."""
    mine = select(GroupInvitation).where(GroupInvitation.group_id == group.id, GroupInvitation.expires_at > now())
    return (await session.scalars(mine.order_by(GroupInvitation.created_at.desc()))).all()


async def revoke_invitation(session: AsyncSession, staff: Staff, hashed: str) -> None:
    """Stop a link from working. Idempotent."""
    await _lock_group(session, staff.group.id)
    mine = (GroupInvitation.group_id == staff.group.id, GroupInvitation.token_hash == hashed)
    await session.execute(delete(GroupInvitation).where(*mine))


async def find_invited_group(session: AsyncSession, token: str) -> Group:
    """The group that a link leads to. Raises InvalidGroupInvitation."""
    found = None
    if _TOKEN.fullmatch(token):
        valid = (GroupInvitation.token_hash == token_hash(token), GroupInvitation.expires_at > now())
        found = await session.scalar(
            select(Group).join(GroupInvitation, GroupInvitation.group_id == Group.id).where(*valid)
        )
    if found is None or has_ended(found, now()):
        raise InvalidGroupInvitation
    return found


async def find_invited_group_name(session: AsyncSession, path: str) -> str:
    """The name of the group that the page at this path invites to; empty if it is no such page."""
    found = _INVITATION_PATH.fullmatch(path)
    if found is None:
        return ""
    try:
        return (await find_invited_group(session, found[1])).name
    except InvalidGroupInvitation:
        return ""


def has_ended(group: Group, at: datetime) -> bool:
    return group.ends_at is not None and group.ends_at <= at


async def join(session: AsyncSession, account: Account, token: str, *, shares_code: bool, reminders: bool) -> Group:
    """Make the account a learner of the group that a link leads to. A member stays what they are.

    Raises InvalidGroupInvitation, GroupFull or AccountDeleted.
    """
    group = await find_invited_group(session, token)
    await _lock_group(session, group.id)
    group = await find_invited_group(session, token)  # again: the link may have been revoked meanwhile
    count = await session.scalar(select(func.count()).where(GroupMember.group_id == group.id)) or 0
    if count >= MAX_MEMBERS:
        raise GroupFull(most=MAX_MEMBERS)
    moment = now()
    row = {"group_id": group.id, "account_id": account.id, "role": GroupRole.learner, "joined_at": moment}
    row |= {"code_shared_at": moment if shares_code else None, "accepts_reminders": reminders, "note": ""}
    try:
        await session.execute(dialect_insert(session, GroupMember).values(row).on_conflict_do_nothing())
    except IntegrityError as e:
        raise AccountDeleted from e
    return group


# --- what members decide themselves -----------------------------------------------------------------------------------


async def set_choices(session: AsyncSession, member: GroupMember, *, shares_code: bool, reminders: bool) -> None:
    """Store what a learner agrees to. Code that ran before an agreement is not shown, also after a second one."""
    if not shares_code:
        member.code_shared_at = None
    elif member.code_shared_at is None:
        member.code_shared_at = now()
    member.accepts_reminders = reminders
    await session.flush()


async def leave(session: AsyncSession, member: GroupMember) -> None:
    """End a membership. Raises LastInstructor."""
    await _keep_an_instructor(session, member)
    await withdraw_reviews_of_member(session, member.group_id, member.account_id)
    await session.delete(member)
    await session.flush()


# --- what the staff decides -------------------------------------------------------------------------------------------


async def find_member(session: AsyncSession, group: Group, account_id: str) -> tuple[GroupMember, Account]:
    """A member of the group. Raises MemberNotFound."""
    found = None
    if account_id.isascii() and "\0" not in account_id:  # databases accept neither NUL nor lone surrogates
        mine = select(GroupMember, Account).join(Account, Account.id == GroupMember.account_id)
        query = mine.where(GroupMember.group_id == group.id, GroupMember.account_id == account_id)
        found = (await session.execute(query)).one_or_none()
    if found is None:
        raise MemberNotFound
    return found[0], found[1]


async def find_learner(session: AsyncSession, group: Group, account_id: str) -> tuple[GroupMember, Account]:
    """A learner of the group. Raises MemberNotFound, also for a member of its staff."""
    member, account = await find_member(session, group, account_id)
    if member.role != GroupRole.learner:
        raise MemberNotFound
    return member, account


async def list_staff(session: AsyncSession, group: Group) -> Sequence[tuple[GroupMember, Account]]:
    """The instructors and assistants of a group, by name."""
    mine = select(GroupMember, Account).join(Account, Account.id == GroupMember.account_id)
    staff = mine.where(GroupMember.group_id == group.id, GroupMember.role != GroupRole.learner)
    found = await session.execute(staff.order_by(GroupMember.role.desc(), Account.name, Account.id))
    return [(member, account) for member, account in found]


async def set_role(session: AsyncSession, staff: Staff, account_id: str, role: GroupRole) -> None:
    """Raises MemberNotFound, LastInstructor or NotAnInstructorHere."""
    member, account = await find_member(session, staff.group, account_id)
    if role is GroupRole.instructor and account.role == Role.learner:
        raise NotAnInstructorHere
    if role is not GroupRole.instructor:
        await _keep_an_instructor(session, member)
    if role is not GroupRole.learner:
        await withdraw_reviews_of_member(session, member.group_id, member.account_id)
    member.role = role
    await session.flush()


async def remove_member(session: AsyncSession, staff: Staff, account_id: str) -> Account:
    """Returns who was removed. Raises MemberNotFound or LastInstructor."""
    member, account = await find_member(session, staff.group, account_id)
    await leave(session, member)
    return account


def note_version(member: GroupMember) -> str:
    """What a form says about the note that it shows. Pure."""
    return member.note_changed_at.isoformat() if member.note_changed_at is not None else ""


async def set_note(session: AsyncSession, staff: Staff, account_id: str, text: str, version: str) -> None:
    """Replace the note about a learner, if it still is the one with this version, or says the same already.

    Raises MemberNotFound, NoteChanged, or what ``clean_text`` raises.
    """
    member, _ = await find_learner(session, staff.group, account_id)
    note = clean_text(text, MAX_NOTE_LENGTH) if text.strip() else ""
    if note == member.note:
        return
    if note_version(member) != version:
        raise NoteChanged
    mine = (GroupMember.group_id == member.group_id, GroupMember.account_id == member.account_id)
    unchanged = GroupMember.note_changed_at.is_not_distinct_from(member.note_changed_at)
    write = update(GroupMember).where(*mine, unchanged).values(note=note, note_changed_at=now())
    written = await session.execute(
        write.returning(GroupMember.account_id).execution_options(synchronize_session=False)
    )
    if written.scalar_one_or_none() is None:
        raise NoteChanged


async def _keep_an_instructor(session: AsyncSession, member: GroupMember) -> None:
    """Raises LastInstructor if the group has no other."""
    if member.role != GroupRole.instructor:
        return
    await _lock_group(session, member.group_id)
    others = (GroupMember.group_id == member.group_id, GroupMember.account_id != member.account_id)
    other = select(GroupMember.account_id).where(*others, GroupMember.role == GroupRole.instructor).limit(1)
    if await session.scalar(other) is None:
        raise LastInstructor
