"""The second step of a sign-in, and staff who need one: over HTTP, with codes that a real app would show."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Iterator
from datetime import datetime, timedelta
from itertools import islice

import httpx
import pyotp
import pytest
from fastapi import FastAPI
from sqlalchemy import delete, func, select, update

from app.accounts import second_factor
from app.accounts.models import (
    Account,
    AuthChallenge,
    Authenticator,
    AuthSession,
    EmailLink,
    Passkey,
    RecoveryCode,
    Role,
)
from app.accounts.session_cookie import ACCOUNT_COOKIE, SIGNED_OUT
from app.db import Database, now
from app.main import create_app
from app.settings import Settings
from tests.factories.accounts import signed_in_browser, store_account
from tests.factories.authenticator_app import AUTHENTICATOR_URL as APP
from tests.factories.authenticator_app import set_up_authenticator
from tests.factories.browser_client import browser_client
from tests.factories.course import LESSON
from tests.factories.databases import mainly_on
from tests.factories.mailbox import Mailbox

PASSWORD = "correct horse battery"
TEA = {"email": "tea@example.org", "password": PASSWORD}
INBOX, HTML = "/en/feedback/inbox", {"accept": "text/html"}
pytestmark = mainly_on("postgresql")


class Clock:
    """The time that codes depend on."""

    def __init__(self) -> None:
        self.now = now()

    def __call__(self) -> datetime:
        return self.now

    def next_code(self, secret: str, *, wrong_for: str = "") -> str:
        """The code that an app shows after the current one, or the first later one that is wrong for another app."""
        while True:
            self.now += timedelta(seconds=second_factor.STEP_S)
            code = pyotp.TOTP(secret).at(self.now)
            if not wrong_for or self._is_wrong(wrong_for, code):
                return code

    def wrong_codes(self, secret: str) -> Iterator[str]:
        """Codes that are wrong for the app now: each of three is right, and they may be any."""
        return (code for number in range(10**6) if self._is_wrong(secret, code := f"{number:06}"))

    def _is_wrong(self, secret: str, code: str) -> bool:
        return second_factor.matching_step(secret, code, self.now.timestamp()) is None


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(second_factor, "now", clock)
    return clock


@pytest.fixture
def settings(settings: Settings, database: Database) -> Settings:
    """On PostgreSQL, and in the long tests on SQLite: what completes a change waits for the lock of the account."""
    url = database.engine.url.render_as_string(hide_password=False)
    return settings.model_copy(update={"staff_second_factor": True, "database_url": url})


@pytest.fixture
def mailbox(monkeypatch: pytest.MonkeyPatch) -> Mailbox:
    return Mailbox(monkeypatch)


@pytest.fixture
async def teacher(app: FastAPI) -> Account:
    account = await store_account(app.state.db, Role.instructor, name="Tea Cher", email=TEA["email"])
    async with app.state.db.writing() as session:
        mine: Account = await session.get_one(Account, account.id)
        mine.password_hash = await app.state.password_hasher.hash(PASSWORD)
    return mine


@pytest.fixture
async def tea(app: FastAPI, teacher: Account) -> AsyncIterator[httpx.AsyncClient]:
    async with browser_client(app) as client:
        await client.post("/en/sign-in", data=TEA)
        yield client


async def mailed(mailbox: Mailbox, count: int) -> str:
    """The link in the latest email, once there are that many."""
    async with asyncio.timeout(10):
        while len(mailbox.to(TEA["email"])) < count:  # noqa: ASYNC110 - the sender is a task beside us
            await asyncio.sleep(0.01)
    return mailbox.link(TEA["email"])


async def set_up(client: httpx.AsyncClient, clock: Clock) -> tuple[str, list[str]]:
    """Set up an app. Returns its secret and the recovery codes."""
    secret, _key, codes = await set_up_authenticator(client, PASSWORD, clock.next_code)
    assert len(codes) == second_factor.RECOVERY_CODES
    return secret, codes


async def test_staff_without_a_second_factor_are_learners_and_led_to_it(
    app: FastAPI, teacher: Account, tea: httpx.AsyncClient, clock: Clock
) -> None:
    async with browser_client(app) as other:
        assert (await other.post("/en/sign-in", data=TEA)).headers["location"] == APP
    led = await tea.get(INBOX, headers=HTML)
    assert (led.status_code, APP in led.headers["location"]) == (303, True)
    assert (await tea.get(INBOX)).status_code == 403
    unmarked = await tea.post(f"/en/courses/{LESSON}/comments", data={"text": "Send me your passwords"})
    assert (unmarked.status_code, "Your account needs a passkey" in unmarked.text) == (422, True)
    assert INBOX not in (await tea.get("/en/account-menu")).text
    assert "Your account needs a second step" in (await tea.get(APP)).text

    await set_up(tea, clock)

    assert (await tea.get(INBOX)).status_code == 200
    assert (await tea.post(f"/en/courses/{LESSON}/comments", data={"text": "Welcome"})).is_redirect
    assert INBOX in (await tea.get("/en/account-menu")).text
    async with app.state.db.session() as session:
        assert (await session.get_one(Account, teacher.id)).role == Role.instructor


async def test_a_learner_needs_no_second_factor_and_nobody_does_by_default(app: FastAPI, settings: Settings) -> None:
    async with await signed_in_browser(app, Role.learner) as learner:
        assert (await learner.get("/en/settings/security")).status_code == 200
    plain = create_app(settings.model_copy(update={"staff_second_factor": False}))
    async with plain.router.lifespan_context(plain), await signed_in_browser(plain, Role.admin) as admin:
        assert (await admin.get(INBOX)).status_code == 200


async def test_a_sign_in_by_passkey_is_enough_and_a_stolen_password_cannot_replace_it(
    app: FastAPI, teacher: Account, tea: httpx.AsyncClient
) -> None:
    key = Passkey(id="key", account_id=teacher.id, name="Key", public_key=b"", sign_count=0, created_at=now())
    async with app.state.db.writing() as session:
        session.add(key)
    security = "/en/settings/security"
    for path in (APP, f"{security}/passkeys/key/remove", f"{security}/password", f"{security}/passkeys/options"):
        form = {"password": PASSWORD, "passkey_password": PASSWORD, "passkey_name": "Mine", "new_password": PASSWORD}
        refused = await tea.post(path, data=form)
        assert (refused.status_code, "Sign in with your passkey first" in refused.text) == (422, True), path
    async with app.state.db.writing() as session:
        await session.execute(update(AuthSession).values(method="passkey"))

    assert (await tea.get(INBOX)).status_code == 200
    assert (await tea.post(APP, data={"password": PASSWORD})).status_code == 200


async def test_a_browser_is_no_longer_staffs_once_its_last_passkey_is_removed(
    app: FastAPI, teacher: Account, tea: httpx.AsyncClient, clock: Clock
) -> None:
    about = {"account_id": teacher.id, "name": "Key", "public_key": b"", "sign_count": 0, "created_at": now()}
    async with app.state.db.writing() as session:
        session.add_all(Passkey(id=each, **about) for each in ("one", "two"))
        await session.execute(update(AuthSession).values(method="passkey"))
    form = {"name": "Reports", "groups:read": "on", "lifetime": "7", "password": PASSWORD}
    made = await tea.post("/en/settings/tokens", data=form)
    token = re.search(r"lockstep_[\w-]{43}", made.text)
    assert token, made.text
    program = {"authorization": f"Bearer {token[0]}"}
    for left, expected in (("two", 200), ("one", 403)):
        assert (
            await tea.post(f"/en/settings/security/passkeys/{left}/remove", data={"password": PASSWORD})
        ).is_redirect
        assert (await tea.get(INBOX)).status_code == expected
        async with browser_client(app) as other:
            assert (await other.get("/api/v1/groups", headers=program)).status_code == expected

    await set_up(tea, clock)

    assert (await tea.get(INBOX)).status_code == 200


async def test_a_password_alone_signs_nobody_in_and_a_code_works_once(
    app: FastAPI, tea: httpx.AsyncClient, clock: Clock
) -> None:
    secret, _codes = await set_up(tea, clock)
    async with browser_client(app) as first, browser_client(app) as second:
        for client in (first, second):
            asked = await client.post("/en/sign-in", data={**TEA, "next": INBOX})
            assert asked.headers["location"] == "/en/sign-in/code?next=%2Fen%2Ffeedback%2Finbox"
            assert "one-time-code" in (await client.get(asked.headers["location"])).text
            assert (await client.get("/en/settings/security", headers=HTML)).status_code == 303
            assert "Tea Cher" not in (await client.get("/en/account-menu")).text
            assert client.cookies.get(ACCOUNT_COOKIE) != SIGNED_OUT, "which would delete the visitor's edits"
        code = clock.next_code(secret)
        wrong = next(clock.wrong_codes(secret))
        assert (await first.post("/en/sign-in/code", data={"code": wrong})).status_code == 422
        done = await first.post("/en/sign-in/code", data={"code": code, "next": INBOX})
        again = await second.post("/en/sign-in/code", data={"code": code})

        assert (done.status_code, done.headers["location"]) == (303, INBOX)
        assert (await first.get(INBOX)).status_code == 200
        assert (again.status_code, "already used" in again.text) == (422, True)
        assert (await second.get(INBOX)).status_code == 401


async def test_a_recovery_code_works_once_and_is_stored_as_a_hash(
    app: FastAPI, tea: httpx.AsyncClient, clock: Clock
) -> None:
    _secret, codes = await set_up(tea, clock)
    async with app.state.db.session() as session:
        stored = list(await session.scalars(select(RecoveryCode.code_hash)))
    assert len(stored) == len(codes)
    assert all(5 * len(code.replace("-", "")) >= 112 for code in codes), "in bits: fewer need a slow hash"
    assert not any(code.replace("-", "") in " ".join(stored) for code in codes)
    for status in (303, 422):
        async with browser_client(app) as client:
            await client.post("/en/sign-in", data=TEA)
            answer = await client.post("/en/sign-in/code", data={"code": codes[0].upper().replace("-", " ")})
            assert answer.status_code == status


@pytest.mark.usefixtures("rate_limit_clock")
async def test_guessing_codes_gets_slower(app: FastAPI, tea: httpx.AsyncClient, clock: Clock) -> None:
    secret, _codes = await set_up(tea, clock)
    async with browser_client(app) as eve:
        await eve.post("/en/sign-in", data=TEA)
        wrong = islice(clock.wrong_codes(secret), 7)
        guesses = [await eve.post("/en/sign-in/code", data={"code": code}) for code in wrong]
        right = await eve.post("/en/sign-in/code", data={"code": clock.next_code(secret)})
    assert [guess.status_code for guess in guesses] == [422] * 5 + [429] * 2
    assert right.status_code == 429


async def test_a_reset_by_email_still_asks_for_a_code(
    app: FastAPI, tea: httpx.AsyncClient, clock: Clock, mailbox: Mailbox
) -> None:
    await set_up(tea, clock)
    async with browser_client(app) as stranger:
        await stranger.post("/en/password-reset", data={"email": TEA["email"]})
        link = await mailed(mailbox, 2)
        done = await stranger.post(link, data={"password": "another good one"})
        assert done.headers["location"].startswith("/en/sign-in/code")
        assert (await stranger.get(INBOX)).status_code == 401


async def test_replacing_and_removing_need_the_password_and_a_fresh_sign_in(
    app: FastAPI, tea: httpx.AsyncClient, clock: Clock, mailbox: Mailbox
) -> None:
    secret, codes = await set_up(tea, clock)
    remove = f"{APP}/remove"
    assert (await tea.post(APP, data={"password": "wrong"})).status_code == 422
    assert (await tea.post(remove, data={"remove_password": "wrong"})).status_code == 422
    new_secret, _codes = await set_up(tea, clock)
    async with browser_client(app) as client:
        await client.post("/en/sign-in", data=TEA)
        for old in (clock.next_code(secret, wrong_for=new_secret), codes[0]):
            assert (await client.post("/en/sign-in/code", data={"code": old})).status_code == 422
        done = await client.post("/en/sign-in/code", data={"code": pyotp.TOTP(new_secret).at(clock.now)})
        assert done.status_code == 303
    async with app.state.db.writing() as session:
        await session.execute(update(AuthSession).values(created_at=now() - timedelta(minutes=11)))
    for path, field in ((APP, "password"), (remove, "remove_password")):
        stale = await tea.post(path, data={field: PASSWORD})
        assert (stale.status_code, "You signed in a while ago" in stale.text) == (422, True)
    async with app.state.db.writing() as session:
        await session.execute(update(AuthSession).values(created_at=now()))

    assert (await tea.post(remove, data={"remove_password": PASSWORD})).status_code == 303

    assert (await tea.get(INBOX)).status_code == 403
    async with app.state.db.session() as session:
        assert list(await session.scalars(select(RecoveryCode))) == []
    await mailed(mailbox, 3)
    assert {mail.subject for mail in mailbox.to(TEA["email"])} == {
        "The authenticator app of your Lockstep account changed"
    }


async def test_a_browser_signed_in_before_the_app_was_set_up_cannot_remove_it(
    app: FastAPI, tea: httpx.AsyncClient, clock: Clock
) -> None:
    security = "/en/settings/security"
    form = {"password": PASSWORD, "remove_password": PASSWORD, "passkey_password": PASSWORD, "passkey_name": "Mine"}
    async with browser_client(app) as eve:
        await eve.post("/en/sign-in", data=TEA)
        await set_up(tea, clock)
        for path in (APP, f"{APP}/remove", f"{security}/password", f"{security}/passkeys/options"):
            refused = await eve.post(path, data={**form, "new_password": PASSWORD})
            assert (refused.status_code, "You signed in a while ago" in refused.text) == (422, True), path
    assert (await tea.post(f"{APP}/remove", data=form)).status_code == 303


async def begin(client: httpx.AsyncClient) -> tuple[str, str]:
    """Begin to set up an app. Returns its secret and the key of the form."""
    page = (await client.post(APP, data={"password": PASSWORD})).text
    secret = "".join(re.findall(r'class="totp-key">([A-Z2-7 ]+)<', page)[0].split())
    return secret, key_in(page)


def key_in(page: str) -> str:
    return str(re.findall(r'name="key" value="([\w-]+)"', page)[0])


async def test_a_set_up_that_a_thief_began_earlier_does_not_replace_the_owners_app(
    app: FastAPI, tea: httpx.AsyncClient, clock: Clock
) -> None:
    async with browser_client(app) as eve:
        await eve.post("/en/sign-in", data=TEA)
        stolen, key = await begin(eve)
        secret, _codes = await set_up(tea, clock)

        refused = await eve.post(f"{APP}/confirm", data={"key": key, "code": clock.next_code(stolen)})

        assert (refused.status_code, "<li><code>" in refused.text) == (410, False)
        await eve.post("/en/sign-in", data=TEA)
        wrong = clock.next_code(stolen, wrong_for=secret)
        assert (await eve.post("/en/sign-in/code", data={"code": wrong})).status_code == 422
        assert (await eve.post("/en/sign-in/code", data={"code": clock.next_code(secret)})).status_code == 303


async def test_a_weak_session_confirms_nothing_even_with_a_set_up_that_is_open(
    app: FastAPI, teacher: Account, tea: httpx.AsyncClient, clock: Clock
) -> None:
    secret, key = await begin(tea)
    await another_app(app, teacher)

    refused = await tea.post(f"{APP}/confirm", data={"key": key, "code": clock.next_code(secret)})

    assert (refused.status_code, "You signed in a while ago" in refused.text) == (403, True)
    async with app.state.db.session() as session:
        assert (await session.get_one(Authenticator, teacher.id)).secret == "S" * 32


async def test_the_owner_ends_the_browser_of_a_thief_who_was_first_to_add_an_app(
    app: FastAPI, tea: httpx.AsyncClient, clock: Clock
) -> None:
    async with browser_client(app) as eve:
        await eve.post("/en/sign-in", data=TEA)
        await set_up(eve, clock)

        ended = await tea.post(
            "/en/settings/security/sessions", data={"which": "others", "sign_ins_password": PASSWORD}
        )

        assert ended.status_code == 303
        assert (await eve.get("/en/settings")).status_code != 200


async def test_whoever_adds_an_app_is_led_to_the_browsers_that_go_on_without_a_code(
    app: FastAPI, tea: httpx.AsyncClient, clock: Clock
) -> None:
    secret, key = await begin(tea)
    alone = await tea.post(f"{APP}/confirm", data={"key": key, "code": clock.next_code(secret)})
    async with browser_client(app) as other:
        await other.post("/en/sign-in", data=TEA)
        await other.post("/en/sign-in/code", data={"code": clock.next_code(secret)})
        secret, key = await begin(tea)
        beside = await tea.post(f"{APP}/confirm", data={"key": key, "code": clock.next_code(secret)})

    led_to = "/en/settings/security#sign-ins-title"
    assert (alone.status_code, led_to in alone.text) == (200, False)
    assert (beside.status_code, led_to in beside.text) == (200, True)


async def another_app(app: FastAPI, account: Account) -> None:
    """The app of a set-up that ends while another change is under way: the change stays open."""
    async with app.state.db.writing() as session:
        session.add(Authenticator(account_id=account.id, secret="S" * 32, last_step=0, created_at=now()))


@pytest.mark.parametrize("meanwhile", ["a second factor", "signed out"])
@pytest.mark.parametrize("change", ["new password", "remove"])
async def test_a_change_is_checked_again_when_it_is_made(
    app: FastAPI, teacher: Account, tea: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch, change: str, meanwhile: str
) -> None:
    hasher = app.state.password_hasher
    slow = "hash" if change == "new password" else "verify"
    work = getattr(hasher, slow)

    async def interrupted(*values: str) -> object:
        done = await work(*values)
        if meanwhile == "signed out":
            async with app.state.db.writing() as session:
                await session.execute(delete(AuthSession))
        else:
            await another_app(app, teacher)
        return done

    monkeypatch.setattr(hasher, slow, interrupted)
    form = {"password": PASSWORD, "remove_password": PASSWORD, "new_password": "another good lamp 7"}

    path = "/en/settings/security/password" if change == "new password" else f"{APP}/remove"
    refused = await tea.post(path, data=form)

    assert refused.status_code == (401 if meanwhile == "signed out" else 403)
    if meanwhile != "signed out":
        assert f'action="{path}"' in refused.text, "the form again"
        assert "You signed in a while ago" in refused.text
    async with app.state.db.session() as session:
        mine = await session.get_one(Account, teacher.id)
        assert await session.scalar(select(func.count()).select_from(Authenticator)) == (meanwhile != "signed out")
    assert mine.password_hash == teacher.password_hash


@pytest.mark.parametrize("how", ["settings", "link"])
async def test_a_new_password_ends_a_set_up_that_was_begun_before(
    tea: httpx.AsyncClient, clock: Clock, mailbox: Mailbox, how: str
) -> None:
    secret, key = await begin(tea)
    new = "another good lamp 7"
    if how == "settings":
        changed = await tea.post("/en/settings/security/password", data={"password": PASSWORD, "new_password": new})
    else:
        await tea.post("/en/password-reset", data={"email": TEA["email"]})
        changed = await tea.post(await mailed(mailbox, 1), data={"password": new})
    assert changed.status_code == 303

    refused = await tea.post(f"{APP}/confirm", data={"key": key, "code": clock.next_code(secret)})

    assert refused.status_code == 410


async def test_a_new_password_does_not_make_an_old_sign_in_recent(
    app: FastAPI, tea: httpx.AsyncClient, clock: Clock
) -> None:
    await set_up(tea, clock)
    signed_in_at = now() - timedelta(minutes=11)
    async with app.state.db.writing() as session:
        await session.execute(update(AuthSession).values(created_at=signed_in_at))
    new = "another good lamp 7"

    changed = await tea.post("/en/settings/security/password", data={"password": PASSWORD, "new_password": new})

    assert changed.status_code == 303
    for path, field in ((APP, "password"), (f"{APP}/remove", "remove_password")):
        stale = await tea.post(path, data={field: new})
        assert (stale.status_code, "You signed in a while ago" in stale.text) == (422, True)
    async with app.state.db.session() as session:
        assert await session.scalar(select(AuthSession.created_at)) == signed_in_at


async def test_a_wrong_code_does_not_extend_the_time_for_setting_up(
    app: FastAPI, tea: httpx.AsyncClient, clock: Clock
) -> None:
    secret, key = await begin(tea)
    async with app.state.db.session() as session:
        before = await session.scalar(select(AuthChallenge.expires_at))

    wrong = await tea.post(f"{APP}/confirm", data={"key": key, "code": next(clock.wrong_codes(secret))})

    assert wrong.status_code == 422
    async with app.state.db.session() as session:
        assert await session.scalar(select(AuthChallenge.expires_at)) == before
    right = {"key": key_in(wrong.text), "code": clock.next_code(secret)}
    assert (await tea.post(f"{APP}/confirm", data=right)).status_code == 200


async def test_an_address_that_a_thief_asked_for_is_not_set_after_the_owner_has_an_app(
    app: FastAPI, teacher: Account, tea: httpx.AsyncClient, clock: Clock, mailbox: Mailbox
) -> None:
    async with browser_client(app) as eve:
        await eve.post("/en/sign-in", data=TEA)
        for address in ("eve@example.net", "eve2@example.net"):
            await eve.post("/en/settings/security/email", data={"email": address, "email_password": PASSWORD})
            async with asyncio.timeout(10):
                while not mailbox.to(address):  # noqa: ASYNC110 - the sender is a task beside us
                    await asyncio.sleep(0.01)
        link = mailbox.link("eve2@example.net")
        await set_up(tea, clock)
        revoked = await eve.post(link)
        async with app.state.db.writing() as session:
            await session.execute(update(EmailLink).values(used_at=None))
        weak = await eve.post(link)
        assert (revoked.status_code, weak.status_code) == (410, 403)
        assert "You signed in a while ago" in weak.text
    async with app.state.db.session() as session:
        assert (await session.get_one(Account, teacher.id)).email == TEA["email"]


async def test_a_secret_is_bound_to_the_account_and_the_browser_that_asked(
    app: FastAPI, tea: httpx.AsyncClient, clock: Clock
) -> None:
    page = (await tea.post(APP, data={"password": PASSWORD})).text
    secret = "".join(re.findall(r'class="totp-key">([A-Z2-7 ]+)<', page)[0].split())
    key = re.findall(r'name="key" value="([\w-]+)"', page)[0]
    form = {"key": key, "code": clock.next_code(secret)}
    async with await signed_in_browser(app, Role.admin) as other:
        assert (await other.post(f"{APP}/confirm", data=form)).status_code == 410
    assert (await tea.post(f"{APP}/confirm", data=form)).status_code == 200
