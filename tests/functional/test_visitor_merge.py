"""Browsers that join one account: nothing is lost, nothing is counted twice, whoever comes first."""

from __future__ import annotations

import asyncio
from pathlib import Path

from sqlalchemy import func, select, text
from sqlalchemy.ext.asyncio import AsyncSession

from app.accounts.merge import MergeResult, merge_visitor, resolve_learner_id
from app.accounts.models import Account, MergedVisitor
from app.db import Database
from app.exercises.models import PredictionAnswer, QuizAnswer
from app.exercises.personal_data import move_answers
from app.exercises.predictions import answer_prediction
from app.exercises.quizzes import answer_quiz
from app.lessons.catalog import Catalog
from app.progress.achievement_catalog import AchievementCatalog
from app.progress.models import LedgerEntry
from app.progress.service import ProgressService
from app.runs.models import Run
from app.runs.personal_data import move_runs
from tests.factories.accounts import store_account
from tests.factories.course import write_course
from tests.factories.judged_lesson import PREDICTION, QUIZ, with_exercise
from tests.factories.stored_runs import store_runs

MERGERS = (move_runs,)


async def count_runs(db: Database, learner: str) -> int:
    async with db.session() as session:
        return await session.scalar(select(func.count()).where(Run.learner_id == learner)) or 0


async def merge(db: Database, visitor: str, account: Account, *, adopt: bool = False) -> MergeResult:
    async with db.writing() as session:
        mine = await session.merge(account)
        return await merge_visitor(session, visitor, mine, MERGERS, adopt=adopt)


class Answerer:
    """Answers a question and a prediction of a lesson, as their routes do."""

    def __init__(self, db: Database, root: Path) -> None:
        catalog = Catalog(write_course(root), quiet=True)
        catalog.reload()
        self.db = db
        self.lesson = with_exercise(catalog.lesson("small", "first", "en"))
        self.progress = ProgressService(catalog, AchievementCatalog(catalog))

    async def answer(self, learner: str) -> None:
        async with self.db.writing() as session:
            await answer_quiz(session, self.progress, learner, self.lesson, QUIZ, [0], visitor_address=None)
        async with self.db.writing() as session:
            guess = {"guess": "16"}
            await answer_prediction(
                session, self.progress, learner, self.lesson, PREDICTION, guess, skip=False, visitor_address=None
            )

    async def owners(self) -> set[tuple[str, str]]:
        """The tables that hold answers, and whose they are."""
        found = set()
        async with self.db.session() as session:
            for table in (QuizAnswer, PredictionAnswer, LedgerEntry):
                found |= {(table.__tablename__, learner) for learner in await session.scalars(select(table.learner_id))}
        return found


async def test_an_answer_sent_while_a_visitor_merges_is_the_accounts(database: Database, tmp_path: Path) -> None:
    account = await store_account(database)
    answerer = Answerer(database, tmp_path)
    sent: list[asyncio.Task[None]] = []

    async def answer_meanwhile(session: AsyncSession, visitor: str, _account: str) -> dict[str, int]:
        """Let the answer get as far as it can before the merge is committed."""
        sent.append(asyncio.create_task(answerer.answer(visitor)))
        if session.get_bind().dialect.name == "postgresql":
            waiting = "SELECT count(*) FROM pg_locks JOIN pg_database ON oid = database WHERE NOT granted"
            here = text(f"{waiting} AND locktype = 'advisory' AND datname = current_database()")
            while not sent[0].done() and not await session.scalar(here):  # noqa: ASYNC110
                await asyncio.sleep(0)
        return {}

    async with database.writing() as session:
        mine = await session.merge(account)
        mergers = (move_runs, answerer.progress.ledger.merge, move_answers, answer_meanwhile)
        await merge_visitor(session, "a", mine, mergers)
    await asyncio.gather(*sent)

    assert await answerer.owners() == {
        ("quiz_answers", account.learner_id),
        ("prediction_answers", account.learner_id),
        ("ledger_entries", account.learner_id),
    }


async def test_an_answer_sent_before_a_visitor_merges_moves_with_them(database: Database, tmp_path: Path) -> None:
    account = await store_account(database)
    answerer = Answerer(database, tmp_path)

    for _ in range(2):  # after the merge, the browser still has the visitor's page
        await answerer.answer("a")
        async with database.writing() as session:
            mine = await session.merge(account)
            await merge_visitor(session, "a", mine, (answerer.progress.ledger.merge, move_answers))

    assert {learner for _table, learner in await answerer.owners()} == {account.learner_id}
    async with database.session() as session:
        assert [answer.tries for answer in await session.scalars(select(QuizAnswer))] == [2]


async def test_two_browsers_merge_at_once_and_each_again(database: Database) -> None:
    account = await store_account(database)
    for visitor in ("a", "b"):
        await store_runs(database, visitor, 3)

    merged = await asyncio.gather(*(merge(database, visitor, account) for visitor in ("a", "b", "a", "b", "a")))

    assert sorted(came.moved_counts.get("runs", 0) for came in merged) == [0, 0, 0, 3, 3]
    assert await count_runs(database, account.learner_id) == 6


async def test_one_browser_that_signs_in_to_two_accounts_at_once_goes_to_one(database: Database) -> None:
    accounts = [await store_account(database) for _ in range(2)]
    await store_runs(database, "a", 3)

    await asyncio.gather(*(merge(database, "a", account) for account in accounts))

    assert sorted([await count_runs(database, account.learner_id) for account in accounts]) == [0, 3]


async def test_a_new_account_goes_on_as_the_visitor(database: Database) -> None:
    account = await store_account(database)
    await store_runs(database, "a", 2)

    assert (await merge(database, "a", account, adopt=True)).adopted

    async with database.session() as session:
        stored = await session.get(Account, account.id)
        assert stored is not None
        assert stored.learner_id == "a"
        assert await session.get(MergedVisitor, "a") is not None
        assert await resolve_learner_id(session, "a") == "a"
    assert await count_runs(database, "a") == 2


async def test_a_visitor_is_known_by_the_account_they_became(database: Database) -> None:
    account = await store_account(database)
    await merge(database, "a", account)
    async with database.session() as session:
        assert await resolve_learner_id(session, "a") == account.learner_id
        assert await resolve_learner_id(session, "somebody else") == "somebody else"
