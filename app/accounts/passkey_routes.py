"""Signing in with a passkey, and managing passkeys. A script talks to the device and exchanges JSON here."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response

from app import i18n
from app.accounts.auth_challenges import (
    AuthChallengeExpired,
    consume_challenge,
    consume_signed_challenge,
    create_challenge,
    issue_signed_challenge,
)
from app.accounts.dependencies import AccountMailerDep, BrowserDep, RequiredSignIn, SignedIn, get_principal
from app.accounts.identities import LastAuthMethod
from app.accounts.identity_provider_routes import enabled_issuers
from app.accounts.login import log_in, set_login_cookies
from app.accounts.merge import MergersDep
from app.accounts.models import Account, Passkey
from app.accounts.passkeys import (
    InvalidPasskeyResponse,
    PasskeyRejected,
    PasskeysUnsupported,
    RelyingParty,
    add_passkey,
    authentication_options,
    find_passkey,
    read_challenge,
    read_credential_id,
    registration_options,
    remove_passkey,
    site_relying_party,
    verify_passkey,
)
from app.accounts.rate_limit import AUTH_CHALLENGES, account_limit_key, clear_auth_attempts, count_auth_attempt
from app.accounts.routes import InvalidFields, account_page, lock_for_sensitive_change
from app.accounts.second_factor import strengthen_session
from app.accounts.sensitive_changes import StrongerLoginRequired
from app.accounts.settings_routes import reauthenticate, redirect_with_flash
from app.accounts.validation import INVALID_NAME, normalize_name
from app.errors import LockstepError
from app.rate_limit import TooManyAttempts, count_attempt
from app.security_log import SecurityEvent, record
from app.web.access import Access
from app.web.cookies import CookiesDep
from app.web.dependencies import DATABASE, SETTINGS, DatabaseDep
from app.web.forms import local_path, read_form
from app.web.languages import LANGUAGE_PREFIX
from app.web.security_headers import NO_STORE

router = APIRouter(prefix=LANGUAGE_PREFIX)

_REGISTRATION = "new passkey"


@router.post("/passkey/options", name="passkey_options", tags=[Access.public])
async def passkey_options(request: Request, lang: str, browser: BrowserDep) -> Response:
    """Called by every sign-in page so that the browser can offer passkeys; stores and counts nothing."""
    return JSONResponse(
        authentication_options(_require_relying_party(request), issue_signed_challenge(browser)), headers=NO_STORE
    )


@router.post("/passkey/sign-in", name="passkey_sign_in", tags=[Access.public])
async def passkey_sign_in(
    request: Request, lang: str, body: dict[str, Any], db: DatabaseDep, browser: BrowserDep, mergers: MergersDep
) -> Response:
    relying_party, credential = _require_relying_party(request), _read_credential(body)
    challenge, identifier = read_challenge(credential), read_credential_id(credential)
    await count_auth_attempt(db, browser, "passkey", identifier)
    try:
        async with db.writing() as session:
            await consume_signed_challenge(session, browser, challenge)
        async with db.writing() as session:
            _, account = await verify_passkey(session, relying_party, challenge, credential)
            login = await log_in(session, browser, account, mergers, method="passkey")
            await clear_auth_attempts(session, browser, "passkey", identifier)
    except (AuthChallengeExpired, InvalidPasskeyResponse, PasskeyRejected) as e:
        record(SecurityEvent.sign_in_failed, reason=e.code)
        raise
    set_login_cookies(browser, login, identifier)
    wanted = body.get("next")
    home = str(request.app.url_path_for("home", lang=i18n.current_language()))
    return JSONResponse({"next": local_path(wanted if isinstance(wanted, str) else None) or home}, headers=NO_STORE)


@router.post("/settings/security/passkeys/options", name="new_passkey_options", tags=[Access.account])
async def new_passkey_options(
    request: Request, lang: str, signed_in: RequiredSignIn, db: DatabaseDep, cookies: CookiesDep
) -> Response:
    """Reauthenticate here; the device's response is bound to this challenge."""
    form = await read_form(request)
    name = normalize_name(form.get("passkey_name", ""))
    try:
        await reauthenticate(
            request, signed_in, form, "passkey_password", {} if name else {"passkey_name": INVALID_NAME}
        )
    except InvalidFields as e:
        return JSONResponse({"errors": e.localized_errors()}, e.status, NO_STORE)
    relying_party = _require_relying_party(request)
    async with db.writing() as session:
        await count_attempt(session, account_limit_key("handshake", signed_in.account.id), AUTH_CHALLENGES)
        challenge, options = await registration_options(session, relying_party, signed_in.account)
        await create_challenge(session, cookies, _REGISTRATION, challenge, {"name": name or ""}, signed_in.account.id)
    return JSONResponse(options, headers=NO_STORE)


