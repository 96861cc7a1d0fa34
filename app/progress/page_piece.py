"""The header of a page with the learner's progress, and the states of the lessons that the page links to."""

from __future__ import annotations

import json
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

from markupsafe import Markup
from pydantic import TypeAdapter
from sqlalchemy import String, cast, func, select
from sqlalchemy.ext.asyncio import AsyncSession

from app.accounts.models import Account
from app.accounts.page_pieces import LEARNER_ID, PagePiece, PageViewer
from app.accounts.tokens import learner_marker
from app.progress import page_views
from app.progress.models import LearnerTimeZone, LedgerEntry, LessonProgress
from app.progress.service import ProgressService
from app.progress.summary import LessonState, ProgressHeader

_STATES_ADAPTER = TypeAdapter(list[LessonState])
_OWN = LedgerEntry.learner_id == LEARNER_ID
_VISIT = LessonProgress.lesson + " " + cast(LessonProgress.last_seen_at, String) + " " + LessonProgress.anchor
_FACTS = (
    # Entries are only ever added, so their number tells one state of the ledger from every other.
    select(func.count()).select_from(LedgerEntry).where(_OWN).scalar_subquery(),
    select(func.max(LedgerEntry.occurred_at)).where(_OWN).scalar_subquery(),
    select(func.aggregate_strings(_VISIT, "\n")).where(LessonProgress.learner_id == LEARNER_ID).scalar_subquery(),
    select(LearnerTimeZone.time_zone).where(LearnerTimeZone.learner_id == LEARNER_ID).scalar_subquery(),
)


def dump_states(states: Sequence[LessonState]) -> Any:
    """The states of lessons, ready for JSON."""
    return _STATES_ADAPTER.dump_python(list(states), mode="json")


def header_context(
    header: ProgressHeader, learner: str | None, account: Account | None, course: str, states: Sequence[LessonState]
) -> dict[str, Any]:
    """The context of ``progress/header.html``. ``states`` are those of the course's lessons."""
    return {
        "header": header,
        "share": page_views.level_percent(header.level),
        "who": learner_marker(learner),
        "account": account,
        "course": course,
        "stages": json.dumps(dump_states(states)),
    }


def progress_piece(progress: ProgressService) -> PagePiece:
    """The piece of one process."""

    def known_course(viewer: PageViewer) -> str:
        """The course, if it has lessons that count; else "" for all courses."""
        return viewer.course if viewer.course in progress.terms().courses else ""

    def values(viewer: PageViewer) -> Hashable:
        account = viewer.account
        own = account and (account.handle, account.public_profile, account.time_zone)
        return own, known_course(viewer)

    async def render(session: AsyncSession, viewer: PageViewer, _before: Mapping[str, Markup]) -> Markup:
        learner, course = viewer.learner_id, known_course(viewer)
        header = await progress.summary.header(session, learner, course or None)
        states = await progress.summary.outline(session, learner, course) if course else ()
        return viewer.render("progress/header.html", **header_context(header, learner, viewer.account, course, states))

    return PagePiece(
        name="progress",
        target="#progress-header",
        swap="innerMorph",
        facts=_FACTS,
        values=values,
        edition=lambda: progress.edition,
        render=render,
    )
