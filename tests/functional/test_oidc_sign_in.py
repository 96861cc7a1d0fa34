"""Signing in with another site: an issuer on loopback, honest or not."""

from __future__ import annotations

import re
import time
from collections.abc import AsyncIterator, Callable
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
import pyotp
import pytest
from fastapi import FastAPI
from joserfc import jwt
from joserfc.jwk import OctKey, RSAKey
from pydantic import SecretStr
from sqlalchemy import select, update

from app.accounts import identity_providers
from app.accounts.identity_providers import AuthorizationRequest, InvalidProviderResponse, OidcProvider
from app.accounts.invitations import create_invitation
from app.accounts.models import Account, AuthChallenge, Authenticator, AuthSession, Identity, Role
from app.accounts.service import create_account
from app.accounts.session_cookie import SESSION_COOKIE
from app.db import now
from app.main import create_app
from app.settings import IdentityProviderSettings, Settings
from tests.factories.accounts import signed_in_browser, store_account
from tests.factories.authenticator_app import set_up_authenticator
from tests.factories.browser_client import browser_client, press_run
from tests.factories.oidc_issuer import CLIENT, SECRET, Issuer
from tests.factories.scripted_supervisor import ScriptedSupervisor

PASSWORD = "correct horse battery"
WITH, PAGE = "/en/sign-in/with/campus", "/en/settings/security/providers/campus"


@pytest.fixture
async def issuer() -> AsyncIterator[Issuer]:
    async with Issuer() as issuer:
        yield issuer


@pytest.fixture
def settings(settings: Settings, issuer: Issuer) -> Settings:
    """The issuer is configured, under its own name and as if it were GitHub."""
    sites = {"campus": issuer.settings(label="Example University")}
    sites["github"] = issuer.settings(issuer=f"{issuer.url}/", label="Our GitHub")
    kept = settings.model_dump(exclude={"oidc", "public_url"})
    return Settings(**kept, public_url="http://test", oidc=sites)


async def asked(client: httpx.AsyncClient, path: str = WITH) -> str:
    """The address to which the site sends somebody who has chosen it."""
    answer = await client.get(path)
    assert answer.status_code == 303, answer.text
    return answer.headers["location"]


async def back(client: httpx.AsyncClient, issuer: Issuer, path: str = WITH) -> httpx.Response:
    """Go there, sign in, and return."""
    return await client.get(issuer.consent(await asked(client, path)))


async def told(client: httpx.AsyncClient, answer: httpx.Response) -> str:
    """The resulting page."""
    assert answer.status_code == 303
    return (await client.get(answer.headers["location"])).text


async def bar(client: httpx.AsyncClient) -> str:
    return (await client.get("/en/account-menu")).text


async def accounts(app: FastAPI) -> list[Account]:
    async with app.state.db.session() as session:
        return list(await session.scalars(select(Account)))


async def test_a_returning_person_finds_their_account_again(
    app: FastAPI, client: httpx.AsyncClient, stranger: httpx.AsyncClient, supervisor: ScriptedSupervisor, issuer: Issuer
) -> None:
    await press_run(client)
    page = (await client.get("/en/sign-in?next=/en/courses/small")).text
    assert f'href="{WITH}?next=' in page
    assert "Continue with Example University" in page

    answer = await back(client, issuer, f"{WITH}?next=/en/courses/small")

    assert answer.headers["location"] == "/en/courses/small"
    menu = await bar(client)
    assert "Ada Byron" in menu
    assert "is now in your account" in menu
    assert (await back(stranger, issuer)).headers["location"] == "/en/"
    assert "Ada Byron" in await bar(stranger)
    (account,) = await accounts(app)
    assert account.email == "ada@example.org"
    assert account.email_confirmed_at is not None
    assert account.password_hash is None
    async with app.state.db.session() as session:
        assert set(await session.scalars(select(AuthSession.method))) == {"oidc"}
        assert (await session.scalars(select(AuthChallenge))).all() == []


