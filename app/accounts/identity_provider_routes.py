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
from app.accounts.dependencies import OptionalAccount, RequiredSignIn, SignedIn, account_mailer, browser_of
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
from app.accounts.login import AccountDisabled, log_in, set_login_cookies
from app.accounts.merge import MERGERS
from app.accounts.models import Account, Identity
from app.accounts.rate_limit import AUTH_CHALLENGES, account_limit_key
from app.accounts.routes import InvalidFields, account_page, lock_for_sensitive_change, redirect_after_login
from app.accounts.sensitive_changes import StrongerLoginRequired
from app.accounts.settings_routes import reauthenticate, redirect_with_flash
from app.errors import LockstepError
from app.rate_limit import TooManyAttempts, count_attempt, network_limit_key, refund_attempt
from app.security_log import SecurityEvent, record
from app.web.access import Access
from app.web.client_network import ClientNetwork
from app.web.cookies import CookiesDep, request_cookies
from app.web.dependencies import DATABASE, SETTINGS, DatabaseDep
from app.web.forms import local_path, read_form
from app.web.languages import LANGUAGE_PREFIX
from app.web.security_headers import NO_STORE

router = APIRouter(prefix=LANGUAGE_PREFIX)
callback_router = APIRouter(tags=[Access.public])

_OTHER_SITES = ("cross-site", "same-site")
CallbackValue = Annotated[str, Query(max_length=4000)]


@router.get("/sign-in/with/{provider}", name="provider_sign_in", tags=[Access.public])
async def provider_login(
    request: Request,
    lang: str,
    provider: str,
    db: DatabaseDep,
    network: ClientNetwork,
    next: str = "",
    invitation: str = "",
) -> Response:
    facts = {"next": local_path(next) or ""}
    if request.headers.get("sec-fetch-site") in _OTHER_SITES:  # the provider may ask nothing: here the person must act
        return account_page(request, "accounts/sign_in.html", form=facts)
    try:
        identity_provider = _find_provider(request, provider)
        async with db.writing() as session:
            await count_attempt(session, network_limit_key("site", network), AUTH_CHALLENGES)
        if invitation:
            async with db.session() as session:
                await find_invitation(session, invitation)
            facts["invitation"] = invitation
        address = await _start_authorization(request, provider, identity_provider, facts)
    except (ProviderUnavailable, InvalidProviderResponse, TooManyAttempts) as e:
        return account_page(request, "accounts/sign_in.html", e, form=facts)
    return RedirectResponse(address, 303, NO_STORE)


@callback_router.get("/sign-in/from/{provider}", name="provider_callback")
async def provider_callback(
    request: Request,
    provider: str,
    account: OptionalAccount,
    db: DatabaseDep,
    cookies: CookiesDep,
    state: CallbackValue = "",
    code: CallbackValue = "",
    iss: CallbackValue = "",
) -> Response:
    identity_provider = _find_provider(request, provider)
    facts: Mapping[str, str] = {"lang": i18n.current_language()}
    linking = False
    try:
        async with db.writing() as session:
            pending = await consume_challenge(session, cookies, f"site {provider}", state)
        facts, linking = pending.data, pending.account_id is not None
        if not code:
            raise ProviderAccessDenied
        if iss and iss != identity_provider.settings.issuer:
            raise InvalidProviderResponse
        authorization = AuthorizationRequest(_redirect_uri(request, provider), state, facts["nonce"], facts["verifier"])
        person = await identity_provider.fetch_user_info(authorization, code)
        with i18n.use_language(facts["lang"]):
            return await _complete_authorization(request, pending, account, person)
    except LockstepError as e:
        if not linking and not isinstance(e, AccountDisabled):
            record(SecurityEvent.sign_in_failed, reason=e.code)
        if e.code not in flash.PROVIDER_ERRORS:
            raise
        flash.add(cookies, e.code)
    route = "security_page" if linking and account is not None else "sign_in_page"
    address = str(request.app.url_path_for(route, lang=facts["lang"]))
    return RedirectResponse(address, 303, NO_STORE)


@router.get("/settings/security/providers/{provider}", name="provider_page", tags=[Access.account])
async def provider_page(request: Request, lang: str, signed_in: RequiredSignIn, provider: str) -> HTMLResponse:
    return await _provider_page(request, signed_in, provider)


@router.post("/settings/security/providers/{provider}", name="link_provider", tags=[Access.account])
async def link_provider(
    request: Request, lang: str, signed_in: RequiredSignIn, provider: str, db: DatabaseDep
) -> Response:
    """Reauthenticate, then show a link to the provider: the CSP does not allow forms that lead to another site."""
    identity_provider = _find_provider(request, provider)
    form = await read_form(request)
    try:
        await reauthenticate(request, signed_in, form, "password")
        async with db.writing() as session:
            await count_attempt(session, account_limit_key("handshake", signed_in.account.id), AUTH_CHALLENGES)
        address = await _start_authorization(request, provider, identity_provider, {}, signed_in.account.id)
    except (InvalidFields, TooManyAttempts, ProviderUnavailable, InvalidProviderResponse) as e:
        return await _provider_page(request, signed_in, provider, e)
    return await _provider_page(request, signed_in, provider, address=address)


