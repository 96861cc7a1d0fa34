"""How notifications describe the reviews that wait in a group."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sqlalchemy.ext.asyncio import AsyncSession

from app.accounts.models import Account
from app.groups.reviews import WaitingReviews, count_waiting
from app.i18n import ngettext, number
from app.notifications.views import NotificationContent


async def describe_waiting_reviews(
    session: AsyncSession, account: Account, ids: Sequence[str]
) -> Mapping[str, NotificationContent]:
    """Describes groups by ID, with what waits now. Without anything that waits, nobody is emailed."""
    return {one.group_id: _describe(one) for one in await count_waiting(session, account.id, ids)}


def _describe(waiting: WaitingReviews) -> NotificationContent:
    words = ngettext("{n} submission is waiting.", "{n} submissions are waiting.", waiting.count)
    text = words.format(n=number(waiting.count))
    return NotificationContent(waiting.group_name, text, "group_reviews", {"group_id": waiting.group_id})