async def test_a_site_is_asked_with_state_nonce_pkce_and_our_exact_address(
    client: httpx.AsyncClient, issuer: Issuer
) -> None:
    address = urlsplit(await asked(client))
    query = {name: values[0] for name, values in parse_qs(address.query).items()}

    assert f"{address.scheme}://{address.netloc}{address.path}" == f"{issuer.url}/authorize"
    assert query["redirect_uri"] == "http://test/sign-in/from/campus"
    assert query["code_challenge_method"] == "S256"
    assert min(len(query[name]) for name in ("state", "nonce", "code_challenge")) >= 43
    assert set(query["scope"].split()) == {"openid", "email", "profile"}
    assert issuer.asked == ["/.well-known/openid-configuration"]


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
async def test_a_link_on_another_site_starts_no_sign_in(client: httpx.AsyncClient, issuer: Issuer, site: str) -> None:
    answer = await client.get(WITH, headers={"sec-fetch-site": site})

    assert answer.status_code == 200
    assert "Continue with Example University" in answer.text
    assert "set-cookie" not in answer.headers


@pytest.mark.parametrize("next_", ["https://evil.test/", "//evil.test/", "/\\evil.test"])
async def test_it_leads_nowhere_else(client: httpx.AsyncClient, issuer: Issuer, next_: str) -> None:
    answer = await back(client, issuer, str(httpx.URL(WITH, params={"next": next_})))

    assert answer.headers["location"] == "/en/"


def _says(**claims: Any) -> Callable[[Issuer], None]:
    def say(issuer: Issuer) -> None:
        issuer.claims |= claims

    return say


def _unsigned(issuer: Issuer) -> None:
    none = "eyJhbGciOiJub25lIn0"
    issuer.sign = lambda claims: none + "." + issuer._sign(claims).split(".")[1] + "."


def _signed_by_another(issuer: Issuer) -> None:
    other = RSAKey.generate_key(2048, {"kid": "first"})
    issuer.sign = lambda claims: jwt.encode({"alg": "RS256", "kid": "first"}, claims, other)


def _signed_with_the_secret(issuer: Issuer) -> None:
    key = OctKey.import_key(SECRET + " and some more to make it long enough")
    issuer.sign = lambda claims: jwt.encode({"alg": "HS256", "kid": "first"}, claims, key)


def _signed_with_a_short_key(issuer: Issuer) -> None:
    issuer.key = RSAKey.generate_key(1024, {"kid": "first", "use": "sig"})


def _no_token(issuer: Issuer) -> None:
    issuer.sign = lambda _claims: "nothing"


@pytest.mark.parametrize(
    "lie",
    [
        _says(nonce="another"),
        _says(nonce=None),
        _says(aud="somebody-else"),
        _says(aud=[CLIENT, "somebody-else"], azp="somebody-else"),
        _says(iss="https://evil.test"),
        _says(exp=int(time.time()) - 3600),
        _says(sub=None),
        _says(sub="\0"),
        _says(at_hash="AAAA"),
        _unsigned,
        _signed_by_another,
        _signed_with_the_secret,
        pytest.param(
            _signed_with_a_short_key, marks=pytest.mark.filterwarnings("ignore::joserfc.errors.SecurityWarning")
        ),
        _no_token,
    ],
)
async def test_a_token_that_does_not_fit_signs_nobody_in(
    app: FastAPI, client: httpx.AsyncClient, issuer: Issuer, lie: Callable[[Issuer], None]
) -> None:
    lie(issuer)

    answer = await back(client, issuer)

    assert answer.headers["location"] == "/en/sign-in"
    assert "could not be verified" in await told(client, answer)
    assert SESSION_COOKIE not in client.cookies
    assert await accounts(app) == []


