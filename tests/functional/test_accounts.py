"""Signing up, in and out with a browser: messages, emails, and what nobody can find out."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable

import httpx
import pytest
from argon2 import PasswordHasher
from fastapi import FastAPI
from sqlalchemy import delete, select, update

from app.accounts.invitations import create_invitation
from app.accounts.models import Account, AuthSession, EmailLink, Passkey, Role
from app.accounts.passwords import AsyncPasswordHasher
from app.accounts.session_cookie import ACCOUNT_COOKIE, SESSION_COOKIE, SIGNED_OUT
from app.db import now
from app.main import create_app
from app.rate_limit import RateLimitCounter
from app.settings import Settings
from tests.factories.accounts import signed_in_browser, store_account
from tests.factories.browser_client import browser_client, press_run
from tests.factories.course import LESSON
from tests.factories.mailbox import Mailbox
from tests.factories.scripted_supervisor import ScriptedSupervisor
from tests.factories.smtp_server import SmtpMailbox, serve_smtp

PASSWORD = "correct horse battery"
ADA = {"name": "Ada Byron", "email": "ada@example.org", "password": PASSWORD, "time_zone": "Europe/London"}


@pytest.fixture
def mailbox(monkeypatch: pytest.MonkeyPatch) -> Mailbox:
    return Mailbox(monkeypatch)


async def until(true: Callable[[], object]) -> None:
    async with asyncio.timeout(10):
        while not true():  # noqa: ASYNC110 - the sender is a task beside us
            await asyncio.sleep(0.01)


async def mailed(mailbox: Mailbox, address: str, count: int = 1) -> str:
    await until(lambda: len(mailbox.to(address)) >= count)
    return mailbox.link(address)


async def sign_up(client: httpx.AsyncClient, mailbox: Mailbox) -> None:
    """Ada creates an account and activates it."""
    assert (await client.post("/en/sign-up", data=ADA)).status_code == 200
    link = await mailed(mailbox, ADA["email"])
    assert (await client.get(link)).status_code == 200
    opened = await client.post(link, data={"password": PASSWORD})
    assert opened.status_code == 303
    assert opened.headers["location"] == "/en/"


async def menu(client: httpx.AsyncClient) -> str:
    return (await client.get("/en/account-menu", headers={"hx-request": "true"})).text


async def runs(client: httpx.AsyncClient) -> int:
    return len((await client.get("/runs", params={"lesson": LESSON})).json()["runs"])


async def test_who_signs_up_opens_the_account_with_the_link_and_the_password(
    app: FastAPI, client: httpx.AsyncClient, mailbox: Mailbox
) -> None:
    assert "Sign in" in await menu(client)
    await sign_up(client, mailbox)

    bar = await menu(client)
    assert "Ada Byron" in bar
    assert "@ada-byron" in bar
    assert "You are signed in." in bar
    assert "You are signed in." not in await menu(client), "it was said twice"
    async with app.state.db.session() as session:
        account = (await session.scalars(select(Account))).one()
    assert account.email_confirmed_at is not None
    assert account.time_zone == "Europe/London"
    assert account.password_hash.startswith("$argon2id$")


async def test_where_no_mail_is_sent_the_page_leads_to_the_operator(client: httpx.AsyncClient) -> None:
    told = await client.post("/en/sign-up", data=ADA)

    assert ">Ask for your link<" in told.text
    assert "Ask the operator of this site for it." in told.text
    assert "mailbox" not in told.text


async def test_the_link_alone_opens_nothing(app: FastAPI, client: httpx.AsyncClient, mailbox: Mailbox) -> None:
    await client.post("/en/sign-up", data=ADA)
    link = await mailed(mailbox, ADA["email"])

    async with browser_client(app) as other:
        assert 'name="password"' in (await other.get(link)).text
        refused = await other.post(link, data={"password": "not that one"})

        assert refused.status_code == 422
        assert "Incorrect password." in refused.text
        assert "Sign in" in await menu(other)


async def test_the_browser_that_signed_up_confirms_without_the_password(
    client: httpx.AsyncClient, mailbox: Mailbox
) -> None:
    await client.post("/en/sign-up", data=ADA)
    link = await mailed(mailbox, ADA["email"])

    assert 'name="password"' not in (await client.get(link)).text
    assert "Sign in" in await menu(client), "opening the link changes nothing"
    assert (await client.post(link)).status_code == 303

    assert "Ada Byron" in await menu(client)
    assert "lockstep_sign_up" not in client.cookies


async def test_nobody_confirms_a_password_that_a_stranger_chose(
    app: FastAPI, client: httpx.AsyncClient, mailbox: Mailbox
) -> None:
    await client.post("/en/sign-up", data=ADA)
    await mailed(mailbox, ADA["email"])
    async with browser_client(app) as stranger:
        await stranger.post("/en/sign-up", data={**ADA, "password": "chosen by a stranger"})
    link = await mailed(mailbox, ADA["email"], count=2)

    assert 'name="password"' in (await client.get(link)).text
    assert (await client.post(link)).status_code == 422

    assert "Sign in" in await menu(client)


async def test_the_password_alone_opens_nothing_until_the_address_is_confirmed(
    client: httpx.AsyncClient, mailbox: Mailbox
) -> None:
    await client.post("/en/sign-up", data=ADA)

    refused = await client.post("/en/sign-in", data=ADA)

    assert refused.status_code == 422
    assert "Incorrect email or password" in refused.text


async def test_signing_out_ends_the_sign_in_on_the_server(
    app: FastAPI, client: httpx.AsyncClient, mailbox: Mailbox
) -> None:
    await sign_up(client, mailbox)
    stolen = client.cookies[SESSION_COOKIE]

    assert (await client.post("/en/sign-out")).status_code == 303

    async with browser_client(app) as thief:
        thief.cookies.set(SESSION_COOKIE, stolen)
        assert "Sign in" in await menu(thief)
    back = await client.post("/en/sign-in", data={**ADA, "next": "/en/courses/small"})
    assert back.headers["location"] == "/en/courses/small"
    assert client.cookies[SESSION_COOKIE] != stolen


async def test_pages_are_told_which_account_is_signed_in_and_when_it_has_left(
    app: FastAPI, client: httpx.AsyncClient, mailbox: Mailbox, supervisor: ScriptedSupervisor
) -> None:
    await press_run(client)
    assert ACCOUNT_COOKIE not in client.cookies, "a visitor has no account"
    await sign_up(client, mailbox)
    marker = client.cookies[ACCOUNT_COOKIE]
    assert f'data-who="{marker}"' in (await client.get("/en/progress", headers={"hx-request": "true"})).text
    async with app.state.db.session() as session:
        account = (await session.scalars(select(Account))).one()
    assert marker not in (account.id, account.learner_id, account.handle)

    left = await client.post("/en/sign-out")

    assert client.cookies[ACCOUNT_COOKIE] == SIGNED_OUT
    assert left.headers["clear-site-data"] == '"cache"'
    cookie = next(each for each in left.headers.get_list("set-cookie") if each.startswith(ACCOUNT_COOKIE))
    assert "HttpOnly" not in cookie
    assert "SameSite=Lax" in cookie


async def test_pages_learn_that_a_sign_in_is_over(app: FastAPI, supervisor: ScriptedSupervisor) -> None:
    async with await signed_in_browser(app) as client:
        await menu(client)
        marker = client.cookies[ACCOUNT_COOKIE]
        async with app.state.db.writing() as session:
            await session.execute(delete(AuthSession))
        await menu(client)
        assert client.cookies[ACCOUNT_COOKIE] == SIGNED_OUT, "it was ended elsewhere"

        client.cookies.clear()
        client.cookies.set(ACCOUNT_COOKIE, marker, domain="test.local")
        await press_run(client)
        await menu(client)
        assert ACCOUNT_COOKIE not in client.cookies, "it expired, and nobody signed out"


async def test_signing_in_gives_a_token_that_the_browser_never_had(
    app: FastAPI, client: httpx.AsyncClient, mailbox: Mailbox
) -> None:
    await sign_up(client, mailbox)
    before = client.cookies[SESSION_COOKIE]

    await client.post("/en/sign-in", data=ADA)

    assert client.cookies[SESSION_COOKIE] != before
    async with app.state.db.session() as session:
        assert len((await session.scalars(select(AuthSession))).all()) == 1


async def test_an_account_keeps_signing_in_with_a_password_from_before_the_rules(
    app: FastAPI, client: httpx.AsyncClient
) -> None:
    account = await store_account(app.state.db, email="ada@example.org")
    async with app.state.db.writing() as session:
        (await session.get_one(Account, account.id)).password_hash = await AsyncPasswordHasher().hash("12345678")

    answer = await client.post("/en/sign-in", data={"email": "ada@example.org", "password": "12345678"})

    assert answer.status_code == 303
    assert "Ada Byron" in await menu(client)


def at_school(app: FastAPI) -> httpx.AsyncClient:
    """A browser with a network address that many people share."""
    transport = httpx.ASGITransport(app, raise_app_exceptions=False, client=("8.8.8.8", 1))
    return httpx.AsyncClient(transport=transport, base_url="http://test", headers={"sec-fetch-site": "same-origin"})


async def test_a_sign_in_that_was_right_counts_for_nobody_else_of_its_address(app: FastAPI, mailbox: Mailbox) -> None:
    async with at_school(app) as pupil:
        await sign_up(pupil, mailbox)
    for password in ("not that one", PASSWORD, PASSWORD, PASSWORD):
        async with at_school(app) as pupil:
            answer = await pupil.post("/en/sign-in", data={**ADA, "password": password})
            assert answer.status_code == (303 if password == PASSWORD else 422)

    async with app.state.db.session() as session:
        of_school = select(RateLimitCounter.key, RateLimitCounter.count).where(
            RateLimitCounter.key.endswith("address 8.8.8.8")
        )
        tries = {key.partition(" ")[0]: count for key, count in await session.execute(of_school)}
    assert tries == {"sign-up": 0, "confirm": 0, "sign-in": 1}, "the one that was wrong"


@pytest.mark.parametrize(
    "next_", ["https://evil.test/", "//evil.test/", "/\\evil.test", "/en/\r\nx: y", "javascript:1"]
)
async def test_a_sign_in_leads_nowhere_else(client: httpx.AsyncClient, mailbox: Mailbox, next_: str) -> None:
    await sign_up(client, mailbox)

    answer = await client.post("/en/sign-in", data={**ADA, "next": next_})

    assert answer.headers["location"] == "/en/"
    form = (await client.get("/en/sign-in", params={"next": next_})).text
    assert '<input type="hidden" name="next" value="">' in form
    led_to = re.findall(r'(?:href|action|value)="([^"?]*)', form)  # the query of this page may follow a ?
    assert not [address for address in led_to if "evil" in address]


async def test_the_page_that_waits_survives_sign_up_also_on_another_device(
    app: FastAPI, client: httpx.AsyncClient, mailbox: Mailbox
) -> None:
    wanted = f"/en/courses/{LESSON}"
    sent = await client.post("/en/sign-up", data={**ADA, "next": wanted})
    assert f'href="/en/sign-in?next={wanted}"' in sent.text
    link = await mailed(mailbox, ADA["email"])
    assert wanted not in mailbox.to(ADA["email"])[0].text

    async with browser_client(app) as phone:
        assert (await phone.post(link, data={"password": "not that one"})).status_code == 422
        opened = await phone.post(link, data={"password": PASSWORD, "next": "/en/progress"})

    assert opened.headers["location"] == wanted
    async with app.state.db.session() as session:
        assert (await session.scalars(select(EmailLink.next_path))).all() == [None]


@pytest.mark.parametrize("next_", ["https://evil.test/", "//evil.test/", "/\\evil.test", "javascript:1"])
async def test_a_confirmation_leads_nowhere_else(client: httpx.AsyncClient, mailbox: Mailbox, next_: str) -> None:
    await client.post("/en/sign-up", data={**ADA, "next": next_})
    link = await mailed(mailbox, ADA["email"])

    opened = await client.post(f"{link}?next={next_}", data={"password": PASSWORD, "next": next_})

    assert opened.headers["location"] == "/en/"


async def test_nothing_tells_whether_an_address_has_an_account(
    app: FastAPI, client: httpx.AsyncClient, mailbox: Mailbox
) -> None:
    await store_account(app.state.db, email="known@example.org")
    for path, form in (
        ("/en/sign-up", {**ADA}),
        ("/en/password-reset", {}),
        ("/en/sign-in", {"password": "whatever it is"}),
    ):
        known = await client.post(path, data={**form, "email": "known@example.org"})
        other = await client.post(path, data={**form, "email": "other@example.org"})
        assert known.status_code == other.status_code
        assert known.text.replace("known@", "other@") == other.text, path
    addresses = ("known@example.org", "other@example.org")
    await until(lambda: all(len(mailbox.to(address)) == 2 for address in addresses))  # the sign-up's, and a new link
    assert "already" in mailbox.to("known@example.org")[0].subject


async def test_a_form_keeps_what_was_typed_and_says_beside_the_field_what_is_wrong(client: httpx.AsyncClient) -> None:
    answer = await client.post("/en/sign-up", data={"name": "Ada & co", "email": "ada", "password": "123456789012"})

    assert answer.status_code == 422
    html = answer.text
    assert 'value="Ada &amp; co"' in html
    assert 'value="ada"' in html
    assert "123456789012" not in html
    assert re.search(r'id="field-email"[^>]*aria-invalid="true"[^>]*aria-describedby="wrong-email', html)
    assert '<p class="wrong" id="wrong-email">Enter a complete email address' in html
    assert "too common" in html


async def test_nobody_signs_up_with_a_name_that_looks_like_the_staffs(client: httpx.AsyncClient) -> None:
    answer = await client.post("/en/sign-up", data={**ADA, "name": "\u0410dmin"})

    assert answer.status_code == 422
    assert 'id="wrong-name">This name could be mistaken for a member of staff' in answer.text


async def test_a_forgotten_password_is_replaced_and_every_other_browser_signed_out(
    app: FastAPI, client: httpx.AsyncClient, stranger: httpx.AsyncClient, mailbox: Mailbox
) -> None:
    await sign_up(client, mailbox)
    await stranger.post("/en/password-reset", data={"email": "ADA@example.org"})
    link = await mailed(mailbox, ADA["email"], 2)

    weak = await stranger.post(link, data={"password": "ada@example.org"})
    assert weak.status_code == 422
    done = await stranger.post(link, data={"password": "another good one"})

    assert done.status_code == 303
    assert "Ada Byron" in await menu(stranger)
    assert "Sign in" in await menu(client), "the other browser is still signed in"
    assert (await client.post("/en/sign-in", data=ADA)).status_code == 422
    await until(lambda: "was changed" in mailbox.to(ADA["email"])[-1].subject)


async def test_a_link_that_no_longer_works_says_so_and_offers_another(
    app: FastAPI, client: httpx.AsyncClient, mailbox: Mailbox
) -> None:
    await client.post("/en/sign-up", data=ADA)
    first = await mailed(mailbox, ADA["email"])
    await client.post("/en/sign-up", data=ADA)
    second = await mailed(mailbox, ADA["email"], 2)
    async with app.state.db.writing() as session:
        await session.execute(update(EmailLink).where(EmailLink.used_at.is_(None)).values(expires_at=now()))
    forged = f"/en/email-link/{'x' * 43}"
    said = {
        first: "was already used, or a newer one",
        second: "has expired",
        forged: "not valid",
        "/en/email-link/x": "not valid",
    }
    for link, sentence in said.items():
        for answer in (await client.get(link), await client.post(link, data={"password": PASSWORD})):
            assert answer.status_code in (404, 410)
            assert sentence in answer.text
            assert 'href="/en/password-reset"' in answer.text
            assert '<a class="button" href="/en/sign-in">Sign in</a>' in answer.text


async def test_whoever_is_signed_in_is_not_offered_to_sign_in_by_a_used_link(
    client: httpx.AsyncClient, mailbox: Mailbox
) -> None:
    await client.post("/en/sign-up", data=ADA)
    link = await mailed(mailbox, ADA["email"])
    assert (await client.post(link, data={"password": PASSWORD})).status_code == 303

    again = await client.get(link)

    assert again.status_code == 410
    assert "You are signed in as Ada Byron" in again.text
    content = again.text.partition("<main")[2].partition("</main>")[0]
    assert "Sign in" not in content
    assert 'href="/en/"' in content


async def test_what_a_visitor_did_is_the_new_accounts_and_the_old_cookie_opens_nothing(
    app: FastAPI, client: httpx.AsyncClient, supervisor: ScriptedSupervisor, mailbox: Mailbox
) -> None:
    run = await press_run(client)
    old = client.cookies["lockstep_visitor"]
    await sign_up(client, mailbox)

    assert await runs(client) == 1
    assert (await client.get(f"/runs/{run['id']}")).status_code == 200
    assert "lockstep_visitor" not in client.cookies
    told = await menu(client)
    assert "is now in your account" in told
    assert "XP counts only what this server has seen" in told
    async with browser_client(app) as thief:
        thief.cookies.set("lockstep_visitor", old)
        assert await runs(thief) == 0
        assert (await thief.get(f"/runs/{run['id']}")).status_code == 404


async def test_two_browsers_move_their_data_and_a_message_says_so(
    app: FastAPI,
    client: httpx.AsyncClient,
    stranger: httpx.AsyncClient,
    supervisor: ScriptedSupervisor,
    mailbox: Mailbox,
) -> None:
    await sign_up(client, mailbox)
    assert "XP counts only what this server has seen" not in await menu(client), "nothing came in"
    await client.post("/en/sign-out")
    for other in (client, stranger):
        await press_run(other)
        await press_run(other, cell="alone")

    answers = await asyncio.gather(*(other.post("/en/sign-in", data=ADA) for other in (client, stranger)))

    assert [answer.status_code for answer in answers] == [303, 303]
    async with app.state.db.session() as session:
        account = (await session.scalars(select(Account))).one()
    for other in (client, stranger):
        told = await menu(other)
        assert "Imported from this browser: 2 runs." in told
        assert "XP counts only what this server has seen" in told
        assert await runs(other) == 4
    assert account.handle == "ada-byron"


@pytest.mark.usefixtures("rate_limit_clock")
async def test_guessing_is_slowed_down_and_told_how_long(app: FastAPI, mailbox: Mailbox) -> None:
    async with browser_client(app) as client:
        answers = [await client.post("/en/sign-in", data={**ADA, "password": f"guess {n}"}) for n in range(7)]

    assert [answer.status_code for answer in answers] == [422] * 5 + [429] * 2
    assert re.search(r"Too many attempts. Wait \d seconds?, then", answers[-1].text)
    assert 'value="ada@example.org"' in answers[-1].text


@pytest.mark.usefixtures("rate_limit_clock")
async def test_whoever_guesses_keeps_no_browser_out_that_has_signed_in_before(app: FastAPI, mailbox: Mailbox) -> None:
    async with at_school(app) as ada, at_school(app) as eve:
        await sign_up(ada, mailbox)
        await ada.post("/en/sign-out")
        guesses = [await eve.post("/en/sign-in", data={**ADA, "password": f"guess {n}"}) for n in range(7)]
        for n in range(45):
            await eve.post("/en/sign-in", data={"email": f"nobody{n}@example.org", "password": "x"})

        assert guesses[-1].status_code == 429
        assert (await ada.post("/en/sign-in", data=ADA)).status_code == 303
        assert (await eve.post("/en/sign-in", data=ADA)).status_code == 429, "her tries were forgotten with Ada's"
        await ada.post("/en/sign-out")
        own = [await ada.post("/en/sign-in", data={**ADA, "password": f"slip {n}"}) for n in range(7)]
        assert [answer.status_code for answer in own] == [422] * 5 + [429] * 2, "a browser that was lent guesses too"


@pytest.mark.usefixtures("rate_limit_clock")
async def test_a_browser_is_known_for_accounts_that_it_has_opened_and_for_no_other(
    app: FastAPI, client: httpx.AsyncClient, stranger: httpx.AsyncClient, mailbox: Mailbox
) -> None:
    await sign_up(client, mailbox)
    device = client.cookies["lockstep_device"]
    name, mark = device.split(".")
    assert not re.search("ada@|example", device), "its random letters may be ada"
    stranger.cookies.set("lockstep_device", f"{name}.{mark[:-1]}{'A' if mark[-1] != 'A' else 'B'}")
    for guess in range(5):
        await stranger.post("/en/sign-in", data={**ADA, "password": f"guess {guess}"})
    assert (await stranger.post("/en/sign-in", data=ADA)).status_code == 429, "a mark that was made up"
    bob = {"email": "bob@example.org", "password": "whatever it is"}
    assert [(await client.post("/en/sign-in", data=bob)).status_code for _ in range(6)] == [422] * 5 + [429]
    assert (await stranger.post("/en/sign-in", data=bob)).status_code == 429, "counted with all others"


@pytest.mark.usefixtures("rate_limit_clock")
async def test_a_class_behind_one_address_asks_for_new_passwords_and_nobody_gets_too_many(app: FastAPI) -> None:
    async with at_school(app) as pupil:
        for _ in range(2):
            for number in range(30):
                answer = await pupil.post("/en/password-reset", data={"email": f"pupil{number}@example.org"})
                assert answer.status_code == 200
        third, fourth = [await pupil.post("/en/password-reset", data={"email": "PUPIL7@example.org"}) for _ in range(2)]

    assert third.status_code == 200
    assert fourth.status_code == 429
    assert "Too many attempts. Wait 60 minutes" in fourth.text


async def test_a_new_password_shows_what_else_opens_the_account(
    app: FastAPI, client: httpx.AsyncClient, mailbox: Mailbox
) -> None:
    await sign_up(client, mailbox)
    async with app.state.db.writing() as session:
        account = (await session.scalars(select(Account))).one()
        key = {"public_key": b"k", "sign_count": 0, "created_at": now()}
        session.add(Passkey(id="a-key", account_id=account.id, name="Eve's phone", **key))
    await client.post("/en/password-reset", data={"email": ADA["email"]})
    link = await mailed(mailbox, ADA["email"], 2)

    done = await client.post(link, data={"password": "another good one"})

    page = (await client.get(done.headers["location"])).text
    assert "Your password was changed. Every other browser was signed out." in page
    assert '<a href="/en/settings/security/passkeys/a-key">Eve&#39;s phone</a>' in page
    assert "How you can still sign in" not in (await client.get("/en/settings/security")).text
    await until(lambda: "was changed" in mailbox.to(ADA["email"])[-1].subject)
    told = mailbox.to(ADA["email"])[-1].text
    assert "Eve's phone" in told
    assert "/en/settings/security\n" in told


@pytest.mark.usefixtures("rate_limit_clock")
async def test_guessing_keeps_nobody_from_opening_an_account_or_changing_the_password(
    client: httpx.AsyncClient, stranger: httpx.AsyncClient, mailbox: Mailbox
) -> None:
    await client.post("/en/sign-up", data=ADA)
    link = await mailed(mailbox, ADA["email"])
    guesses = [await stranger.post("/en/sign-in", data={**ADA, "password": f"guess {n}"}) for n in range(7)]
    assert guesses[-1].status_code == 429

    assert (await client.post(link, data={"password": PASSWORD})).status_code == 303
    await stranger.post("/en/sign-in", data={**ADA, "password": "another guess"})
    change = {"password": PASSWORD, "new_password": "another battery staple"}
    assert (await client.post("/en/settings/security/password", data=change)).status_code == 303


async def test_an_address_in_other_letters_signs_in_as_it_signed_up(
    client: httpx.AsyncClient, mailbox: Mailbox
) -> None:
    ada = {**ADA, "email": "ada@b\u00fccher.example"}
    await client.post("/en/sign-up", data=ada)
    link = await mailed(mailbox, "ada@xn--bcher-kva.example")
    await client.post(link, data={"password": PASSWORD})
    await client.post("/en/sign-out")
    for email in (ada["email"], "ADA@xn--bcher-kva.example"):
        answer = await client.post("/en/sign-in", data={"email": email, "password": PASSWORD})
        assert answer.status_code == 303


async def test_a_mail_to_a_stranger_says_nothing_that_somebody_typed(
    client: httpx.AsyncClient, mailbox: Mailbox
) -> None:
    await client.post("/en/sign-up", data={**ADA, "name": "You won! evil.example/prize"})
    await mailed(mailbox, ADA["email"])
    (mail,) = mailbox.to(ADA["email"])
    assert "evil.example" not in mail.subject + mail.text + mail.html


async def test_a_hash_of_yesterdays_parameters_is_replaced_at_the_next_sign_in(
    app: FastAPI, client: httpx.AsyncClient, mailbox: Mailbox
) -> None:
    await sign_up(client, mailbox)
    old = PasswordHasher(time_cost=1, memory_cost=8192).hash(PASSWORD)
    async with app.state.db.writing() as session:
        await session.execute(update(Account).values(password_hash=old))

    assert (await client.post("/en/sign-in", data=ADA)).status_code == 303

    async with app.state.db.session() as session:
        stored = (await session.scalars(select(Account.password_hash))).one()
    assert stored != old
    assert not app.state.password_hasher.needs_rehash(stored)
    assert (await client.post("/en/sign-in", data=ADA)).status_code == 303


async def test_who_is_shut_out_while_their_password_is_looked_at_stays_out(
    app: FastAPI, client: httpx.AsyncClient, mailbox: Mailbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    await sign_up(client, mailbox)
    verify = app.state.password_hasher.verify

    async def shut_meanwhile(stored: str, password: str) -> bool:
        async with app.state.db.writing() as session:
            await session.execute(update(Account).values(disabled_at=now()))
        return bool(await verify(stored, password))

    monkeypatch.setattr(app.state.password_hasher, "verify", shut_meanwhile)
    answer = await client.post("/en/sign-in", data=ADA)

    assert answer.status_code == 403
    assert "closed this account" in answer.text
    async with app.state.db.session() as session:
        assert (await session.scalars(select(Account.disabled_at))).one() is not None


async def test_the_bar_leads_back_to_where_one_is_but_not_to_pages_about_signing_in(client: httpx.AsyncClient) -> None:
    for path, back in (("/en/courses/small", "?next=/en/courses/small"), ("/en/sign-in?next=/en/", ""), ("//x", "")):
        bar = await client.get("/en/account-menu", headers={"hx-current-url": f"http://test{path}"})
        assert f'href="/en/sign-in{back}"' in bar.text
    assert (await client.get("/en/account-menu", headers={"hx-current-url": "http://["})).status_code == 200


async def test_a_disabled_account_is_shut_at_once(app: FastAPI) -> None:
    account = await store_account(app.state.db)
    async with await signed_in_browser(app, account) as client:
        assert account.name in await menu(client)
        async with app.state.db.writing() as session:
            await session.execute(update(Account).values(disabled_at=now()))
        assert "Sign in" in await menu(client)


@pytest.fixture(params=["invitation", "closed"])
async def shut(request: pytest.FixtureRequest, settings: Settings) -> AsyncIterator[FastAPI]:
    app = create_app(settings.model_copy(update={"sign_up": request.param}))
    async with app.router.lifespan_context(app):
        yield app


async def test_where_sign_up_is_not_open_a_stranger_is_told_and_gets_none(shut: FastAPI, mailbox: Mailbox) -> None:
    async with browser_client(shut) as client:
        assert (await client.get("/en/sign-up")).status_code == 403
        assert (await client.post("/en/sign-up", data=ADA)).status_code == 403
        assert "/en/sign-up" not in (await client.get("/en/sign-in")).text
        assert (await client.get("/en/sign-up", params={"invitation": "x" * 43})).status_code == 403
    async with shut.state.db.session() as session:
        assert (await session.scalars(select(Account))).all() == []


@pytest.mark.parametrize("shut", ["invitation"], indirect=True)
async def test_an_invitation_opens_the_account_of_its_address_at_once_and_only_once(
    shut: FastAPI, mailbox: Mailbox
) -> None:
    async with shut.state.db.writing() as session:
        token = await create_invitation(session, ADA["email"], Role.instructor)
    async with browser_client(shut) as client, browser_client(shut) as second:
        page = await client.get("/en/sign-up", params={"invitation": token})
        assert f'value="{ADA["email"]}"' in page.text
        other = await client.post("/en/sign-up", data={**ADA, "invitation": token, "email": "eve@example.org"})
        assert "This invitation is for another address. Sign up with the address that it was sent to." in other.text

        assert (await client.post("/en/sign-up", data={**ADA, "invitation": token})).status_code == 303

        assert "Ada Byron" in await menu(client)
        again = await second.post("/en/sign-up", data={**ADA, "invitation": token})
        assert again.status_code == 403
        assert "was already used" in again.text
        assert '<a href="/en/sign-in">I already have an account</a>' in again.text, "the next step"
        assert "Sign in" in await menu(second)
    async with shut.state.db.session() as session:
        assert (await session.scalars(select(Account.role))).all() == [Role.instructor]
    assert mailbox.mails == []


@pytest.mark.parametrize("shut", ["invitation"], indirect=True)
async def test_an_invitation_that_two_tabs_use_at_once_makes_one_account(
    shut: FastAPI,
) -> None:
    async with shut.state.db.writing() as session:
        token = await create_invitation(session, ADA["email"], Role.learner)
    async with browser_client(shut) as client, browser_client(shut) as second:
        sent = [one.post("/en/sign-up", data={**ADA, "invitation": token}) for one in (client, second)]
        answers = sorted(await asyncio.gather(*sent), key=lambda answer: answer.status_code)

    assert [answer.status_code for answer in answers] == [303, 403]
    assert '<a href="/en/sign-in">I already have an account</a>' in answers[1].text
    async with shut.state.db.session() as session:
        assert len((await session.scalars(select(Account))).all()) == 1


@pytest.mark.parametrize(
    ("lang", "subject"),
    [("en", "Confirm your email"), ("ko", "이메일 확인"), ("zh", "确认你的电子邮箱")],
)
async def test_a_real_mail_server_brings_the_link_in_the_language_of_the_page(
    settings: Settings, lang: str, subject: str
) -> None:
    postbox = SmtpMailbox()
    with serve_smtp(postbox) as address:
        mail = {"smtp_url": f"smtp://{address}?tls=off", "mail_from": "Lockstep <learn@example.org>"}
        app = create_app(settings.model_copy(update={**mail, "public_url": "https://learn.example.org"}))
        async with app.router.lifespan_context(app), browser_client(app) as client:
            client.headers["host"] = "learn.example.org"
            told = await client.post(f"/{lang}/sign-up", data=ADA)
            assert "LOCKSTEP" not in told.text
            assert "Ask for your link" not in told.text
            await until(lambda: postbox.mails)
    (mailed_,) = postbox.mails
    assert mailed_["subject"] == subject
    for kind in ("plain", "html"):
        body = mailed_.get_body((kind,))
        assert body is not None
        assert re.search(rf"https://learn\.example\.org/{lang}/email-link/[A-Za-z0-9_-]{{43}}\b", body.get_content())
        if kind == "plain":
            assert f"{subject}{'：' if lang == 'zh' else ':'}\nhttps://" in body.get_content().replace("\r", "")
