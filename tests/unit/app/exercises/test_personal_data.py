"""Exercise data of a learner moves with them, is part of their export, and is deleted with them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import select

from app.accounts.models import Account
from app.db import Base, Database
from app.exercises.models import PredictionAnswer, QuizAnswer, Submission
from app.exercises.personal_data import erase_exercises, export_exercises, move_answers
from app.runs.personal_data import erase_runs, move_runs
from tests.factories.accounts import store_account
from tests.factories.stored_runs import store_run

NOON = datetime(2026, 11, 23, 12, tzinfo=UTC)


def quiz_answer(learner: str, first: str = "0", at: datetime = NOON, tries: int = 1) -> QuizAnswer:
    return QuizAnswer(
        learner_id=learner,
        lesson="small/first",
        quiz="which",
        first_choices=first,
        first_right=first == "0",
        choices="0",
        answered_at=at,
        tries=tries,
    )


def prediction(learner: str, guess: str = "16", at: datetime = NOON) -> PredictionAnswer:
    return PredictionAnswer(
        learner_id=learner, lesson="small/first", prediction="how-many", guess=guess, informed=False, answered_at=at
    )


async def store(db: Database, *rows: Base) -> None:
    async with db.writing() as session:
        session.add_all(rows)


async def store_submission(db: Database, learner: str) -> str:
    run_id = await store_run(db, learner_id=learner, judgement=True)
    row = Submission(run_id=run_id, idempotency_key=run_id, verdict="passed", results="[]", lesson_digest="d")
    await store(db, row)
    return run_id


async def everything(db: Database, account: Account) -> list[Any]:
    async with db.session() as session:
        return [row async for row in export_exercises(session, account)]


async def test_an_account_gets_all_of_it_and_nothing_of_anybody_else(database: Database) -> None:
    account = await store_account(database)
    run_id = await store_submission(database, account.learner_id)
    await store_submission(database, "another")
    await store(database, quiz_answer(account.learner_id), prediction(account.learner_id), quiz_answer("another"))

    rows = await everything(database, account)

    assert [row["kind"] for row in rows] == ["submission", "quiz_answer", "prediction"]
    assert rows[0]["run_id"] == run_id


async def test_an_account_that_is_deleted_takes_all_of_it_along(database: Database) -> None:
    account = await store_account(database)
    await store_submission(database, account.learner_id)
    await store(database, quiz_answer(account.learner_id), prediction(account.learner_id), quiz_answer("another"))

    async with database.writing() as session:
        await erase_runs(session, account)
        await erase_exercises(session, account)

    assert await everything(database, account) == []
    async with database.session() as session:
        assert (await session.scalars(select(Submission))).all() == []
        assert [row.learner_id for row in await session.scalars(select(QuizAnswer))] == ["another"]


async def test_what_a_visitor_did_becomes_their_accounts(database: Database) -> None:
    account = await store_account(database)
    await store_submission(database, "v")
    await store(database, quiz_answer("v"), prediction("v"))

    async with database.writing() as session:
        await move_runs(session, "v", account.learner_id)
        assert await move_answers(session, "v", account.learner_id) == {"answers": 2}

    assert [row["kind"] for row in await everything(database, account)] == ["submission", "quiz_answer", "prediction"]


async def test_where_both_answered_the_earlier_answer_is_the_first(database: Database) -> None:
    account = await store_account(database)
    mine, early = account.learner_id, NOON - timedelta(hours=1)
    await store(database, quiz_answer(mine, "1"), prediction(mine, "1"))
    await store(database, quiz_answer("v", "0", early), prediction("v", "2", early))

    async with database.writing() as session:
        await move_answers(session, "v", mine)

    [answer, guess] = await everything(database, account)
    assert (answer["first_choices"], answer["first_right"], answer["tries"]) == ("0", True, 2)
    assert guess["guess"] == "2"
    async with database.session() as session:
        assert (await session.scalars(select(PredictionAnswer).where(PredictionAnswer.learner_id == "v"))).all() == []
