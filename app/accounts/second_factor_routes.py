"""The second step of a sign-in, and setting up, replacing and removing an authenticator app."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from datetime import datetime

import pyotp
import segno
from fastapi import APIRouter
from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from app.accounts.auth_challenges import AuthChallengeExpired, consume_challenge, create_challenge
from app.accounts.auth_sessions import find_pending_session, list_auth_sessions
from app.accounts.dependencies import AccountMailerDep, BrowserDep, RequiredSignIn, SignedIn, browser_of, get_principal
from app.accounts.login import log_in, set_login_cookies
from app.accounts.merge import MergersDep
from app.accounts.models import Account
from app.accounts.rate_limit import AUTH_CHALLENGES, account_limit_key, clear_auth_attempts, count_auth_attempt
from app.accounts.routes import (
    InvalidFields,
    account_page,
    lock_for_sensitive_change,
    redirect_after_login,
    redirect_opened_page,
    redirect_to,
)
from app.accounts.second_factor import (
    WRONG_CODE,
    CodeKind,
    add_authenticator,
    count_recovery_codes,
    find_authenticator,
    provisioning_uri,
    remove_authenticator,
    strengthen_session,
    use_code,
    with_code,
)
from app.accounts.sensitive_changes import LoginTooOld, StrongerLoginRequired
from app.accounts.session_cookie import session_token_hash
from app.accounts.settings_routes import reauthenticate, redirect_with_flash
from app.errors import LockstepError
from app.rate_limit import TooManyAttempts, count_attempt
from app.security_log import SecurityEvent, record
from app.web.access import Access
from app.web.cookies import request_cookies
from app.web.dependencies import DATABASE, DatabaseDep
from app.web.forms import local_path, read_form
from app.web.languages import LANGUAGE_PREFIX

router = APIRouter(prefix=LANGUAGE_PREFIX)

_SET_UP = "authenticator"
_SIGN_IN_PAGE = "accounts/second_step.html"


@router.get("/sign-in/code", name="second_step_page", tags=[Access.public])
async def second_step_page(
    request: Request, lang: str, db: DatabaseDep, browser: BrowserDep, next: str = ""
) -> Response:
    async with db.session() as session:
        waiting = await find_pending_session(session, session_token_hash(browser.cookies))
    if waiting is None:
        return redirect_to(request, str(request.app.url_path_for("sign_in_page", lang=lang)))
    return account_page(request, _SIGN_IN_PAGE, form={"next": local_path(next) or ""})


@router.post("/sign-in/code", name="second_step", tags=[Access.public])
async def second_step(
    request: Request, lang: str, db: DatabaseDep, browser: BrowserDep, mergers: MergersDep
) -> Response:
    form = await read_form(request)
    async with db.session() as session:
        waiting = await find_pending_session(session, session_token_hash(browser.cookies))
    if waiting is None:
        return redirect_to(request, str(request.app.url_path_for("sign_in_page", lang=lang)))
    pending, account = waiting
    try:
        await _count_code(request, account)
        login = None
        async with db.writing() as session:
            kind = await use_code(session, account, form.get("code", ""))
            if kind is not None:
                account = await session.get_one(Account, account.id)
                login = await log_in(session, browser, account, mergers, method=with_code(pending.method))
                await clear_auth_attempts(session, browser, "code", account.email)
        if login is None:
            record(SecurityEvent.sign_in_failed, account=pending.account_id, reason="wrong code")
            raise InvalidFields({"code": WRONG_CODE})
    except (InvalidFields, TooManyAttempts) as e:
        return account_page(request, _SIGN_IN_PAGE, e, form={"next": local_path(form.get("next")) or ""})
    set_login_cookies(browser, login, reason=kind if kind == CodeKind.recovery else "")
    return redirect_after_login(request, login, local_path(form.get("next")))


@router.get("/settings/security/authenticator", name="authenticator_page", tags=[Access.account])
async def authenticator_page(request: Request, lang: str, signed_in: RequiredSignIn) -> HTMLResponse:
    return await _authenticator_page(request, signed_in)


@router.post("/settings/security/authenticator", name="set_up_authenticator", tags=[Access.account])
async def set_up_authenticator(request: Request, lang: str, signed_in: RequiredSignIn, db: DatabaseDep) -> HTMLResponse:
    """Show the secret for an app; a code of the app then confirms it."""
    form = await read_form(request)
    try:
        await _require_fresh_sign_in(request, signed_in, form, "password")
    except (InvalidFields, TooManyAttempts) as e:
        return await _authenticator_page(request, signed_in, e)
    return await _secret_page(request, signed_in, pyotp.random_base32())


@router.post("/settings/security/authenticator/confirm", name="confirm_authenticator", tags=[Access.account])
async def confirm_authenticator(
    request: Request,
    lang: str,
    signed_in: RequiredSignIn,
    db: DatabaseDep,
    browser: BrowserDep,
    mailer: AccountMailerDep,
) -> Response:
    form = await read_form(request)
    account = signed_in.account
    try:
        await _count_code(request, account)
        async with db.writing() as session:
            started = await consume_challenge(session, browser.cookies, _SET_UP, form.get("key", ""))
        if started.account_id != account.id:
            raise AuthChallengeExpired
        async with db.writing() as session:
            account = await lock_for_sensitive_change(request, session)
            codes = await add_authenticator(session, account, started.data["secret"], form.get("code", ""))
            if codes is not None:
                method = with_code(signed_in.auth_session.method)
                await strengthen_session(session, signed_in.auth_session.token_hash, method)
                await clear_auth_attempts(session, browser, "code", account.email)
                await mailer.send_changed(session, account, "second_factor", account.email)
            others = len(await list_auth_sessions(session, account)) - 1
    except (TooManyAttempts, AuthChallengeExpired, StrongerLoginRequired) as e:
        return await _authenticator_page(request, signed_in, e)
    if codes is None:
        record(SecurityEvent.reauthentication_failed, reason="wrong code")
        wrong = InvalidFields({"code": WRONG_CODE})
        return await _secret_page(request, signed_in, started.data["secret"], wrong, started.expires_at)
    record(SecurityEvent.authenticator_added)
    return account_page(request, "accounts/recovery_codes.html", account=account, codes=codes, other_sign_ins=others)


@router.post("/settings/security/authenticator/remove", name="remove_authenticator", tags=[Access.account])
async def remove_own_authenticator(
    request: Request, lang: str, signed_in: RequiredSignIn, db: DatabaseDep, mailer: AccountMailerDep
) -> Response:
    form = await read_form(request)
    try:
        await _require_fresh_sign_in(request, signed_in, form, "remove_password")
        async with db.writing() as session:
            await remove_authenticator(session, await lock_for_sensitive_change(request, session))
            await mailer.send_changed(session, signed_in.account, "second_factor", signed_in.account.email)
    except (InvalidFields, TooManyAttempts, StrongerLoginRequired) as e:
        return await _authenticator_page(request, signed_in, e)
    record(SecurityEvent.authenticator_removed)
    return redirect_with_flash(request, "authenticator_page", "authenticator_removed")


async def answer_second_factor_required(request: Request, error: Exception) -> Response:
    """Lead a browser that opened a page to the page where a second factor is set up; send anything else the error."""
    return await redirect_opened_page(request, error, "authenticator_page")


async def _require_fresh_sign_in(request: Request, signed_in: SignedIn, form: Mapping[str, str], field: str) -> None:
    """Check that the sign-in is recent, and the password if there is one. Raises InvalidFields or TooManyAttempts."""
    if not signed_in.recently:
        record(SecurityEvent.reauthentication_failed, reason="sign-in too old")
        raise InvalidFields({field: LoginTooOld.message})
    await reauthenticate(request, signed_in, form, field)


async def _count_code(request: Request, account: Account) -> None:
    """Count a guess at a code. Raises TooManyAttempts."""
    await count_auth_attempt(DATABASE.get(request.app), browser_of(request), "code", account.email)


async def _secret_page(
    request: Request,
    signed_in: SignedIn,
    secret: str,
    failure: LockstepError | None = None,
    expires_at: datetime | None = None,
) -> HTMLResponse:
    """Show the secret; a code confirms it until ``expires_at``, ten minutes from now if that is None."""
    key = secrets.token_urlsafe(32)
    async with DATABASE.get(request.app).writing() as session:
        await count_attempt(session, account_limit_key("handshake", signed_in.account.id), AUTH_CHALLENGES)
        await create_challenge(
            session, request_cookies(request), _SET_UP, key, {"secret": secret}, signed_in.account.id, expires_at
        )
    uri = provisioning_uri(signed_in.account, secret)
    code = Markup(segno.make(uri, error="m", micro=False).svg_inline(scale=5, border=4, dark="#000", light="#fff"))  # noqa: S704
    shown = " ".join(secret[start : start + 4] for start in range(0, len(secret), 4))
    facts = {"account": signed_in.account, "key": key, "uri": uri, "qr_code": code, "secret": shown}
    return account_page(request, "accounts/authenticator_secret.html", failure, **facts)


async def _authenticator_page(
    request: Request, signed_in: SignedIn, failure: LockstepError | None = None
) -> HTMLResponse:
    async with DATABASE.get(request.app).session() as session:
        authenticator = await find_authenticator(session, signed_in.account)
        codes_left = await count_recovery_codes(session, signed_in.account)
    facts = {
        "account": signed_in.account,
        "logged_in_recently": signed_in.recently,
        "authenticator": authenticator,
        "codes_left": codes_left,
        "lacks_second_factor": (await get_principal(request)).lacks_second_factor,
    }
    return account_page(request, "accounts/authenticator.html", failure, **facts)
