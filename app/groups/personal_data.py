"""An account's groups, as it can download them. Its rows are deleted with the account's row."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncSession

from app.accounts.models import Account
from app.groups.models import Group, GroupMember

_EXPORTED_NAMES = ("role", "joined_at", "code_shared_at", "accepts_reminders", "reminded_at", "note", "note_changed_at")


async def export_groups(session: AsyncSession, account: Account) -> AsyncIterator[Mapping[str, Any]]:
    """All groups, with what the account agreed to and the notes about it."""
    mine = select(Group, GroupMember).join(GroupMember, GroupMember.group_id == Group.id)
    query = mine.where(GroupMember.account_id == account.id).order_by(GroupMember.joined_at, Group.id)
    for group, member in await session.execute(query):
        yield {"group": group.name, "course": group.course, **{name: getattr(member, name) for name in _EXPORTED_NAMES}}
