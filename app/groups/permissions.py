"""Who may see and change a group.

A learner sees only their own page. The staff of a group, its assistants and instructors, sees the learners of that
group and of no other. Admins are instructors of every group. Where the operator requires a second factor of staff, the
staff of a group needs one, too.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from sqlalchemy.ext.asyncio import AsyncSession

from app.accounts.dependencies import SecondFactorRequired
from app.accounts.models import Account, Role
from app.groups.errors import GroupNotFound, GroupRoleRequired
from app.groups.models import Group, GroupMember, GroupRole

_ID = re.compile(r"[0-9a-f]{32}")


@dataclass(frozen=True, slots=True)
class GroupViewer:
    """Somebody who is signed in."""

    account: Account
    role: Role
    """The account's role on the site, also if this sign-in lacks a second factor."""
    lacks_second_factor: bool
    """Whether the operator requires a second factor of staff, and this sign-in has none."""


@dataclass(frozen=True, slots=True)
class Staff:
    """An account that sees the learners of a group."""

    group: Group
    account: Account
    role: GroupRole

    @property
    def may_change(self) -> bool:
        """Whether it may change the group itself."""
        return self.role is GroupRole.instructor


def staff_role(role: Role, member: GroupMember | None) -> GroupRole | None:
    """The role among the staff of a group of an account with this role on the site; None if it has none. Pure."""
    if role is Role.admin:
        return GroupRole.instructor
    if member is None or member.role == GroupRole.learner:
        return None
    if member.role == GroupRole.instructor and role is Role.learner:
        return None  # the account is no longer an instructor on the site
    return GroupRole(member.role)


async def find_group(session: AsyncSession, group_id: str) -> Group:
    """Raises GroupNotFound."""
    group = await session.get(Group, group_id) if _ID.fullmatch(group_id) else None
    if group is None:
        raise GroupNotFound
    return group


async def find_staff(session: AsyncSession, viewer: GroupViewer, group_id: str) -> Staff:
    """The viewer as a member of the group's staff. Raises GroupNotFound or SecondFactorRequired."""
    group = await find_group(session, group_id)
    role = staff_role(viewer.role, await session.get(GroupMember, (group.id, viewer.account.id)))
    if role is None:
        raise GroupNotFound
    if viewer.lacks_second_factor:
        raise SecondFactorRequired
    return Staff(group, viewer.account, role)


async def find_instructor(session: AsyncSession, viewer: GroupViewer, group_id: str) -> Staff:
    """The viewer as an instructor of the group. Raises GroupRoleRequired, and what ``find_staff`` raises."""
    staff = await find_staff(session, viewer, group_id)
    if not staff.may_change:
        raise GroupRoleRequired
    return staff


async def find_own_membership(session: AsyncSession, viewer: GroupViewer, group_id: str) -> tuple[Group, GroupMember]:
    """The viewer's own row in a group. Raises GroupNotFound."""
    group = await find_group(session, group_id)
    member = await session.get(GroupMember, (group.id, viewer.account.id))
    if member is None:
        raise GroupNotFound
    return group, member
