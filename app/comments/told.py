"""What a notification says about a comment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncSession

from app import i18n
from app.comments.models import Comment, State
from app.lessons.catalog import Catalog
from app.lessons.errors import CourseUnknown, LessonNotAvailable, LessonUnknown
from app.notifications.views import About
from app.web.text import with_turns_shown

_MOST_QUOTED = 280


class CommentsSaid:
    """Describes comments by id. One that is out of sight is not described."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog

    async def __call__(self, session: AsyncSession, ids: Sequence[str]) -> Mapping[str, About]:
        shown = select(Comment).where(Comment.id.in_(ids), Comment.state == State.shown)
        return {
            comment.id: About(
                self._title(comment.lesson),
                quoted(comment.source),
                "comment",
                {"comment_id": comment.id},
                f"#c-{comment.id}",
            )
            for comment in await session.scalars(shown)
        }

    def _title(self, key: str) -> str:
        course, _slash, slug = key.partition("/")
        try:
            return self._catalog.lesson(course, slug, i18n.current()).title
        except (CourseUnknown, LessonUnknown, LessonNotAvailable):
            return slug


def quoted(source: str) -> str:
    """How a comment begins, on one line. Pure."""
    line = " ".join(with_turns_shown(source).split())
    return line if len(line) <= _MOST_QUOTED else f"{line[:_MOST_QUOTED].rstrip()} …"
