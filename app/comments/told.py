"""What a notification says about a comment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncSession

from app import i18n
from app.accounts.models import Account, Role
from app.comments.markdown import in_words
from app.comments.models import Comment, State
from app.lessons.catalog import Catalog, CatalogView
from app.lessons.errors import CourseUnknown, LessonNotAvailable, LessonUnknown
from app.notifications.views import About

_MOST_QUOTED = 280
_MOST_READ = 10 * _MOST_QUOTED


class CommentsSaid:
    """Describes comments by id. One that is out of sight for the account that is told is not described."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog

    async def __call__(self, session: AsyncSession, account: Account, ids: Sequence[str]) -> Mapping[str, About]:
        catalog = self._catalog if account.role == Role.learner else self._catalog.with_drafts
        shown = select(Comment).where(Comment.id.in_(ids), Comment.state == State.shown)
        if catalog.hidden:
            shown = shown.where(Comment.lesson.not_in(catalog.hidden))
        return {
            comment.id: About(
                lesson_title(catalog, comment.lesson),
                quoted(comment.source),
                "comment",
                {"comment_id": comment.id},
                f"#c-{comment.id}",
            )
            for comment in await session.scalars(shown)
        }


def lesson_title(catalog: CatalogView, key: str) -> str:
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
