"""A challenge is completed once, in its browser; a person of another site has one account. On both databases."""

from __future__ import annotations

import asyncio

import pytest
from sqlalchemy import select
from webauthn import base64url_to_bytes
from webauthn.helpers import bytes_to_base64url

from app.accounts import auth_challenges
from app.accounts.auth_challenges import (
    AuthChallengeContext,
    AuthChallengeExpired,
    consume_challenge,
    consume_signed_challenge,
    create_challenge,
    issue_signed_challenge,
)
from app.accounts.browser import Browser
from app.accounts.identities import (
    EmailAlreadyRegistered,
    IdentityAlreadyLinked,
    LastAuthMethod,
    ProviderAlreadyLinked,
    find_account_by_identity,
    find_identity,
    link_identity,
    sign_up_with_identity,
    unlink_identity,
)
from app.accounts.identity_providers import UserInfo
from app.accounts.models import AuthChallenge
from app.accounts.signing import Signer
from app.db import Database, now
from app.web.cookies import Cookies
from tests.factories.accounts import store_account

ISSUER = "https://login.example.edu"


class FakeBrowser:
    """A browser with at most one cookie, ``name=value``."""

    def __init__(self, cookie: str = "") -> None:
        name, _, value = cookie.partition("=")
        self._set: dict[str, str] = {}
        self.cookies = Cookies({name: value} if name else {}, self._set, secure=False)
        self.browser = Browser(self.cookies, Signer([b"k" * 32]))

    @property
    def cookie(self) -> str:
        """The challenge in its cookie."""
        (cookie,) = self._set.values()
        return cookie.split(";")[0]


async def test_of_many_answers_one_counts(database: Database) -> None:
    asking = FakeBrowser()
    async with database.writing() as session:
        await create_challenge(session, asking.cookies, "passkey", "the challenge", {"name": "Mein Schlüssel"})
    cookie = asking.cookie

    async def answer(
        purpose: str = "passkey", key: str = "the challenge", held: str = cookie
    ) -> AuthChallengeContext | None:
        try:
            async with database.writing() as session:
                return await consume_challenge(session, FakeBrowser(held).cookies, purpose, key)
        except AuthChallengeExpired:
            return None

    for wrong in ({"purpose": "site campus"}, {"key": "another"}, {"held": ""}, {"held": f"{cookie[:-1]}-"}):
        assert await answer(**wrong) is None
    answers = await asyncio.gather(*(answer() for _ in range(8)))
    assert [(each.account_id, each.data) for each in answers if each] == [(None, {"name": "Mein Schlüssel"})]


async def test_an_offered_challenge_is_stored_nowhere_and_counts_once_in_its_browser(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    asking, elsewhere = FakeBrowser(), FakeBrowser()
    challenge, other = issue_signed_challenge(asking.browser), issue_signed_challenge(elsewhere.browser)
    assert bytes_to_base64url(base64url_to_bytes(challenge)) == challenge, "a browser brings it back as it was"
    cookie = asking.cookie

    async def answered(said: str = challenge, held: str = cookie) -> bool:
        try:
            async with database.writing() as session:
                await consume_signed_challenge(session, FakeBrowser(held).browser, said)
        except AuthChallengeExpired:
            return False
        return True

    later = challenge[:22] + f"{int(challenge[22:37]) + 600:015d}" + challenge[37:]
    for wrong in ({"said": other}, {"said": later}, {"said": "x" * 80}, {"held": ""}, {"held": elsewhere.cookie}):
        assert not await answered(**wrong)
    async with database.session() as session:
        assert (await session.scalars(select(AuthChallenge))).all() == [], "a row for what nobody answered"
    assert sum(await asyncio.gather(*(answered() for _ in range(8)))) == 1
    late = issue_signed_challenge(FakeBrowser(cookie).browser)
    monkeypatch.setattr(auth_challenges, "now", lambda: now() + auth_challenges.CHALLENGE_LIFETIME)
    assert not await answered(late)


async def test_a_second_tab_does_not_undo_the_first(database: Database) -> None:
    first = FakeBrowser()
    async with database.writing() as session:
        await create_challenge(session, first.cookies, "passkey", "one")
    second = FakeBrowser(first.cookie)
    async with database.writing() as session:
        await create_challenge(session, second.cookies, "passkey", "two")

    assert second.cookie == first.cookie
    for key in ("one", "two"):
        async with database.writing() as session:
            found = await consume_challenge(session, FakeBrowser(first.cookie).cookies, "passkey", key)
        assert (found.account_id, found.data) == (None, {})


async def test_a_person_of_another_site_is_one_accounts_and_the_last_way_in_stays(database: Database) -> None:
    ada = UserInfo(ISSUER, "ada", "ada@example.org", "Ada Byron")
    async with database.writing() as session:
        account = await sign_up_with_identity(session, ada, "open", None, "ko")
    other = await store_account(database)
    async with database.writing() as session:
        found = await find_account_by_identity(session, ada)
        assert found is not None
        assert (found.id, found.language) == (account.id, "ko")
        assert await find_account_by_identity(session, UserInfo(ISSUER, "grace", None, None)) is None
        with pytest.raises(EmailAlreadyRegistered):
            await sign_up_with_identity(session, UserInfo(ISSUER, "grace", "ADA@example.org", None), "open", None, "en")
        with pytest.raises(IdentityAlreadyLinked):
            await link_identity(session, other, ada)
        with pytest.raises(ProviderAlreadyLinked):
            await link_identity(session, account, UserInfo(ISSUER, "grace", None, None))
        with pytest.raises(LastAuthMethod):
            await unlink_identity(session, account, ISSUER, [ISSUER])
        await link_identity(session, account, UserInfo("https://other.example.org", "ada", None, None))
        with pytest.raises(LastAuthMethod):
            await unlink_identity(session, account, ISSUER, [ISSUER])  # the other one is no longer set
        await unlink_identity(session, account, ISSUER, [ISSUER, "https://other.example.org"])
        assert (await find_identity(session, account, "https://other.example.org")).subject == "ada"