async def test_an_answer_counts_once_in_the_browser_that_asked_and_in_time(
    app: FastAPI, client: httpx.AsyncClient, stranger: httpx.AsyncClient, issuer: Issuer
) -> None:
    answer = issuer.consent(await asked(client))
    await asked(stranger)
    assert "took too long" in await told(stranger, await stranger.get(answer))
    assert SESSION_COOKIE not in stranger.cookies
    assert (await client.get(answer)).headers["location"] == "/en/"
    assert "took too long" in await told(client, await client.get(answer))
    late = issuer.consent(await asked(client))
    async with app.state.db.writing() as session:
        await session.execute(update(AuthChallenge).values(expires_at=now()))
    assert "took too long" in await told(client, await client.get(late))
    assert "took too long" in await told(client, await client.get("/sign-in/from/campus?state=made-up&code=x"))


async def test_a_code_of_somebody_else_opens_nothing(
    client: httpx.AsyncClient, stranger: httpx.AsyncClient, issuer: Issuer
) -> None:
    stolen = parse_qs(urlsplit(issuer.consent(await asked(stranger))).query)["code"][0]
    mine = parse_qs(urlsplit(issuer.consent(await asked(client))).query)["state"][0]

    answer = await client.get("/sign-in/from/campus", params={"state": mine, "code": stolen})

    assert "could not be verified" in await told(client, answer)
    assert SESSION_COOKIE not in client.cookies


async def test_an_answer_from_one_site_is_not_valid_for_another(client: httpx.AsyncClient, issuer: Issuer) -> None:
    address = issuer.consent(await asked(client))

    assert "took too long" in await told(client, await client.get(address.replace("/campus", "/github")))
    mixed = issuer.consent(await asked(client)).replace(f"iss={issuer.url.split(':')[0]}", "iss=https")
    assert "could not be verified" in await told(client, await client.get(mixed))


async def test_a_person_who_cancels_at_the_other_site_sees_a_message(client: httpx.AsyncClient, issuer: Issuer) -> None:
    state = parse_qs(urlsplit(await asked(client)).query)["state"][0]

    answer = await client.get("/sign-in/from/campus", params={"state": state, "error": "access_denied"})

    assert "did not sign you in" in await told(client, answer)


async def test_a_site_that_is_down_or_lies_about_itself_leaves_the_page_usable(
    client: httpx.AsyncClient, issuer: Issuer
) -> None:
    issuer.down = True
    refused = await client.get(WITH)
    assert refused.status_code == 503
    assert "The other site is not responding" in refused.text
    assert 'name="password"' in refused.text
    issuer.down = False
    for lie in (
        {"issuer": "https://evil.test"},
        {"token_endpoint": "file:///etc/passwd"},
        {"token_endpoint": "http://[of nobody"},
        {"authorization_endpoint": "https://evil.test\r\nset-cookie: a"},
        {"authorization_endpoint": "http:///"},
        {"jwks_uri": 7},
    ):
        issuer.discovery = lie
        assert (await client.get(WITH)).status_code == 422
    issuer.discovery = {}
    gone = issuer.consent(await asked(client))
    issuer.down = True
    assert "is not responding" in await told(client, await client.get(gone))


async def test_an_answer_that_is_nested_too_deep_is_not_believed(monkeypatch: pytest.MonkeyPatch) -> None:
    nested = httpx.MockTransport(lambda _: httpx.Response(200, content=b"[" * 100_000))
    monkeypatch.setattr(identity_providers, "_http_client", lambda: httpx.AsyncClient(transport=nested))
    site = OidcProvider(
        IdentityProviderSettings(issuer="https://deep.test", client_id=CLIENT, client_secret=SecretStr(SECRET))
    )
    with pytest.raises(InvalidProviderResponse):
        await site.authorization_url(AuthorizationRequest("https://here.test/", "state", "nonce", "verifier" * 8))


async def test_an_address_that_nobody_confirmed_makes_no_account(
    app: FastAPI, client: httpx.AsyncClient, issuer: Issuer
) -> None:
    for person in ({"email_verified": False}, {"email_verified": None}, {"email": None}, {"email": "no address"}):
        issuer.claims = person
        assert "has no confirmed email address" in await told(client, await back(client, issuer))
    assert await accounts(app) == []


