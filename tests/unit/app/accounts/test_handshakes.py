"""What was begun is finished once, in its browser; a person of another site is one account's. On both databases."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from fastapi import FastAPI
from sqlalchemy import select
from starlette.requests import Request
from webauthn import base64url_to_bytes
from webauthn.helpers import bytes_to_base64url

from app.accounts import handshakes
from app.accounts.cookies import _COOKIES
from app.accounts.handshakes import Begun, HandshakeGone, begin, finish, offer, take
from app.accounts.identities import (
    IdentityTaken,
    LastWayIn,
    LinkFirst,
    SiteLinked,
    account_of,
    find_identity,
    link,
    sign_up_with,
    unlink,
)
from app.accounts.models import Handshake
from app.accounts.other_sites import Person
from app.db import Database, now
from app.settings import Settings
from tests.factories.accounts import an_account

ISSUER = "https://login.example.edu"


def a_request(cookie: str = "") -> Request:
    """A request of a browser with that cookie."""
    app = FastAPI()
    app.state.settings = Settings()
    app.state.secrets = (b"k" * 32,)
    headers = [(b"cookie", cookie.encode()), (b"host", b"localhost")]
    scope: dict[str, Any] = {"type": "http", "app": app, "headers": headers, "scheme": "http", _COOKIES: {}}
    return Request({**scope, "path": "/", "method": "GET", "query_string": b"", "server": ("localhost", 80)})


def cookie_of(request: Request) -> str:
    (cookie,) = request.scope[_COOKIES].values()
    return str(cookie).split(";")[0]


async def test_of_many_answers_one_counts(database: Database) -> None:
    asking = a_request()
    async with database.writing() as session:
        await begin(asking, session, "passkey", "the challenge", {"name": "Mein Schlüssel"})
    cookie = cookie_of(asking)

    async def answer(purpose: str = "passkey", key: str = "the challenge", held: str = cookie) -> Begun | None:
        try:
            async with database.writing() as session:
                return await finish(a_request(held), session, purpose, key)
        except HandshakeGone:
            return None

    for wrong in ({"purpose": "site campus"}, {"key": "another"}, {"held": ""}, {"held": f"{cookie[:-1]}-"}):
        assert await answer(**wrong) is None
    answers = await asyncio.gather(*(answer() for _ in range(8)))
    assert [each for each in answers if each] == [Begun(None, {"name": "Mein Schlüssel"})]


async def test_an_offered_challenge_is_stored_nowhere_and_counts_once_in_its_browser(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    asking, elsewhere = a_request(), a_request()
    challenge, other = offer(asking), offer(elsewhere)
    assert bytes_to_base64url(base64url_to_bytes(challenge)) == challenge, "a browser brings it back as it was"
    cookie = cookie_of(asking)

    async def answered(said: str = challenge, held: str = cookie) -> bool:
        try:
            async with database.writing() as session:
                await take(a_request(held), session, said)
        except HandshakeGone:
            return False
        return True

    later = challenge[:22] + f"{int(challenge[22:37]) + 600:015d}" + challenge[37:]
    for wrong in ({"said": other}, {"said": later}, {"said": "x" * 80}, {"held": ""}, {"held": cookie_of(elsewhere)}):
        assert not await answered(**wrong)
    async with database.session() as session:
        assert (await session.scalars(select(Handshake))).all() == [], "a row for what nobody answered"
    assert sum(await asyncio.gather(*(answered() for _ in range(8)))) == 1
    late = offer(a_request(cookie))
    monkeypatch.setattr(handshakes, "now", lambda: now() + handshakes.LASTS)
    assert not await answered(late)


async def test_a_second_tab_does_not_undo_the_first(database: Database) -> None:
    first = a_request()
    async with database.writing() as session:
        await begin(first, session, "passkey", "one")
    second = a_request(cookie_of(first))
    async with database.writing() as session:
        await begin(second, session, "passkey", "two")

    assert cookie_of(second) == cookie_of(first)
    for key in ("one", "two"):
        async with database.writing() as session:
            assert await finish(a_request(cookie_of(first)), session, "passkey", key) == Begun(None, {})


async def test_a_person_of_another_site_is_one_accounts_and_the_last_way_in_stays(database: Database) -> None:
    ada = Person(ISSUER, "ada", "ada@example.org", "Ada Byron")
    async with database.writing() as session:
        account = await sign_up_with(session, ada, "open", None, "ko")
    other = await an_account(database)
    async with database.writing() as session:
        found = await account_of(session, ada)
        assert found is not None
        assert (found.id, found.language) == (account.id, "ko")
        assert await account_of(session, Person(ISSUER, "grace", None, None)) is None
        with pytest.raises(LinkFirst):
            await sign_up_with(session, Person(ISSUER, "grace", "ADA@example.org", None), "open", None, "en")
        with pytest.raises(IdentityTaken):
            await link(session, other, ada)
        with pytest.raises(SiteLinked):
            await link(session, account, Person(ISSUER, "grace", None, None))
        with pytest.raises(LastWayIn):
            await unlink(session, account, ISSUER, [ISSUER])
        await link(session, account, Person("https://other.example.org", "ada", None, None))
        with pytest.raises(LastWayIn):
            await unlink(session, account, ISSUER, [ISSUER])  # the other one is no longer set
        await unlink(session, account, ISSUER, [ISSUER, "https://other.example.org"])
        assert (await find_identity(session, account, "https://other.example.org")).subject == "ada"
