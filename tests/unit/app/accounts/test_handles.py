"""Valid handles, and handles that were given up, which nobody else can get."""

from __future__ import annotations

import pytest
from sqlalchemy import select

from app.accounts.handles import (
    HANDLE_TAKEN,
    INVALID_HANDLE,
    MAX_RETIRED,
    TOO_MANY_HANDLE_CHANGES,
    change_handle,
    is_reserved,
    slugify_handle,
    validate_handle,
)
from app.accounts.models import Account, RetiredHandle
from app.accounts.personal_data import erase_account
from app.accounts.service import lock_account
from app.db import Database
from tests.factories.accounts import store_account

OURS = "admin adm1n 4dmin a-d-m-i-n admin-2 admin99 adrnin lockstep 1ockstep l0ck-5tep instructor 1nstruct0r moderator"
OURS += " rnoderator support system everyone all a11 learner no-reply noreply root r00t"
THEIRS = "ada ali allan learner-4821 adam modesty rootes hallie tim lockstep-fan"


@pytest.mark.parametrize(
    ("name", "handle"),
    [
        ("Ada Byron", "ada-byron"),
        ("Zoë", "zoe"),
        ("김하나", "learner"),
        ("--", "learner"),
        ("x" * 60, "x" * 24),
        ("Admin", "learner"),
        ("\uff21\uff24\uff2d\uff29\uff2e", "learner"),
        ("M\u00f3derator", "learner"),
    ],
)
def test_a_handle_is_made_of_a_name(name: str, handle: str) -> None:
    assert slugify_handle(name) == handle


@pytest.mark.parametrize("handle", OURS.split())
def test_a_handle_that_reads_as_the_sites_own_is_nobodys(handle: str) -> None:
    assert is_reserved(handle)


@pytest.mark.parametrize("handle", THEIRS.split())
def test_a_handle_that_only_resembles_one_is_free(handle: str) -> None:
    assert not is_reserved(handle)


async def why_not(db: Database, account: Account, handle: str) -> str | None:
    """Change the handle, unless there is a reason not to."""
    async with db.writing() as session:
        mine = await lock_account(session, account)
        if (refusal := await validate_handle(session, mine, handle)) is None:
            await change_handle(session, mine, handle)
        return refusal


async def test_a_handle_that_was_given_up_is_its_owners_and_nobody_elses(database: Database) -> None:
    ada, eve = [await store_account(database, name=name) for name in ("Ada Byron", "Eve")]

    assert await why_not(database, ada, "countess") is None

    assert await why_not(database, eve, "ada-byron") == HANDLE_TAKEN
    assert (await store_account(database, name="Ada Byron")).handle.startswith("ada-byron-")
    assert await why_not(database, ada, "ada-byron") is None
    assert await why_not(database, eve, "countess") == HANDLE_TAKEN
    assert await why_not(database, eve, "moderat0r") == HANDLE_TAKEN
    assert await why_not(database, eve, "-e") == INVALID_HANDLE


async def test_a_handle_of_an_account_that_was_deleted_is_kept_as_nothing_but_a_hash(database: Database) -> None:
    ada, eve = [await store_account(database, name=name) for name in ("Ada Byron", "Eve")]
    await why_not(database, ada, "countess")

    async with database.writing() as session:
        await erase_account(session, ada, ())

    for handle in ("ada-byron", "countess"):
        assert await why_not(database, eve, handle) == HANDLE_TAKEN
    async with database.session() as session:
        kept = (await session.scalars(select(RetiredHandle))).all()
    assert [each.account_id for each in kept] == [None, None]
    assert not any(name in each.handle_hash for each in kept for name in ("ada", "countess"))


async def test_nobody_collects_handles_by_changing_theirs(database: Database) -> None:
    ada = await store_account(database, name="Ada Byron")
    for number in range(MAX_RETIRED):
        assert await why_not(database, ada, f"countess-{number}") is None

    assert await why_not(database, ada, "countess-of-lovelace") == TOO_MANY_HANDLE_CHANGES
    assert await why_not(database, ada, "countess-0") is None
    assert await why_not(database, ada, "ada-byron") is None