async def test_an_account_of_the_same_address_is_not_taken_over(
    app: FastAPI, client: httpx.AsyncClient, issuer: Issuer
) -> None:
    account = await store_account(app.state.db, email="Ada@Example.org", role=Role.admin)

    assert "with this email address already exists" in await told(client, await back(client, issuer))

    assert SESSION_COOKIE not in client.cookies
    async with app.state.db.session() as session:
        assert (await session.scalars(select(Identity))).all() == []
    assert [each.id for each in await accounts(app)] == [account.id]


async def test_an_account_never_opened_is_its_owners_and_the_typed_password_is_gone(
    app: FastAPI, client: httpx.AsyncClient, issuer: Issuer
) -> None:
    async with app.state.db.writing() as session:
        hashed = await app.state.password_hasher.hash(PASSWORD)
        await create_account(
            session, email="ada@example.org", name="A squatter", password_hash=hashed, role=Role.instructor
        )

    await back(client, issuer)

    (account,) = await accounts(app)
    assert (account.name, account.password_hash, account.role) == ("Ada Byron", None, "learner")
    refused = await client.post("/en/sign-in", data={"email": "ada@example.org", "password": PASSWORD})
    assert refused.status_code == 422


@pytest.mark.parametrize("name", [None, "ada.byron@example.org", ""])
async def test_who_has_no_name_there_is_called_by_nothing_of_their_address(
    app: FastAPI, client: httpx.AsyncClient, issuer: Issuer, name: str | None
) -> None:
    issuer.claims = {"name": name, "email": "ada.byron@example.org"}

    await back(client, issuer)

    (account,) = await accounts(app)
    assert re.fullmatch(r"Learner \d+", account.name)
    assert account.handle == account.name.lower().replace(" ", "-")


async def test_a_disabled_account_stays_shut(app: FastAPI, client: httpx.AsyncClient, issuer: Issuer) -> None:
    await back(client, issuer)
    async with app.state.db.writing() as session:
        await session.execute(update(Account).values(disabled_at=now()))

    assert (await back(client, issuer)).status_code == 403


@pytest.mark.parametrize(
    ("policy", "sentence"), [("closed", "does not accept new accounts"), ("invitation", "by invitation only")]
)
async def test_sign_up_is_as_closed_by_another_site_as_by_a_form(
    settings: Settings, issuer: Issuer, policy: str, sentence: str
) -> None:
    app = create_app(settings.model_copy(update={"sign_up": policy}))
    async with app.router.lifespan_context(app), browser_client(app) as client:
        assert sentence in await told(client, await back(client, issuer))
        assert await accounts(app) == []
        if policy == "invitation":
            async with app.state.db.writing() as session:
                other = await create_invitation(session, "somebody@example.org", Role.admin)
                mine = await create_invitation(session, "ada@example.org", Role.instructor)
            page = (await client.get(f"/en/sign-up?invitation={mine}")).text
            assert f"invitation={mine}" in page.split("Continue with")[0]
            assert "for another address" in await told(client, await back(client, issuer, f"{WITH}?invitation={other}"))
            assert (await back(client, issuer, f"{WITH}?invitation={mine}")).headers["location"] == "/en/"
            (account,) = await accounts(app)
            assert account.role == "instructor"


async def test_who_is_signed_in_links_a_site_and_unlinks_it_but_not_the_last_way_in(
    app: FastAPI, client: httpx.AsyncClient, issuer: Issuer
) -> None:
    account = await store_account(app.state.db, email="ada@example.org")
    async with app.state.db.writing() as session:
        hashed = await app.state.password_hasher.hash(PASSWORD)
        await session.execute(update(Account).values(password_hash=hashed))
    issuer.claims = {"email": "elsewhere@example.org"}
    async with await signed_in_browser(app, account) as ada:
        assert (await ada.post(PAGE, data={"password": "not that one"})).status_code == 422
        page = (await ada.post(PAGE, data={"password": PASSWORD})).text
        address = page.split('<a class="button primary" href="')[1].split('"')[0].replace("&amp;", "&")
        assert "is linked" in await told(ada, await ada.get(issuer.consent(address)))
        assert "elsewhere@example.org" in (await ada.get("/en/settings/security")).text
        assert (await back(client, issuer)).headers["location"] == "/en/"
        assert "Ada Byron" in await bar(client)

        assert (await ada.post(f"{PAGE}/remove", data={"password": PASSWORD})).status_code == 303
        assert "is not linked" in (await ada.post(f"{PAGE}/remove", data={"password": PASSWORD})).text
    await client.post("/en/sign-out")
    issuer.claims = {"sub": "grace", "email": "grace@example.org"}
    await back(client, issuer)
    refused = await client.post(f"{PAGE}/remove")
    assert refused.status_code == 409
    assert "only way to sign in" in refused.text


