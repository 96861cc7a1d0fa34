"""How notifications describe comments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncSession

from app import i18n
from app.accounts.models import Account, Role
from app.comments.markdown import to_plain_text
from app.comments.models import Comment, CommentState
from app.lessons.catalog import Catalog
from app.notifications.views import NotificationContent

_MAX_EXCERPT_LENGTH = 280
_MAX_SOURCE_LENGTH = 10 * _MAX_EXCERPT_LENGTH


class CommentDescriber:
    """Describes comments by ID. Comments that the notified account cannot see are left out."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog

    async def __call__(
        self, session: AsyncSession, account: Account, ids: Sequence[str]
    ) -> Mapping[str, NotificationContent]:
        catalog = self._catalog if account.role == Role.learner else self._catalog.with_drafts
        shown = select(Comment).where(Comment.id.in_(ids), Comment.state == CommentState.shown)
        if catalog.hidden:
            shown = shown.where(Comment.lesson.not_in(catalog.hidden))
        return {
            comment.id: NotificationContent(
                catalog.lesson_title(comment.lesson, i18n.current_language()),
                comment_excerpt(comment.source),
                "comment",
                {"comment_id": comment.id},
                f"#c-{comment.id}",
            )
            for comment in await session.scalars(shown)
        }


def comment_excerpt(source: str) -> str:
    """The beginning of a comment, on one line and without Markdown. Pure."""
    line = " ".join(to_plain_text(source[:_MAX_SOURCE_LENGTH]).split())
    return line if len(line) <= _MAX_EXCERPT_LENGTH else f"{line[:_MAX_EXCERPT_LENGTH].rstrip()} …"
