"""What can be done with feedback: one function per verb. They flush; the caller commits."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import timedelta

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncSession

from app.accounts.attempts import Policy, address_key, count_try
from app.accounts.models import Account
from app.db import growing_id, insert_into, now, one_at_a_time
from app.errors import NotFound, Unreadable
from app.feedback.models import Kind, Problem, Vote
from app.i18n import N_
from app.web.text import tidy

MOST_CHARACTERS = 4_000
MOST_SENTENCE = 500
"""Characters of the sentence beside a vote, and of an instructor's note."""
OF_LEARNER = Policy(free=6, first_s=30.0, most_s=3600.0)
OF_ADDRESS = Policy(free=40, first_s=10.0, most_s=600.0)
"""Of many people, as a classroom is."""
_AGAIN = timedelta(minutes=10)
"""For so long the same words of one learner about one place are the same problem."""
VOTES_OF_LEARNER = Policy(free=200, most_s=300.0)
VOTES_OF_ADDRESS = Policy(free=1_000, most_s=300.0)


class ProblemUnknown(NotFound):
    code = "problem_unknown"
    message = N_("There is no such report.")


class KindMissing(Unreadable):
    code = "kind_missing"
    message = N_("Choose what it is about.")


@dataclass(frozen=True, slots=True)
class Who:
    """Who gives feedback: a learner, and the network they come from if it is counted."""

    learner_id: str
    network: str | None


@dataclass(frozen=True, slots=True)
class Draft:
    """A problem as it was filled in. ``key`` comes from the form and is the same when it is sent twice."""

    kind: str
    page: str
    lesson: str
    cell: str
    text: str
    key: str
    language: str


async def report(session: AsyncSession, who: Who, draft: Draft) -> Problem:
    """Store a problem, or find the one that the same form has stored already.

    Raises:
        KindMissing, TextEmpty, TextTooLong, NotText: it cannot be kept.
        TooManyTries: too many came from this learner or network lately.
    """
    if draft.kind not in list(Kind):
        raise KindMissing
    text = tidy(draft.text, MOST_CHARACTERS)
    key = _key(draft, text)
    await one_at_a_time(session, f"problem {key}")
    await one_at_a_time(session, f"problems of {who.learner_id}")
    before = await _of_key(session, key) or await _said_again(session, who, draft, text)
    if before is not None:
        return before
    await count_try(session, address_key("problem", who.network), OF_ADDRESS)
    await count_try(session, f"problem learner {who.learner_id}", OF_LEARNER)
    values = {
        "id": growing_id(),
        "key": key,
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
    await session.execute(insert_into(session, Problem).values(values).on_conflict_do_nothing(index_elements=["key"]))
    return (await session.scalars(select(Problem).where(Problem.key == key))).one()


async def vote(
    session: AsyncSession, who: Who, lesson: str, *, helpful: bool, sentence: str | None, language: str
) -> None:
    """Note whether a lesson was helpful, in place of what the learner said before. ``sentence`` None leaves that one.

    Raises:
        TextTooLong, NotText: the sentence cannot be kept.
        TooManyTries: too many came from this learner or network lately.
    """
    values: dict[str, object] = {"id": growing_id(), "helpful": helpful, "language": language, "at": now()}
    if sentence is not None:
        values["sentence"] = tidy(sentence, MOST_SENTENCE) if sentence.strip() else ""
    await count_try(session, address_key("vote", who.network), VOTES_OF_ADDRESS)
    await count_try(session, f"vote learner {who.learner_id}", VOTES_OF_LEARNER)
    row = insert_into(session, Vote).values({"learner_id": who.learner_id, "lesson": lesson, "sentence": "", **values})
    await session.execute(row.on_conflict_do_update(index_elements=["learner_id", "lesson"], set_=values))


async def handle(session: AsyncSession, instructor: Account, problem_id: str, note: str, *, done: bool) -> Problem:
    """Mark a problem as handled, or open it again, with a note if there is one to write.

    Raises:
        ProblemUnknown: there is none of that id.
        TextTooLong, NotText: the note cannot be kept.
    """
    problem = await get(session, problem_id)
    if note.strip():
        problem.note = tidy(note, MOST_SENTENCE)
    problem.handled_at = (problem.handled_at or now()) if done else None
    problem.handled_by = instructor.id
    await session.flush()
    return problem


async def get(session: AsyncSession, problem_id: str) -> Problem:
    """The problem. Raises ProblemUnknown."""
    problem = await session.get(Problem, problem_id) if problem_id.isascii() and "\0" not in problem_id else None
    if problem is None:
        raise ProblemUnknown
    return problem


async def vote_of(session: AsyncSession, learner_id: str | None, lesson: str) -> Vote | None:
    """What a learner said about a lesson."""
    return await session.get(Vote, (learner_id, lesson)) if learner_id else None


async def _of_key(session: AsyncSession, key: str) -> Problem | None:
    return (await session.scalars(select(Problem).where(Problem.key == key))).one_or_none()


async def _said_again(session: AsyncSession, who: Who, draft: Draft, text: str) -> Problem | None:
    """The same from a form that was opened anew: the browser's back button does that."""
    same = select(Problem).where(Problem.learner_id == who.learner_id, Problem.created_at > now() - _AGAIN)
    same = same.where(Problem.kind == draft.kind, Problem.page == draft.page, Problem.cell == draft.cell)
    return (await session.scalars(same.where(Problem.text == text).limit(1))).first()


def _key(draft: Draft, text: str) -> str:
    """Another text from the same form, as after the browser's back button, is another problem."""
    parts = (draft.key, draft.kind, draft.page, draft.cell, text)
    return hashlib.sha256("\0".join(parts).encode("utf-8", "replace")).hexdigest()
