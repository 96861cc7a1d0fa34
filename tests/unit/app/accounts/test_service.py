"""Accounts are created and found."""

from __future__ import annotations

from fastapi import FastAPI

from app.accounts.service import create_account, find_by_email, find_by_handle
from app.db import Database
from tests.factories.accounts import signed_in_browser, store_account


async def test_two_of_a_name_get_two_handles_and_are_found_by_their_addresses(database: Database) -> None:
    async with database.writing() as session:
        first = await create_account(session, email="Ada@example.org", name="Ada Byron")
        second = await create_account(session, email="ada@example.com", name="Ada Byron")
        nameless = await create_account(session, email="hana@example.com", name="김하나")
        unknown = await create_account(session, email="grace.hopper@example.com", name=None, language="ko")
    assert first.handle == "ada-byron"
    assert second.handle.startswith("ada-byron-")
    assert nameless.handle.startswith("learner-")
    assert unknown.handle == f"learner-{unknown.name.removeprefix('학습자 ')}", "nothing of the address"
    async with database.session() as session:
        found = await find_by_email(session, "ADA@example.org")
        assert found is not None
        assert found.id == first.id


async def test_a_browser_of_the_factory_is_signed_in(app: FastAPI) -> None:
    account = await store_account(app.state.db, "instructor")
    async with await signed_in_browser(app, account) as client:
        assert (await client.get("/runs", params={"lesson": "small/first"})).json() == {"runs": []}
        assert not client.cookies.get("lockstep_visitor")


async def test_a_handle_is_found_in_either_case(database: Database) -> None:
    ada = await store_account(database)
    async with database.session() as session:
        for handle in (ada.handle, ada.handle.upper()):
            found = await find_by_handle(session, handle)
            assert found is not None
            assert found.id == ada.id
        for handle in (f"{ada.handle}\0", "ada-\uac00", "nobody-of-this-name"):
            assert await find_by_handle(session, handle) is None