@router.post("/settings/security/providers/{provider}/remove", name="unlink_provider", tags=[Access.account])
async def unlink_provider(
    request: Request, lang: str, signed_in: RequiredSignIn, provider: str, db: DatabaseDep
) -> Response:
    identity_provider = _find_provider(request, provider)
    form = await read_form(request)
    try:
        await reauthenticate(request, signed_in, form, "password")
        async with db.writing() as session:
            account = await lock_for_sensitive_change(request, session)
            await unlink_identity(session, account, identity_provider.settings.issuer, enabled_issuers(request))
    except (InvalidFields, TooManyAttempts, LastAuthMethod, ProviderNotLinked, StrongerLoginRequired) as e:
        return await _provider_page(request, signed_in, provider, e)
    record(SecurityEvent.provider_unlinked, reason=identity_provider.settings.issuer)
    return redirect_with_flash(request, "security_page", "unlinked")


def enabled_issuers(request: Request) -> list[str]:
    """The issuers of the configured identity providers."""
    return [provider.settings.issuer for provider in IDENTITY_PROVIDERS.get(request.app).values()]


async def _start_authorization(
    request: Request, name: str, provider: IdentityProvider, facts: Mapping[str, str], account_id: str | None = None
) -> str:
    """Store a challenge. Returns the URL at the provider to send the browser to."""
    state, nonce, verifier = (secrets.token_urlsafe(size) for size in (32, 32, 48))
    address = await provider.authorization_url(
        AuthorizationRequest(_redirect_uri(request, name), state, nonce, verifier)
    )
    kept = {**facts, "nonce": nonce, "verifier": verifier, "lang": i18n.current_language()}
    db = DATABASE.get(request.app)
    async with db.writing() as session:
        await create_challenge(session, request_cookies(request), f"site {name}", state, kept, account_id)
    return address


async def _complete_authorization(
    request: Request, pending: AuthChallengeContext, account: Account | None, person: UserInfo
) -> Response:
    """Link the identity to the account that started this, or sign in with it."""
    db = DATABASE.get(request.app)
    if pending.account_id is not None:
        if account is None or account.id != pending.account_id:
            raise AuthChallengeExpired
        async with db.writing() as session:
            await link_identity(session, account, person)
            await lock_for_sensitive_change(request, session)  # afterward: an identity is locked before an account
            await account_mailer(request).send_changed(session, account, "auth_methods", account.email)
        record(SecurityEvent.provider_linked, reason=person.issuer)
        return redirect_with_flash(request, "security_page", "linked")
    browser = browser_of(request)
    async with db.writing() as session:
        known = await find_account_by_identity(session, person)
        opened = known or await _sign_up(request, session, pending, person)
        login = await log_in(session, browser, opened, MERGERS.get(request.app), method="oidc", new=known is None)
        await refund_attempt(session, network_limit_key("site", browser.network))
    set_login_cookies(browser, login)
    return redirect_after_login(request, login, local_path(pending.data["next"]))


async def _sign_up(request: Request, session: AsyncSession, pending: AuthChallengeContext, person: UserInfo) -> Account:
    token = pending.data.get("invitation")
    invitation = await find_invitation(session, token) if token else None
    policy = SETTINGS.get(request.app).sign_up
    return await sign_up_with_identity(session, person, policy, invitation, i18n.current_language())


async def _provider_page(
    request: Request, signed_in: SignedIn, name: str, failure: LockstepError | None = None, **context: Any
) -> HTMLResponse:
    provider = _find_provider(request, name)
    db = DATABASE.get(request.app)
    identity: Identity | None = None
    async with db.session() as session:
        try:
            identity = await find_identity(session, signed_in.account, provider.settings.issuer)
        except ProviderNotLinked:
            identity = None
    facts = {
        "account": signed_in.account,
        "logged_in_recently": signed_in.recently,
        "provider": name,
        "label": provider.settings.label,
    }
    facts |= {"identity": identity, "address": ""}
    return account_page(request, "accounts/identity_provider.html", failure, **{**facts, **context})


def _find_provider(request: Request, name: str) -> IdentityProvider:
    found = IDENTITY_PROVIDERS.get(request.app).get(name)
    if found is None:
        raise ProviderNotFound
    return found


def _redirect_uri(request: Request, name: str) -> str:
    path = request.app.url_path_for("provider_callback", provider=name)
    return f"{SETTINGS.get(request.app).public_url}{path}"
