"""What an address and a name may be."""

from __future__ import annotations

import pytest
from fastapi import FastAPI

from app.accounts.service import (
    create_account,
    email_key,
    find_by_email,
    find_by_handle,
    normalize_email,
    normalize_name,
)
from app.db import Database
from tests.factories.accounts import signed_in_browser, store_account


@pytest.mark.parametrize(
    ("typed", "read"),
    [
        (" ada@example.org ", "ada@example.org"),
        ("Ada@EXAMPLE.org", "Ada@example.org"),
        ("ada@b\u00fccher.example", "ada@xn--bcher-kva.example"),
        ("\ud55c\uae00@example.org", None),
        ("ada", None),
        ("", None),
        ("ada@@example.org", None),
        ("ada@example.org\0", None),
        ("ada@example.org\nbcc: eve@example.org", None),
        ("a" * 400 + "@example.org", None),
    ],
)
def test_an_address_is_read_as_mail_reads_it(typed: str, read: str | None) -> None:
    assert normalize_email(typed) == read


def test_a_text_as_long_as_a_form_may_be_is_no_address_and_never_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr("app.accounts.service.validate_email")  # it takes seconds for this
    assert normalize_email("\u0301" * 400_000 + "@example.org") is None


def test_an_address_has_one_key_however_it_is_written() -> None:
    assert email_key("Ada@Example.ORG") == email_key("ada@example.org")


@pytest.mark.parametrize(
    ("typed", "read"),
    [
        ("  Ada   Byron ", "Ada Byron"),
        ("김하나", "김하나"),
        ("", None),
        ("...", None),
        ("a\u202eb", None),
        ("a\0b", None),
        ("Nguy\u1ec5n V\u0103n \u00c1nh", "Nguy\u1ec5n V\u0103n \u00c1nh"),
        ("a" + "\u0335" * 5, None),
        ("\u3164", None),
        ("Ada\u115f\u1160", None),
        ("Ada\U000e0041", None),
        ("Ada\u00ad", None),
    ],
)
def test_a_name_is_one_readable_line(typed: str, read: str | None) -> None:
    assert normalize_name(typed) == read
    assert normalize_name("x" * 81) is None


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
