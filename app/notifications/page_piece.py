"""The bell, as a piece of every page of an account."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from markupsafe import Markup
from sqlalchemy.ext.asyncio import AsyncSession

from app.accounts.models import Account
from app.accounts.page_pieces import PagePiece, PageViewer
from app.notifications.service import MAX_COUNTED, UNREAD_FACT, unread_count


def bell_context(account: Account | None, unread: int) -> dict[str, Any]:
    """The context of ``notifications/bell.html``."""
    more = unread >= MAX_COUNTED
    return {"account": account, "unread": MAX_COUNTED - 1 if more else unread, "more": more}


async def _render(session: AsyncSession, viewer: PageViewer, _before: Mapping[str, Markup]) -> Markup:
    unread = await unread_count(session, viewer.account.id) if viewer.account else 0
    return viewer.render("notifications/bell.html", **bell_context(viewer.account, unread))


BELL_PIECE = PagePiece(name="bell", facts=(UNREAD_FACT,), values=lambda _viewer: (), render=_render)
"""The account menu contains it."""