async def test_linking_that_somebody_else_began_or_whose_identity_is_taken_links_nothing(
    app: FastAPI, client: httpx.AsyncClient, issuer: Issuer
) -> None:
    await back(client, issuer)
    async with await signed_in_browser(app) as other:
        page = (await other.post(PAGE)).text
        address = page.split('<a class="button primary" href="')[1].split('"')[0].replace("&amp;", "&")
        answer = issuer.consent(address)
        assert "already linked to another account" in await told(other, await other.get(answer))
        page = (await other.post(PAGE)).text
        address = page.split('<a class="button primary" href="')[1].split('"')[0].replace("&amp;", "&")
        issuer.claims = {"sub": "grace"}
        await other.post("/en/sign-out")
        assert "took too long" in await told(other, await other.get(issuer.consent(address)))
    async with app.state.db.session() as session:
        assert [each.subject for each in await session.scalars(select(Identity))] == ["ada"]


@pytest.mark.parametrize("added_by", ["the owner", "a row"])
async def test_linking_that_a_thief_began_is_refused_after_a_second_factor(
    app: FastAPI, issuer: Issuer, added_by: str
) -> None:
    account = await store_account(app.state.db, email="ada@example.org")
    async with app.state.db.writing() as session:
        hashed = await app.state.password_hasher.hash(PASSWORD)
        await session.execute(update(Account).values(password_hash=hashed))
    async with await signed_in_browser(app, account) as eve, await signed_in_browser(app, account) as ada:
        page = (await eve.post(PAGE, data={"password": PASSWORD})).text
        address = page.split('<a class="button primary" href="')[1].split('"')[0].replace("&amp;", "&")
        if added_by == "the owner":
            await set_up_authenticator(ada, PASSWORD, lambda secret: pyotp.TOTP(secret).now())
        else:
            async with app.state.db.writing() as session:
                session.add(Authenticator(account_id=account.id, secret="S" * 32, last_step=0, created_at=now()))

        sentence = "took too long" if added_by == "the owner" else "You signed in a while ago"
        assert sentence in await told(eve, await eve.get(issuer.consent(address)))

    async with app.state.db.session() as session:
        assert (await session.scalars(select(Identity))).all() == []


async def test_github_identifies_people_in_its_own_way(app: FastAPI, client: httpx.AsyncClient, issuer: Issuer) -> None:
    path = "/en/sign-in/with/github"
    issuer.emails = [{"email": "unchecked@example.org", "primary": True, "verified": False}]
    assert "has no confirmed email address" in await told(client, await back_of_github(client, issuer, path))
    issuer.emails += [{"email": "ada@example.org", "primary": False, "verified": True}]

    assert (await back_of_github(client, issuer, path)).headers["location"] == "/en/"

    (account,) = await accounts(app)
    assert (account.email, account.name) == ("ada@example.org", "ada")
    async with app.state.db.session() as session:
        assert (await session.scalars(select(Identity))).one().subject == "4711"


async def back_of_github(client: httpx.AsyncClient, issuer: Issuer, path: str) -> httpx.Response:
    """GitHub's response does not say who sent it."""
    return await client.get(issuer.consent(await asked(client, path)).split("&iss=")[0])


async def test_a_site_that_is_not_set_is_not_there(client: httpx.AsyncClient) -> None:
    for path in ("/en/sign-in/with/nobody", "/sign-in/from/nobody?state=x"):
        assert (await client.get(path)).status_code == 404
