"""Drafts that an account's browsers share, on both databases: the newer one is never overwritten unseen."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from sqlalchemy import delete, update

from app.accounts.models import Account
from app.accounts.service import AccountDeleted
from app.db import Database
from app.runs.code_drafts import DraftChange, load_drafts, save_draft
from app.runs.errors import CodeTooLong, InvalidCode
from app.runs.models import CodeDraft
from app.runs.personal_data import export_code_drafts
from tests.factories.accounts import signed_in_browser, store_account
from tests.factories.course import LESSON
from tests.factories.scripted_supervisor import ScriptedSupervisor

DIGEST = "0123456789abcdef"


def change(code: str | None, seen: int = 0, cell: str = "hello") -> DraftChange:
    return DraftChange(LESSON, cell, code, DIGEST, seen)


async def save(db: Database, account: Account, code: str | None, seen: int = 0, cell: str = "hello") -> tuple[Any, ...]:
    """Save a draft; the code and version that are then stored."""
    async with db.writing() as session:
        draft = await save_draft(session, account, change(code, seen, cell))
        return draft.code, draft.version


async def test_a_change_replaces_the_version_that_its_browser_has_seen(database: Database) -> None:
    ada = await store_account(database)

    assert await save(database, ada, "x = 1") == ("x = 1", 1)
    assert await save(database, ada, "x = 2", 1) == ("x = 2", 2)
    assert await save(database, ada, None, 2) == (None, 3)


@pytest.mark.parametrize("seen", [0, 1, 3])
async def test_a_change_to_any_other_version_replaces_nothing(database: Database, seen: int) -> None:
    ada = await store_account(database)
    await save(database, ada, "x = 1")
    await save(database, ada, "x = 2", 1)

    assert await save(database, ada, "x = 3", seen) == ("x = 2", 2)


async def test_a_change_that_arrives_twice_is_saved_once(database: Database) -> None:
    ada = await store_account(database)

    assert await save(database, ada, "x = 1") == ("x = 1", 1)
    assert await save(database, ada, "x = 1") == ("x = 1", 1)


async def test_of_browsers_that_save_at_once_one_wins_and_the_others_know(database: Database) -> None:
    ada = await store_account(database)

    found = await asyncio.gather(*(save(database, ada, f"x = {n}") for n in range(6)))

    assert len(set(found)) == 1
    assert {version for _, version in found} == {1}


async def test_drafts_are_those_of_one_account_and_lesson(database: Database) -> None:
    ada, bob = await store_account(database), await store_account(database, name="Bob")
    await save(database, ada, "ada", cell="b")
    await save(database, ada, "ada", cell="a")
    await save(database, bob, "bob")

    async with database.session() as session:
        assert [draft.cell for draft in await load_drafts(session, ada, LESSON)] == ["a", "b"]
        assert await load_drafts(session, ada, "small/other") == []


async def test_an_account_exports_its_drafts_and_takes_them_along(database: Database) -> None:
    ada, bob = await store_account(database), await store_account(database, name="Bob")
    await save(database, ada, "ada")
    await save(database, ada, None, cell="reset")
    await save(database, bob, "bob")

    async with database.writing() as session:
        assert [row["code"] async for row in export_code_drafts(session, ada)] == ["ada"]
        await session.execute(delete(Account).where(Account.id == ada.id))

    async with database.session() as session:
        assert await load_drafts(session, ada, LESSON) == []
        assert [draft.code for draft in await load_drafts(session, bob, LESSON)] == ["bob"]


async def test_a_draft_of_an_account_that_is_gone_is_refused(database: Database) -> None:
    ada = await store_account(database)
    async with database.writing() as session:
        await session.execute(delete(Account).where(Account.id == ada.id))

    with pytest.raises(AccountDeleted):
        await save(database, ada, "x = 1")


async def test_code_that_cannot_be_run_is_no_draft(database: Database) -> None:
    ada = await store_account(database)

    with pytest.raises(CodeTooLong):
        await save(database, ada, "#" * 100_001)
    with pytest.raises(InvalidCode):
        await save(database, ada, "a\0b")


@pytest.fixture
async def ada(app: FastAPI) -> AsyncIterator[httpx.AsyncClient]:
    async with aclosing(await signed_in_browser(app)) as client:
        yield client


def asked(**more: Any) -> dict[str, Any]:
    return {"lesson": LESSON, "cell": "hello", "code": "x = 1", "original_digest": DIGEST, "seen_version": 0} | more


async def test_a_conflict_answers_with_the_draft_that_is_there(
    app: FastAPI, supervisor: ScriptedSupervisor, ada: httpx.AsyncClient
) -> None:
    assert (await ada.put("/code-drafts", json=asked())).status_code == 200
    refused = await ada.put("/code-drafts", json=asked(code="x = 2"))

    assert (refused.json()["code"], refused.json()["version"]) == ("x = 1", 1)
    listed = await ada.get("/code-drafts", params={"lesson": LESSON})
    assert listed.json() == {"drafts": [refused.json()]}
    assert listed.headers["cache-control"] == "no-store"


async def test_nobody_reads_or_writes_the_drafts_of_somebody_else(
    app: FastAPI, supervisor: ScriptedSupervisor, ada: httpx.AsyncClient, client: httpx.AsyncClient
) -> None:
    await ada.put("/code-drafts", json=asked())

    async with aclosing(await signed_in_browser(app)) as bob:
        assert (await bob.get("/code-drafts", params={"lesson": LESSON})).json() == {"drafts": []}
        assert (await bob.put("/code-drafts", json=asked(code="bob"))).status_code == 200
    assert (await client.get("/code-drafts", params={"lesson": LESSON})).status_code == 401
    assert (await client.put("/code-drafts", json=asked())).status_code == 401
    foreign = {"sec-fetch-site": "cross-site"}
    assert (await ada.put("/code-drafts", json=asked(code="x"), headers=foreign)).status_code == 403
    (mine,) = (await ada.get("/code-drafts", params={"lesson": LESSON})).json()["drafts"]
    assert mine["code"] == "x = 1"


@pytest.mark.parametrize(
    ("more", "status"),
    [
        ({"cell": "none"}, 404),
        ({"lesson": "small/none"}, 404),
        ({"original_digest": "<script>"}, 422),
        ({"seen_version": -1}, 422),
        ({"seen_version": 2**31}, 422),
        ({"code": "a\0b"}, 422),
        ({"code": "#" * 100_001}, 413),
        ({"account_id": "b" * 32}, 422),
    ],
)
async def test_what_is_no_draft_of_a_cell_is_refused(
    supervisor: ScriptedSupervisor, ada: httpx.AsyncClient, more: dict[str, Any], status: int
) -> None:
    assert (await ada.put("/code-drafts", json=asked(**more))).status_code == status


async def test_drafts_count_toward_what_may_be_stored_within_an_hour(
    app: FastAPI, supervisor: ScriptedSupervisor, ada: httpx.AsyncClient
) -> None:
    quotas = app.state.dispatcher.quotas
    quotas.limits = type(quotas.limits)(account=150_000)
    assert (await ada.put("/code-drafts", json=asked(code="#" * 100_000))).status_code == 200
    assert (await ada.put("/code-drafts", json=asked(code="!" * 100_000, seen_version=1))).status_code == 200

    assert (await ada.put("/code-drafts", json=asked(code="?", seen_version=2))).status_code == 429


async def test_a_version_of_a_database_that_was_restored_is_not_trusted(database: Database) -> None:
    ada = await store_account(database)
    assert await save(database, ada, "x = 1", seen=7) == ("x = 1", 1)
    async with database.writing() as session:
        await session.execute(update(CodeDraft).values(version=5))
    assert await save(database, ada, "x = 2", seen=7) == ("x = 1", 5)
