"""Operations on feedback, one function each. They flush; the caller commits."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import timedelta

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncSession

from app.accounts.models import Account
from app.db import advisory_lock, dialect_insert, now, sortable_id
from app.errors import InvalidInput, NotFound
from app.feedback.models import LessonVote, ProblemKind, ProblemReport
from app.i18n import DEFAULT_LANGUAGE, N_
from app.rate_limit import RateLimitPolicy, count_attempt, network_limit_key
from app.web.user_text import clean_text

MAX_PROBLEM_LENGTH = 4_000
MAX_COMMENT_LENGTH = 500
"""In characters: the comment of a vote, and an instructor's note."""
PROBLEMS_PER_LEARNER = RateLimitPolicy(free_attempts=6, initial_delay_s=30.0, max_delay_s=3600.0)
PROBLEMS_PER_NETWORK = RateLimitPolicy(free_attempts=40, initial_delay_s=10.0, max_delay_s=600.0)
"""A network may be shared by many people, such as a classroom."""
_DUPLICATE_WINDOW = timedelta(minutes=10)
"""How long the same text by one learner about one page counts as a duplicate."""
VOTES_PER_LEARNER = RateLimitPolicy(free_attempts=200, max_delay_s=300.0)
VOTES_PER_NETWORK = RateLimitPolicy(free_attempts=1_000, max_delay_s=300.0)
VISITOR_VOTES_PER_ADDRESS = RateLimitPolicy(free_attempts=40, initial_delay_s=60.0, max_delay_s=3600.0)
"""Votes on one lesson by visitors without an account: a new cookie costs nothing. A classroom may share an address."""


class ProblemReportNotFound(NotFound):
    message = N_("This report does not exist.")


class ProblemKindMissing(InvalidInput):
    message = N_("Choose what the problem is about.")


@dataclass(frozen=True, slots=True)
class FeedbackAuthor:
    """The author of feedback: a learner, and the network if it is counted."""

    learner_id: str
    network: str | None
    visitor_address: str | None = None
    """The network or private address of a visitor; None for an account."""


@dataclass(frozen=True, slots=True)
class ProblemDraft:
    """A submitted problem report. ``key`` comes from the form and is the same if the form is sent twice."""

    kind: str
    page: str
    lesson: str
    cell: str
    text: str
    key: str
    language: str


async def create_problem_report(session: AsyncSession, who: FeedbackAuthor, draft: ProblemDraft) -> ProblemReport:
    """Store a problem report, or return the one that the same form has already stored.

    Raises:
        ProblemKindMissing, TextEmpty, TextTooLong, NotText: the report cannot be stored.
        TooManyAttempts: this learner or network has sent too many lately.
    """
    if draft.kind not in list(ProblemKind):
        raise ProblemKindMissing
    text = clean_text(draft.text, MAX_PROBLEM_LENGTH)
    key = _deduplication_key(draft, text)
    await advisory_lock(session, f"problem {key}")
    await advisory_lock(session, f"problems of {who.learner_id}")
    before = await _find_by_key(session, key) or await _find_duplicate(session, who, draft, text)
    if before is not None:
        return before
    await count_attempt(session, network_limit_key("problem", who.network), PROBLEMS_PER_NETWORK)
    await count_attempt(session, f"problem learner {who.learner_id}", PROBLEMS_PER_LEARNER)
    values = {
        "id": sortable_id(),
        "idempotency_key": key,
        "learner_id": who.learner_id,
        "kind": draft.kind,
        "page": draft.page,
        "lesson": draft.lesson,
        "cell": draft.cell,
        "text": text,
        "language": draft.language,
        "created_at": now(),
        "note": "",
    }
    await session.execute(
        dialect_insert(session, ProblemReport).values(values).on_conflict_do_nothing(index_elements=["idempotency_key"])
    )
    return (await session.scalars(select(ProblemReport).where(ProblemReport.idempotency_key == key))).one()


