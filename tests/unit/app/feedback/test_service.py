"""Stored feedback, on both databases: once, one vote per learner; moved, exported and erased."""

from __future__ import annotations

import asyncio

from sqlalchemy import select

from app.accounts.models import Account
from app.db import Database, now
from app.feedback import queries, service
from app.feedback.models import LessonVote, ProblemKind, ProblemReport
from app.feedback.personal_data import erase_feedback, export_feedback, move_feedback
from app.feedback.queries import InboxFilter, ProblemStatus
from app.feedback.service import FeedbackAuthor, ProblemDraft
from tests.factories.accounts import store_account

LESSON = "small/first"


def draft(text: str = "A typo", key: str = "k", kind: str = "text") -> ProblemDraft:
    return ProblemDraft(kind, "/en/courses/small/first", LESSON, "", text, key, "en")


async def report(db: Database, learner: str, **of: str) -> None:
    async with db.writing() as session:
        await service.create_problem_report(session, FeedbackAuthor(learner, None), draft(**of))


async def vote(db: Database, learner: str, helpful: bool, lesson: str = LESSON, comment: str | None = None) -> None:
    async with db.writing() as session:
        await service.vote_on_lesson(
            session, FeedbackAuthor(learner, None), lesson, helpful=helpful, comment=comment, language="en"
        )


async def votes(db: Database) -> dict[tuple[str, str], bool]:
    async with db.session() as session:
        return {(one.learner_id, one.lesson): one.helpful for one in await session.scalars(select(LessonVote))}


async def test_sent_by_many_at_once_from_one_form_it_is_there_once(database: Database) -> None:
    await asyncio.gather(*(report(database, f"learner{n}") for n in range(8)))
    async with database.session() as session:
        assert len(list(await session.scalars(select(ProblemReport)))) == 1


async def test_many_votes_of_one_learner_at_once_are_one(database: Database) -> None:
    await asyncio.gather(*(vote(database, "learner", helpful=bool(n % 2)) for n in range(8)))
    assert list(await votes(database)) == [("learner", LESSON)]


async def test_the_inbox_goes_on_behind_the_last_one_shown_and_misses_none(database: Database) -> None:
    async with database.writing() as session:
        for n in range(queries.PAGE_SIZE * 2 + 5):
            resolved = now() if n % 10 == 9 else None
            kind = list(ProblemKind)[n % 5]
            session.add(
                ProblemReport(
                    id=f"{n:04}", idempotency_key=str(n), kind=kind, page="", text="x", language="en", created_at=now(),
                    resolved_at=resolved,
                )
            )  # fmt: skip
    seen: list[str] = []
    before = None
    async with database.session() as session:
        while True:
            rows, before = await queries.list_problem_reports(session, InboxFilter(), before)
            seen += [row.problem.id for row in rows]
            if before is None:
                break
        done, _ = await queries.list_problem_reports(session, InboxFilter(ProblemStatus.resolved))
        code, _ = await queries.list_problem_reports(session, InboxFilter(ProblemStatus.all, ProblemKind.code))
    assert seen == sorted((f"{n:04}" for n in range(65) if n % 10 != 9), reverse=True)
    assert [row.problem.id for row in done] == ["0059", "0049", "0039", "0029", "0019", "0009"]
    assert len(code) == 13


async def test_merging_keeps_the_later_vote_and_every_problem(database: Database) -> None:
    await vote(database, "old", True, "a/1")
    await vote(database, "visitor", False, "a/1")
    await vote(database, "visitor", False, "a/2")
    await vote(database, "old", True, "a/2")
    await vote(database, "visitor", True, "a/3")
    await report(database, "visitor", key="1")
    await report(database, "old", key="2")
    for _again in range(2):
        async with database.writing() as session:
            await move_feedback(session, "visitor", "old")

    assert await votes(database) == {("old", "a/1"): False, ("old", "a/2"): True, ("old", "a/3"): True}
    async with database.session() as session:
        assert [one.learner_id for one in await session.scalars(select(ProblemReport))] == ["old", "old"]


async def test_an_account_gets_its_own_and_leaves_problems_without_a_name(database: Database) -> None:
    account: Account = await store_account(database)
    await report(database, account.learner_id)
    await vote(database, account.learner_id, True, comment="Good")
    await vote(database, "somebody", False)
    async with database.session() as session:
        own = [dict(one) async for one in export_feedback(session, account)]
    async with database.writing() as session:
        await erase_feedback(session, account)

    assert [(one["kind"], one.get("text") or one.get("comment")) for one in own] == [
        ("problem_report", "A typo"),
        ("lesson_vote", "Good"),
    ]
    assert own[0]["about"] == "text"
    async with database.session() as session:
        (problem,) = await session.scalars(select(ProblemReport))
    assert (problem.learner_id, problem.text) == (None, "A typo")
    assert list(await votes(database)) == [("somebody", LESSON)]


async def test_the_account_that_resolved_a_problem_can_be_deleted(database: Database) -> None:
    teacher = await store_account(database)
    await report(database, "learner")
    async with database.writing() as session:
        (problem,) = await session.scalars(select(ProblemReport))
        await service.set_problem_resolved(session, teacher, problem.id, "Done", resolved=True)
    async with database.writing() as session:
        await session.delete(await session.get_one(Account, teacher.id))
    async with database.session() as session:
        ((row,), _before) = await queries.list_problem_reports(session, InboxFilter(ProblemStatus.all))
    assert (row.handler, row.problem.note) == (None, "Done")


async def test_votes_are_counted_by_lesson_and_what_was_said_goes_on_by_pages(database: Database) -> None:
    for n in range(queries.PAGE_SIZE + 2):
        await vote(database, f"learner{n}", helpful=n % 4 != 0, comment=f"Number {n}" if n else "")
    async with database.session() as session:
        (count,) = await queries.count_votes(session)
        first, before = await queries.list_vote_comments(session, LESSON)
        rest, end = await queries.list_vote_comments(session, LESSON, before)
    assert (count.lesson, count.yes, count.no, count.share) == (LESSON, 24, 8, 0.75)
    assert [said.text for said in (*first, *rest)] == [f"Number {n}" for n in range(queries.PAGE_SIZE + 1, 0, -1)]
    assert end is None
