"""Signing in with an identity provider, and linking one: a redirect to the provider, and one fixed callback address."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from typing import Annotated, Any

from fastapi import APIRouter, Query
from sqlalchemy.ext.asyncio import AsyncSession
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from app import i18n
from app.accounts import flash
from app.accounts.auth_challenges import AuthChallengeContext, AuthChallengeExpired, consume_challenge, create_challenge
from app.accounts.dependencies import (
    OptionalAccount,
    RequiredAccount,
    RequiredAuthSession,
    account_mailer,
    browser_of,
)
from app.accounts.identities import (
    LastAuthMethod,
    ProviderNotLinked,
    find_account_by_identity,
    find_identity,
    link_identity,
    sign_up_with_identity,
    unlink_identity,
)
from app.accounts.identity_providers import (
    IDENTITY_PROVIDERS,
    AuthorizationRequest,
    IdentityProvider,
    InvalidProviderResponse,
    ProviderAccessDenied,
    ProviderNotFound,
    ProviderUnavailable,
    UserInfo,
)
from app.accounts.invitations import find_invitation
from app.accounts.login import log_in, set_login_cookies
from app.accounts.merge import MERGERS
from app.accounts.models import Account, AuthSession, Identity
from app.accounts.rate_limit import AUTH_CHALLENGES, account_limit_key
from app.accounts.routes import account_page, redirect_to, translate_errors
from app.accounts.settings_routes import logged_in_recently, reauthenticate, redirect_with_flash
from app.errors import LockstepError
from app.rate_limit import TooManyAttempts, count_attempt, network_limit_key, refund_attempt
from app.web.client_network import ClientNetwork
from app.web.cookies import CookiesDep, request_cookies
from app.web.dependencies import DATABASE, SETTINGS, DatabaseDep
from app.web.forms import local_path, read_form
from app.web.languages import LANGUAGE_PREFIX
from app.web.security_headers import NO_STORE

router = APIRouter(prefix=LANGUAGE_PREFIX)
callback_router = APIRouter()

CallbackValue = Annotated[str, Query(max_length=4000)]


@router.get("/sign-in/with/{site}", name="site_sign_in")
async def provider_login(
    request: Request,
    lang: str,
    site: str,
    db: DatabaseDep,
    network: ClientNetwork,
    next: str = "",
    invitation: str = "",
) -> Response:
    facts = {"next": local_path(next) or ""}
    try:
        there = _find_provider(request, site)
        async with db.writing() as session:
            await count_attempt(session, network_limit_key("site", network), AUTH_CHALLENGES)
        if invitation:
            async with db.session() as session:
                await find_invitation(session, invitation)
            facts["invitation"] = invitation
        address = await _start_authorization(request, site, there, facts)
    except (ProviderUnavailable, InvalidProviderResponse, TooManyAttempts) as e:
        return account_page(request, "accounts/sign_in.html", e.http_status, form=facts, problem=e.sentence())
    return RedirectResponse(address, 303, NO_STORE)


@callback_router.get("/sign-in/from/{site}", name="site_answer")
async def provider_callback(
    request: Request,
    site: str,
    account: OptionalAccount,
    db: DatabaseDep,
    cookies: CookiesDep,
    state: CallbackValue = "",
    code: CallbackValue = "",
    iss: CallbackValue = "",
) -> Response:
    there = _find_provider(request, site)
    facts: Mapping[str, str] = {"lang": i18n.current_language()}
    linking = False
    try:
        async with db.writing() as session:
            begun = await consume_challenge(session, cookies, f"site {site}", state)
        facts, linking = begun.data, begun.account_id is not None
        if not code:
            raise ProviderAccessDenied
        if iss and iss != there.settings.issuer:
            raise InvalidProviderResponse
        asking = AuthorizationRequest(_redirect_uri(request, site), state, facts["nonce"], facts["verifier"])
        person = await there.person(asking, code)
        with i18n.use_language(facts["lang"]):
            return await _complete_authorization(request, begun, account, person)
    except LockstepError as e:
        if e.code not in flash.PROVIDER_ERRORS:
            raise
        flash.add(cookies, e.code)
    route = "security_page" if linking and account is not None else "sign_in_page"
    address = str(request.app.url_path_for(route, lang=facts["lang"]))
    return RedirectResponse(address, 303, NO_STORE)


@router.get("/settings/security/sites/{site}", name="site_page")
async def provider_page(
    request: Request, lang: str, account: RequiredAccount, here: RequiredAuthSession, site: str
) -> HTMLResponse:
    return await _provider_page(request, account, here, site)


@router.post("/settings/security/sites/{site}", name="link_site")
async def link_provider(
    request: Request, lang: str, account: RequiredAccount, here: RequiredAuthSession, site: str, db: DatabaseDep
) -> Response:
    """Reauthenticate, then show a link to the provider: the CSP does not allow forms that lead to another site."""
    there = _find_provider(request, site)
    form = await read_form(request)
    try:
        wrong = await reauthenticate(request, account, here, form.get("password", ""), "password")
        if wrong:
            return await _provider_page(request, account, here, site, 422, wrong=translate_errors(wrong))
        async with db.writing() as session:
            await count_attempt(session, account_limit_key("handshake", account.id), AUTH_CHALLENGES)
        address = await _start_authorization(request, site, there, {}, account.id)
    except (TooManyAttempts, ProviderUnavailable, InvalidProviderResponse) as e:
        return await _provider_page(request, account, here, site, e.http_status, problem=e.sentence())
    return await _provider_page(request, account, here, site, address=address)


@router.post("/settings/security/sites/{site}/remove", name="unlink_site")
async def unlink_provider(
    request: Request, lang: str, account: RequiredAccount, here: RequiredAuthSession, site: str, db: DatabaseDep
) -> Response:
    there = _find_provider(request, site)
    form = await read_form(request)
    try:
        wrong = await reauthenticate(request, account, here, form.get("password", ""), "password")
        if wrong:
            return await _provider_page(request, account, here, site, 422, wrong=translate_errors(wrong))
        async with db.writing() as session:
            await unlink_identity(session, account, there.settings.issuer, enabled_issuers(request))
    except (TooManyAttempts, LastAuthMethod, ProviderNotLinked) as e:
        return await _provider_page(request, account, here, site, e.http_status, problem=e.sentence())
    return redirect_with_flash(request, "security_page", "unlinked")


def enabled_issuers(request: Request) -> list[str]:
    """The issuers of the configured identity providers."""
    return [site.settings.issuer for site in IDENTITY_PROVIDERS.get(request.app).values()]


async def _start_authorization(
    request: Request, name: str, site: IdentityProvider, facts: Mapping[str, str], account_id: str | None = None
) -> str:
    """Store a challenge. Returns the URL at the provider to send the browser to."""
    state, nonce, verifier = (secrets.token_urlsafe(size) for size in (32, 32, 48))
    address = await site.address(AuthorizationRequest(_redirect_uri(request, name), state, nonce, verifier))
    kept = {**facts, "nonce": nonce, "verifier": verifier, "lang": i18n.current_language()}
    db = DATABASE.get(request.app)
    async with db.writing() as session:
        await create_challenge(session, request_cookies(request), f"site {name}", state, kept, account_id)
    return address


async def _complete_authorization(
    request: Request, begun: AuthChallengeContext, account: Account | None, person: UserInfo
) -> Response:
    """Link the identity to the account that started this, or sign in with it."""
    db = DATABASE.get(request.app)
    if begun.account_id is not None:
        if account is None or account.id != begun.account_id:
            raise AuthChallengeExpired
        async with db.writing() as session:
            await link_identity(session, account, person)
            await account_mailer(request).changed(session, account, "ways_in", account.email)
        return redirect_with_flash(request, "security_page", "linked")
    browser = browser_of(request)
    async with db.writing() as session:
        known = await find_account_by_identity(session, person)
        opened = known or await _sign_up(request, session, begun, person)
        entrance = await log_in(session, browser, opened, MERGERS.get(request.app), method="oidc", new=known is None)
        await refund_attempt(session, network_limit_key("site", browser.network))
    set_login_cookies(browser, entrance)
    return redirect_to(request, local_path(begun.data["next"]))


async def _sign_up(request: Request, session: AsyncSession, begun: AuthChallengeContext, person: UserInfo) -> Account:
    token = begun.data.get("invitation")
    invited = await find_invitation(session, token) if token else None
    policy = SETTINGS.get(request.app).sign_up
    return await sign_up_with_identity(session, person, policy, invited, i18n.current_language())


async def _provider_page(
    request: Request, account: Account, here: AuthSession, name: str, http_status: int = 200, /, **context: Any
) -> HTMLResponse:
    site = _find_provider(request, name)
    db = DATABASE.get(request.app)
    identity: Identity | None = None
    async with db.session() as session:
        try:
            identity = await find_identity(session, account, site.settings.issuer)
        except ProviderNotLinked:
            identity = None
    facts = {"account": account, "fresh": logged_in_recently(here), "site": name, "label": site.settings.label}
    facts |= {"identity": identity, "address": ""}
    return account_page(request, "accounts/identity_provider.html", http_status, **{**facts, **context})


def _find_provider(request: Request, name: str) -> IdentityProvider:
    found = IDENTITY_PROVIDERS.get(request.app).get(name)
    if found is None:
        raise ProviderNotFound
    return found


def _redirect_uri(request: Request, site: str) -> str:
    path = request.app.url_path_for("site_answer", site=site)
    return f"{SETTINGS.get(request.app).public_url}{path}"
