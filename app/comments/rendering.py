"""Renders comments to HTML, with links to the people they mention."""

from __future__ import annotations

from collections.abc import Iterable

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncSession

from app.accounts.models import Account
from app.comments import markdown
from app.comments.models import Comment

_BATCH_SIZE = 50
"""Comments per transaction: it blocks other writers for some tenths of a second."""


async def render_html(session: AsyncSession, source: str) -> str:
    """The HTML that pages show."""
    return markdown.to_html(source, await resolve_mentions(session, source))


async def refresh_html(session: AsyncSession, comments: Iterable[Comment]) -> None:
    """Re-render the comments that an earlier renderer made. Nothing is stored unless the caller commits."""
    for comment in comments:
        if comment.renderer_version != markdown.RENDERER_VERSION:
            comment.html = await render_html(session, comment.source)
            comment.renderer_version = markdown.RENDERER_VERSION


async def rerender_outdated(session: AsyncSession) -> bool:
    """Re-render and store some outdated comments, so that readers need not wait for it. True if there may be more."""
    earlier = select(Comment).where(Comment.renderer_version < markdown.RENDERER_VERSION).limit(_BATCH_SIZE)
    found = (await session.scalars(earlier.with_for_update(skip_locked=True))).all()
    await refresh_html(session, found)
    return bool(found)


async def resolve_mentions(session: AsyncSession, source: str) -> dict[str, str]:
    """The accounts mentioned in a comment, by handle; handles that belong to nobody are left out."""
    if not (handles := markdown.mentioned_handles(source)):
        return {}
    live = select(Account.handle, Account.id).where(Account.handle.in_(handles), Account.disabled_at.is_(None))
    return {row.handle: row.id for row in await session.execute(live)}
