"""From the source of a comment to its HTML, with links to the people who are mentioned in it."""

from __future__ import annotations

from collections.abc import Iterable

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncSession

from app.accounts.models import Account
from app.comments import markdown
from app.comments.models import Comment


async def html_of(session: AsyncSession, source: str) -> str:
    """What a page shows of it."""
    return markdown.to_html(source, await mentioned(session, source))


async def refresh_html(session: AsyncSession, comments: Iterable[Comment]) -> None:
    """Render anew what an earlier renderer made; nothing is stored unless the caller commits."""
    for comment in comments:
        if comment.renderer != markdown.VERSION:
            comment.html = await html_of(session, comment.source)
            comment.renderer = markdown.VERSION


async def mentioned(session: AsyncSession, source: str) -> dict[str, str]:
    """Those of the handles in it that are somebody's, with the account."""
    if not (handles := markdown.mentioned(source)):
        return {}
    live = select(Account.handle, Account.id).where(Account.handle.in_(handles), Account.disabled_at.is_(None))
    return {row.handle: row.id for row in await session.execute(live)}
