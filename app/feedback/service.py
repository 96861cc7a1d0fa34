"""What can be done with feedback: one function per verb. They flush; the caller commits."""

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
from app.i18n import N_
from app.rate_limit import RateLimitPolicy, count_attempt, network_limit_key
from app.web.user_text import clean_text

MAX_PROBLEM_LENGTH = 4_000
MAX_COMMENT_LENGTH = 500
"""Characters of the comment beside a vote, and of an instructor's note."""
PROBLEMS_PER_LEARNER = RateLimitPolicy(free_attempts=6, initial_delay_s=30.0, max_delay_s=3600.0)
PROBLEMS_PER_NETWORK = RateLimitPolicy(free_attempts=40, initial_delay_s=10.0, max_delay_s=600.0)
"""Of many people, as a classroom is."""
_DUPLICATE_WINDOW = timedelta(minutes=10)
"""For so long the same words of one learner about one place are the same problem."""
VOTES_PER_LEARNER = RateLimitPolicy(free_attempts=200, max_delay_s=300.0)
VOTES_PER_NETWORK = RateLimitPolicy(free_attempts=1_000, max_delay_s=300.0)


class ProblemReportNotFound(NotFound):
    code = "problem_unknown"
    message = N_("This report does not exist.")


class ProblemKindMissing(InvalidInput):
    code = "kind_missing"
    message = N_("Choose what the problem is about.")


@dataclass(frozen=True, slots=True)
class FeedbackAuthor:
    """Who gives feedback: a learner, and the network they come from if it is counted."""

    learner_id: str
    network: str | None


@dataclass(frozen=True, slots=True)
class ProblemDraft:
    """A problem as it was filled in. ``key`` comes from the form and is the same when it is sent twice."""

    kind: str
    page: str
    lesson: str
    cell: str
    text: str
    key: str
    language: str


async def create_problem_report(session: AsyncSession, who: FeedbackAuthor, draft: ProblemDraft) -> ProblemReport:
    """Store a problem, or find the one that the same form has stored already.

    Raises:
        ProblemKindMissing, TextEmpty, TextTooLong, NotText: it cannot be kept.
        TooManyAttempts: too many came from this learner or network lately.
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


async def vote_on_lesson(
    session: AsyncSession, who: FeedbackAuthor, lesson: str, *, helpful: bool, comment: str | None, language: str
) -> None:
    """Note whether a lesson was helpful, in place of what the learner said before. ``comment`` None leaves that one.

    Raises:
        TextTooLong, NotText: the comment cannot be kept.
        TooManyAttempts: too many came from this learner or network lately.
    """
    values: dict[str, object] = {"id": sortable_id(), "helpful": helpful, "language": language, "updated_at": now()}
    if comment is not None:
        values["comment"] = clean_text(comment, MAX_COMMENT_LENGTH) if comment.strip() else ""
    await count_attempt(session, network_limit_key("vote", who.network), VOTES_PER_NETWORK)
    await count_attempt(session, f"vote learner {who.learner_id}", VOTES_PER_LEARNER)
    row = dialect_insert(session, LessonVote).values(
        {"learner_id": who.learner_id, "lesson": lesson, "comment": "", **values}
    )
    await session.execute(row.on_conflict_do_update(index_elements=["learner_id", "lesson"], set_=values))


async def set_problem_resolved(
    session: AsyncSession, instructor: Account, problem_id: str, note: str, *, resolved: bool
) -> ProblemReport:
    """Mark a problem as resolved, or reopen it. A note that is not empty replaces the last one.

    Raises:
        ProblemReportNotFound: there is none of that id.
        TextTooLong, NotText: the note cannot be kept.
    """
    problem = await get_problem_report(session, problem_id)
    if note.strip():
        problem.note = clean_text(note, MAX_COMMENT_LENGTH)
    problem.resolved_at = (problem.resolved_at or now()) if resolved else None
    problem.resolved_by = instructor.id
    await session.flush()
    return problem


async def get_problem_report(session: AsyncSession, problem_id: str) -> ProblemReport:
    """The problem. Raises ProblemReportNotFound."""
    problem = await session.get(ProblemReport, problem_id) if problem_id.isascii() and "\0" not in problem_id else None
    if problem is None:
        raise ProblemReportNotFound
    return problem


async def find_vote(session: AsyncSession, learner_id: str | None, lesson: str) -> LessonVote | None:
    """What a learner said about a lesson."""
    return await session.get(LessonVote, (learner_id, lesson)) if learner_id else None


async def _find_by_key(session: AsyncSession, key: str) -> ProblemReport | None:
    return (await session.scalars(select(ProblemReport).where(ProblemReport.idempotency_key == key))).one_or_none()


async def _find_duplicate(
    session: AsyncSession, who: FeedbackAuthor, draft: ProblemDraft, text: str
) -> ProblemReport | None:
    """The same from a form that was opened anew: the browser's back button does that."""
    same = select(ProblemReport).where(
        ProblemReport.learner_id == who.learner_id, ProblemReport.created_at > now() - _DUPLICATE_WINDOW
    )
    same = same.where(
        ProblemReport.kind == draft.kind, ProblemReport.page == draft.page, ProblemReport.cell == draft.cell
    )
    return (await session.scalars(same.where(ProblemReport.text == text).limit(1))).first()


def _deduplication_key(draft: ProblemDraft, text: str) -> str:
    """Another text from the same form, as after the browser's back button, is another problem."""
    parts = (draft.key, draft.kind, draft.page, draft.cell, text)
    return hashlib.sha256("\0".join(parts).encode("utf-8", "replace")).hexdigest()