async def record_check_failure(session: AsyncSession, lesson: str, cell: str, text: str, key: str) -> None:
    """Report the failure of an exercise's check in the instructors' inbox: once per ``key``, reopened if it recurs."""
    course, _, slug = lesson.partition("/")
    values = {
        "id": sortable_id(),
        "idempotency_key": key,
        "learner_id": None,
        "kind": ProblemKind.code,
        "page": f"/{DEFAULT_LANGUAGE}/courses/{course}/{slug}"[:300],
        "lesson": lesson,
        "cell": cell,
        "text": text[:MAX_PROBLEM_LENGTH].replace("\0", ""),
        "language": DEFAULT_LANGUAGE,
        "created_at": now(),
        "note": "",
    }
    row = dialect_insert(session, ProblemReport).values(values)
    again = {"resolved_at": None, "resolved_by": None}
    await session.execute(row.on_conflict_do_update(index_elements=["idempotency_key"], set_=again))


async def vote_on_lesson(
    session: AsyncSession, who: FeedbackAuthor, lesson: str, *, helpful: bool, comment: str | None, language: str
) -> None:
    """Store whether a lesson was helpful, replacing an earlier vote. ``comment=None`` keeps the earlier comment.

    Raises:
        TextTooLong, NotText: the comment cannot be stored.
        TooManyAttempts: this learner or network has sent too many lately.
    """
    values: dict[str, object] = {"id": sortable_id(), "helpful": helpful, "language": language, "updated_at": now()}
    if comment is not None:
        values["comment"] = clean_text(comment, MAX_COMMENT_LENGTH) if comment.strip() else ""
    await count_attempt(session, network_limit_key("vote", who.network), VOTES_PER_NETWORK)
    await count_attempt(session, f"vote learner {who.learner_id}", VOTES_PER_LEARNER)
    if await find_vote(session, who.learner_id, lesson) is None:
        action = f"vote {hashlib.sha256(lesson.encode()).hexdigest()[:16]}"
        await count_attempt(session, network_limit_key(action, who.visitor_address), VISITOR_VOTES_PER_ADDRESS)
    row = dialect_insert(session, LessonVote).values(
        {"learner_id": who.learner_id, "lesson": lesson, "comment": "", **values}
    )
    await session.execute(row.on_conflict_do_update(index_elements=["learner_id", "lesson"], set_=values))


async def set_problem_resolved(
    session: AsyncSession, instructor: Account, problem_id: str, note: str, *, resolved: bool
) -> ProblemReport:
    """Mark a problem report as resolved, or reopen it. A note replaces the last one unless it is empty.

    Raises:
        ProblemReportNotFound: it does not exist.
        TextTooLong, NotText: the note cannot be stored.
    """
    problem = await get_problem_report(session, problem_id)
    if note.strip():
        problem.note = clean_text(note, MAX_COMMENT_LENGTH)
    problem.resolved_at = (problem.resolved_at or now()) if resolved else None
    problem.resolved_by = instructor.id
    await session.flush()
    return problem


async def get_problem_report(session: AsyncSession, problem_id: str) -> ProblemReport:
    """The problem report. Raises ProblemReportNotFound."""
    problem = await session.get(ProblemReport, problem_id) if problem_id.isascii() and "\0" not in problem_id else None
    if problem is None:
        raise ProblemReportNotFound
    return problem


async def find_vote(session: AsyncSession, learner_id: str | None, lesson: str) -> LessonVote | None:
    return await session.get(LessonVote, (learner_id, lesson)) if learner_id else None


async def _find_by_key(session: AsyncSession, key: str) -> ProblemReport | None:
    return (await session.scalars(select(ProblemReport).where(ProblemReport.idempotency_key == key))).one_or_none()


async def _find_duplicate(
    session: AsyncSession, who: FeedbackAuthor, draft: ProblemDraft, text: str
) -> ProblemReport | None:
    """A recent identical report: the browser's back button shows the form with a new key."""
    same = select(ProblemReport).where(
        ProblemReport.learner_id == who.learner_id, ProblemReport.created_at > now() - _DUPLICATE_WINDOW
    )
    same = same.where(
        ProblemReport.kind == draft.kind, ProblemReport.page == draft.page, ProblemReport.cell == draft.cell
    )
    return (await session.scalars(same.where(ProblemReport.text == text).limit(1))).first()


def _deduplication_key(draft: ProblemDraft, text: str) -> str:
    """Derived from the text too: a form sent again with another text, as after the back button, is another report."""
    parts = (draft.key, draft.kind, draft.page, draft.cell, text)
    return hashlib.sha256("\0".join(parts).encode("utf-8", "replace")).hexdigest()
