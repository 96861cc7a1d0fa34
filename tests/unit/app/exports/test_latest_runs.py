"""What a notebook with a learner's work holds: the later of the last run and the last submission of each cell."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from app.db import Database, now
from app.exports.latest_runs import CellRun, latest_runs_by_cell
from app.runs.models import CodeDraft
from tests.factories.accounts import store_account
from tests.factories.stored_output import store_run_with_output


async def _store(db: Database, code: str, hours_ago: int, **facts: Any) -> str:
    return await store_run_with_output(db, 1, code=code, at=now() - timedelta(hours=hours_ago), **facts)


async def _exported(db: Database) -> dict[str, CellRun]:
    async with db.session() as session:
        return await latest_runs_by_cell(session, "v", "small/first")


@pytest.mark.parametrize(("submitted_hours_ago", "code", "outputs"), [(1, "submitted", False), (9, "ran", True)])
async def test_the_later_of_run_and_submission_is_exported(
    database: Database, submitted_hours_ago: int, code: str, outputs: bool
) -> None:
    await _store(database, "older", 20)
    await _store(database, "ran", 5)
    await _store(database, "submitted", submitted_hours_ago, judgement=True)
    await _store(database, "alone", 7, cell="alone")

    exported = await _exported(database)

    assert (exported["hello"].code, bool(exported["hello"].events)) == (code, outputs)
    assert [exported[cell].order for cell in ("alone", "hello")] == [1, 2 if outputs else None]


async def test_a_submission_of_the_code_that_ran_keeps_the_runs_output(database: Database) -> None:
    await _store(database, "same", 5)
    await _store(database, "same", 1, judgement=True)

    assert (await _exported(database))["hello"].events


async def test_an_exercise_that_was_only_submitted_is_exported(database: Database) -> None:
    await _store(database, "first", 5, judgement=True)
    await _store(database, "second", 1, judgement=True)

    assert await _exported(database) == {"hello": CellRun("second")}


@pytest.mark.parametrize(("edited_hours_ago", "code"), [(1, "edited"), (9, "ran")])
async def test_an_edit_that_was_not_run_is_exported_if_it_is_later(
    database: Database, edited_hours_ago: int, code: str
) -> None:
    account = await store_account(database)
    await _store(database, "ran", 5, learner_id=account.learner_id)
    async with database.writing() as session:
        for cell, text in (("hello", "edited"), ("alone", None)):
            at = now() - timedelta(hours=edited_hours_ago)
            draft = {"lesson": "small/first", "cell": cell, "code": text, "original_digest": "d", "version": 1}
            session.add(CodeDraft(account_id=account.id, updated_at=at, **draft))

    async with database.session() as session:
        exported = await latest_runs_by_cell(session, account.learner_id, "small/first")
    assert list(exported) == ["hello"]
    assert (exported["hello"].code, bool(exported["hello"].events)) == (code, code == "ran")
    assert await _exported(database) == {}