@router.post("/settings/security/passkeys", name="add_passkey", tags=[Access.account])
async def add_new_passkey(
    request: Request,
    lang: str,
    signed_in: RequiredSignIn,
    body: dict[str, Any],
    db: DatabaseDep,
    cookies: CookiesDep,
    mailer: AccountMailerDep,
) -> Response:
    account = signed_in.account
    relying_party, credential = _require_relying_party(request), _read_credential(body)
    challenge = read_challenge(credential)
    async with db.writing() as session:
        pending = await consume_challenge(session, cookies, _REGISTRATION, challenge)
    if pending.account_id != account.id:
        raise InvalidPasskeyResponse
    async with db.writing() as session:
        await lock_for_sensitive_change(request, session)
        await add_passkey(session, relying_party, account, pending.data["name"], challenge, credential)
        if (await get_principal(request)).lacks_second_factor:
            await strengthen_session(session, signed_in.auth_session.token_hash, "passkey")
        await mailer.send_changed(session, account, "auth_methods", account.email)
    record(SecurityEvent.passkey_added)
    return JSONResponse(
        {"next": redirect_with_flash(request, "security_page", "passkey").headers["location"]}, headers=NO_STORE
    )


@router.get("/settings/security/passkeys/{passkey}", name="passkey_page", tags=[Access.account])
async def passkey_page(request: Request, lang: str, signed_in: RequiredSignIn, passkey: str) -> HTMLResponse:
    return _passkey_page(request, signed_in, await _own_passkey(request, signed_in.account, passkey))


@router.post("/settings/security/passkeys/{passkey}", name="rename_passkey", tags=[Access.account])
async def rename_passkey(
    request: Request, lang: str, signed_in: RequiredSignIn, passkey: str, db: DatabaseDep
) -> Response:
    form = await read_form(request)
    name = normalize_name(form.get("name", ""))
    mine = await _own_passkey(request, signed_in.account, passkey)
    if name is None:
        return _passkey_page(request, signed_in, mine, InvalidFields({"name": INVALID_NAME}), form=form)
    async with db.writing() as session:
        (await find_passkey(session, signed_in.account, passkey)).name = name
    return redirect_with_flash(request, "security_page", "saved")


@router.post("/settings/security/passkeys/{passkey}/remove", name="remove_passkey", tags=[Access.account])
async def remove_own_passkey(
    request: Request, lang: str, signed_in: RequiredSignIn, passkey: str, db: DatabaseDep
) -> Response:
    form = await read_form(request)
    mine = await _own_passkey(request, signed_in.account, passkey)
    try:
        await reauthenticate(request, signed_in, form, "password")
        async with db.writing() as session:
            account = await lock_for_sensitive_change(request, session)
            await remove_passkey(session, account, passkey, enabled_issuers(request))
    except (InvalidFields, TooManyAttempts, LastAuthMethod, StrongerLoginRequired) as e:
        return _passkey_page(request, signed_in, mine, e)
    record(SecurityEvent.passkey_removed)
    return redirect_with_flash(request, "security_page", "passkey_removed")


async def _own_passkey(request: Request, account: Account, passkey: str) -> Passkey:
    async with DATABASE.get(request.app).session() as session:
        return await find_passkey(session, account, passkey)


def _passkey_page(
    request: Request, signed_in: SignedIn, passkey: Passkey, failure: LockstepError | None = None, **context: Any
) -> HTMLResponse:
    facts = {
        "account": signed_in.account,
        "logged_in_recently": signed_in.recently,
        "passkey": passkey,
        "form": {"name": passkey.name},
    }
    return account_page(request, "accounts/passkey.html", failure, **{**facts, **context})


def _require_relying_party(request: Request) -> RelyingParty:
    relying_party = site_relying_party(SETTINGS.get(request.app).public_url, request.base_url)
    if relying_party is None:
        raise PasskeysUnsupported
    return relying_party


def _read_credential(body: dict[str, Any]) -> dict[str, Any]:
    found = body.get("credential")
    if not isinstance(found, dict):
        raise InvalidPasskeyResponse
    return found
