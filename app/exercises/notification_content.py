"""How notifications describe reviews."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncSession

from app import i18n
from app.accounts.models import Account
from app.comments.markdown import to_plain_text
from app.exercises.models import DECIDED, Review, ReviewState
from app.i18n import gettext
from app.lessons.catalog import Catalog
from app.notifications.views import NotificationContent

_MAX_EXCERPT_LENGTH = 200


class ReviewDescriber:
    """Describes an account's own reviews by ID, once they are decided."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog

    async def __call__(
        self, session: AsyncSession, account: Account, ids: Sequence[str]
    ) -> Mapping[str, NotificationContent]:
        mine = select(Review).where(Review.id.in_(ids), Review.account_id == account.id, Review.state.in_(DECIDED))
        return {review.id: self._describe(review) for review in await session.scalars(mine)}

    def _describe(self, review: Review) -> NotificationContent:
        language = i18n.current_language()
        title = self._catalog.cell_title(review.lesson, review.exercise, language)
        accepted = review.state == ReviewState.accepted
        words = gettext("Your code was accepted.") if accepted else gettext("Your instructor asks for changes.")
        remark = " ".join(to_plain_text(review.remark).split())
        if len(remark) > _MAX_EXCERPT_LENGTH:
            remark = f"{remark[:_MAX_EXCERPT_LENGTH].rstrip()} …"
        course, _, slug = review.lesson.partition("/")
        where = {"course": course, "slug": slug}
        return NotificationContent(title, f"{words} {remark}".strip(), "lesson", where, f"#exercise-{review.exercise}")
