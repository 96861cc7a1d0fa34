"""What a notification says about a comment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncSession

from app import i18n
from app.comments.markdown import in_words
from app.comments.models import Comment, State
from app.lessons.catalog import Catalog
from app.lessons.errors import CourseUnknown, LessonNotAvailable, LessonUnknown
from app.notifications.views import About

_MOST_QUOTED = 280
_MOST_READ = 10 * _MOST_QUOTED


class CommentsSaid:
    """Describes comments by id. One that is out of sight is not described."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog

    async def __call__(self, session: AsyncSession, ids: Sequence[str]) -> Mapping[str, About]:
        shown = select(Comment).where(Comment.id.in_(ids), Comment.state == State.shown)
        return {
            comment.id: About(
                lesson_title(self._catalog, comment.lesson),
                quoted(comment.source),
                "comment",
                {"comment_id": comment.id},
                f"#c-{comment.id}",
            )
            for comment in await session.scalars(shown)
        }


def lesson_title(catalog: Catalog, key: str) -> str:
    """What a lesson is called in the language of the request; its slug if it is gone. ``key`` is "course/slug"."""
    course, _slash, slug = key.partition("/")
    try:
        return catalog.lesson(course, slug, i18n.current()).title
    except (CourseUnknown, LessonUnknown, LessonNotAvailable):
        return slug


def quoted(source: str) -> str:
    """How a comment begins, on one line and without the marks of Markdown. Pure."""
    line = " ".join(in_words(source[:_MOST_READ]).split())
    return line if len(line) <= _MOST_QUOTED else f"{line[:_MOST_QUOTED].rstrip()} …"
