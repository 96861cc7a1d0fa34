"""The settings pages of an account: profile, security, data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from zoneinfo import available_timezones

from fastapi import APIRouter
from starlette.background import BackgroundTask
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response, StreamingResponse

from app import i18n
from app.accounts import flash
from app.accounts.auth_methods import list_passwordless_methods
from app.accounts.auth_sessions import (
    REAUTHENTICATE_AFTER,
    create_auth_session,
    list_auth_sessions,
    revoke_all_auth_sessions,
    revoke_by_public_id,
)
from app.accounts.dependencies import (
    AccountMailerDep,
    RequiredAccount,
    RequiredAuthSession,
    browser_of,
)
from app.accounts.email_link_routes import WRONG_PASSWORD
from app.accounts.email_links import LinkPurpose, revoke_links
from app.accounts.emails import AccountMailer
from app.accounts.handles import change_handle, validate_handle
from app.accounts.identities import list_identities
from app.accounts.identity_providers import IDENTITY_PROVIDERS, IdentityProvidersDep
from app.accounts.login import clear_login_cookies
from app.accounts.models import Account, AuthSession, EmailFrequency
from app.accounts.passkeys import list_passkeys
from app.accounts.passwords import PASSWORD_HASHER, PasswordHasherDep, password_weakness
from app.accounts.personal_data import ErasersDep, ExportersDep, erase_account, export_personal_data
from app.accounts.rate_limit import (
    EXPORTS_PER_ACCOUNT,
    account_limit_key,
    clear_auth_attempts,
    count_auth_attempt,
    count_email_request,
)
from app.accounts.routes import account_page, translate_errors
from app.accounts.service import find_claimed_account, lock_account
from app.accounts.session_cookie import set_session_cookie
from app.accounts.user_agent import describe_browser
from app.accounts.validation import INVALID_EMAIL, INVALID_NAME, normalize_email, normalize_name
from app.db import Database, advisory_lock, now
from app.i18n import N_
from app.rate_limit import TooManyAttempts, count_attempt
from app.web.cookies import CookiesDep, request_cookies
from app.web.dependencies import DATABASE, DatabaseDep, SettingsDep
from app.web.forms import read_form
from app.web.languages import LANGUAGE_PREFIX
from app.web.security_headers import CLEAR_CACHE_HEADERS

router = APIRouter(prefix=f"{LANGUAGE_PREFIX}/settings")

INVALID_TIME_ZONE = N_("Choose a time zone from the list.")
LOGIN_TOO_OLD = N_("You signed in a while ago. Sign out, sign in again, and come back within ten minutes.")
_SECURITY_TEMPLATE = "accounts/security.html"
_DATA_TEMPLATE = "accounts/data.html"


@router.get("", name="settings_page")
async def settings_page(request: Request, lang: str, account: RequiredAccount) -> HTMLResponse:
    return _profile_page(request, account, _form_values(account))


@router.post("", name="settings_profile")
async def save_profile(request: Request, lang: str, account: RequiredAccount, db: DatabaseDep) -> Response:
    form = await read_form(request)
    name, handle = normalize_name(form.get("name", "")), form.get("handle", "").strip().removeprefix("@").lower()
    errors: dict[str, str] = {} if name else {"name": INVALID_NAME}
    if form.get("time_zone") not in available_timezones():
        errors["time_zone"] = INVALID_TIME_ZONE
    async with db.writing() as session:
        await advisory_lock(session, "handles")
        mine = await lock_account(session, account)
        if refusal := await validate_handle(session, mine, handle):
            errors["handle"] = refusal
        if not errors:
            await change_handle(session, mine, handle)
            mine.name, mine.time_zone = name or mine.name, form["time_zone"]
            mine.language = form["language"] if form.get("language") in i18n.LANGUAGE_CODES else mine.language
            mine.email_frequency = (
                form["email_frequency"] if form.get("email_frequency") in set(EmailFrequency) else mine.email_frequency
            )
            mine.public_profile = form.get("public_profile") == "on"
    if errors:
        return _profile_page(request, account, {**_form_values(account), **form}, 422, errors=translate_errors(errors))
    return redirect_with_flash(request, "settings_page", "saved")


@router.get("/security", name="security_page")
async def security_page(
    request: Request, lang: str, account: RequiredAccount, auth_session: RequiredAuthSession, after: str = ""
) -> HTMLResponse:
    return await _security_page(request, account, auth_session, after_reset=after == "reset")


@router.post("/security/password", name="change_password")
async def change_password(
    request: Request,
    lang: str,
    account: RequiredAccount,
    auth_session: RequiredAuthSession,
    db: DatabaseDep,
    passwords: PasswordHasherDep,
    sites: IdentityProvidersDep,
    cookies: CookiesDep,
    mailer: AccountMailerDep,
) -> Response:
    form = await read_form(request)
    new = form.get("new_password", "")
    try:
        errors = await reauthenticate(request, account, auth_session, form.get("password", ""), "password")
    except TooManyAttempts as e:
        return await _security_page(request, account, auth_session, e.http_status, error=e.localized_message())
    if weak := password_weakness(new, name=account.name, email=account.email):
        errors["new_password"] = weak
    if errors:
        return await _security_page(request, account, auth_session, 422, errors=translate_errors(errors))
    hashed = await passwords.hash(new)
    async with db.writing() as session:
        mine = await lock_account(session, account)
        mine.password_hash = hashed
        await revoke_all_auth_sessions(session, mine)
        await revoke_links(session, mine)
        token = await create_auth_session(
            session,
            mine,
            method=auth_session.method,
            user_agent=auth_session.user_agent,
            ip_address=auth_session.ip_address,
        )
        auth_methods = await list_passwordless_methods(session, mine, sites)
        await mailer.send_changed(session, mine, "password", mine.email, auth_methods)
    set_session_cookie(cookies, token)
    return redirect_with_flash(request, "security_page", "password")


@router.post("/security/email", name="change_email")
async def change_email(
    request: Request,
    lang: str,
    account: RequiredAccount,
    auth_session: RequiredAuthSession,
    db: DatabaseDep,
    mailer: AccountMailerDep,
) -> Response:
    form = await read_form(request)
    email = normalize_email(form.get("email", ""))
    try:
        errors = await reauthenticate(request, account, auth_session, form.get("email_password", ""), "email_password")
        if email is None:
            errors["email"] = INVALID_EMAIL
        elif not errors:
            await count_email_request(db, browser_of(request), "change", email)
    except TooManyAttempts as e:
        return await _security_page(
            request, account, auth_session, e.http_status, form=form, error=e.localized_message()
        )
    if errors or email is None:
        return await _security_page(request, account, auth_session, 422, form=form, errors=translate_errors(errors))
    answer = redirect_with_flash(request, "security_page", "change_sent")
    answer.background = BackgroundTask(_send_change_link, db, mailer, account, email)
    return answer


@router.post("/security/sessions", name="end_auth_sessions")
async def revoke_auth_sessions(
    request: Request, lang: str, account: RequiredAccount, auth_session: RequiredAuthSession, db: DatabaseDep
) -> Response:
    form = await read_form(request)
    async with db.writing() as session:
        if form.get("which") == "others":
            await revoke_all_auth_sessions(session, account, but=auth_session.token_hash)
        else:
            await revoke_by_public_id(session, account, form.get("which", ""))
    return redirect_with_flash(request, "security_page", "ended")


@router.get("/data", name="data_page")
async def data_page(
    request: Request, lang: str, account: RequiredAccount, auth_session: RequiredAuthSession
) -> HTMLResponse:
    return account_page(request, _DATA_TEMPLATE, account=account, logged_in_recently=logged_in_recently(auth_session))


@router.get("/data/export", name="export_data")
async def export_data(
    request: Request,
    lang: str,
    account: RequiredAccount,
    db: DatabaseDep,
    exporters: ExportersDep,
    settings: SettingsDep,
) -> StreamingResponse:
    name = f"lockstep-{account.handle}.json"
    headers = {"content-disposition": f'attachment; filename="{name}"', "cache-control": "no-store"}
    async with db.writing() as session:
        await count_attempt(session, account_limit_key("export", account.id), EXPORTS_PER_ACCOUNT)
    stream = export_personal_data(db, account, exporters, settings.data_dir)
    return StreamingResponse(stream, media_type="application/json", headers=headers)


@router.post("/data/delete", name="delete_account")
async def delete_account(
    request: Request,
    lang: str,
    account: RequiredAccount,
    auth_session: RequiredAuthSession,
    db: DatabaseDep,
    erasers: ErasersDep,
    cookies: CookiesDep,
) -> Response:
    form = await read_form(request)
    try:
        errors = await reauthenticate(request, account, auth_session, form.get("password", ""), "password")
    except TooManyAttempts as e:
        return account_page(
            request,
            _DATA_TEMPLATE,
            e.http_status,
            account=account,
            logged_in_recently=logged_in_recently(auth_session),
            error=e.localized_message(),
        )
    if errors:
        return account_page(
            request,
            _DATA_TEMPLATE,
            422,
            account=account,
            logged_in_recently=logged_in_recently(auth_session),
            errors=translate_errors(errors),
        )
    async with db.writing() as session:
        await erase_account(session, account, erasers)
    clear_login_cookies(cookies)
    flash.add(cookies, "deleted")
    return RedirectResponse(str(request.app.url_path_for("home", lang=lang)), 303, CLEAR_CACHE_HEADERS)


async def reauthenticate(
    request: Request, account: Account, auth_session: AuthSession, password: str, field: str
) -> dict[str, str]:
    """Check the password or, for accounts without one, that the sign-in is recent. Returns errors by field."""
    if account.password_hash is None:
        return {} if logged_in_recently(auth_session) else {field: LOGIN_TOO_OLD}
    db, browser = DATABASE.get(request.app), browser_of(request)
    await count_auth_attempt(db, browser, "password", account.email)  # wrong guesses here do not block signing in
    passwords = PASSWORD_HASHER.get(request.app)
    if not await passwords.verify(account.password_hash, password):
        return {field: WRONG_PASSWORD}
    async with db.writing() as session:
        await clear_auth_attempts(session, browser, "password", account.email)
    return {}


def logged_in_recently(auth_session: AuthSession) -> bool:
    """Whether the browser signed in recently enough to skip reauthentication."""
    return now() - auth_session.created_at < REAUTHENTICATE_AFTER


async def _send_change_link(db: Database, mailer: AccountMailer, account: Account, email: str) -> None:
    """Send a link to the new address or, if it has an account, tell its owner. In the background, to hide which."""
    async with db.writing() as session:
        account = await lock_account(session, account)
        other = await find_claimed_account(session, email)
        if other is None or other.id == account.id:
            await mailer.send_link(session, account, LinkPurpose.change, email)
        else:
            await mailer.send_already_registered(session, other)


def _form_values(account: Account) -> dict[str, str]:
    shown = {
        name: str(getattr(account, name)) for name in ("name", "handle", "time_zone", "language", "email_frequency")
    }
    return {**shown, **({"public_profile": "on"} if account.public_profile else {})}


def _profile_page(
    request: Request, account: Account, form: Mapping[str, str], http_status: int = 200, /, **context: Any
) -> HTMLResponse:
    zones = sorted(zone for zone in available_timezones() if "/" in zone or zone in ("UTC", account.time_zone))
    return account_page(
        request, "accounts/profile.html", http_status, account=account, form=form, time_zones=zones, **context
    )


async def _security_page(
    request: Request, account: Account, auth_session: AuthSession, http_status: int = 200, /, **context: Any
) -> HTMLResponse:
    sites = IDENTITY_PROVIDERS.get(request.app)
    async with DATABASE.get(request.app).session() as session:
        sign_ins = await list_auth_sessions(session, account)
        passkeys = await list_passkeys(session, account)
        auth_methods = await list_passwordless_methods(session, account, sites)
        linked = {each.issuer: each for each in await list_identities(session, account)}
    facts = {
        "account": account,
        "auth_session": auth_session,
        "sign_ins": sign_ins,
        "logged_in_recently": logged_in_recently(auth_session),
    }
    facts |= {
        "describe_browser": describe_browser,
        "passkeys": passkeys,
        "auth_methods": auth_methods,
        "after_reset": False,
    }
    facts["linked"] = {name: linked.get(site.settings.issuer) for name, site in sites.items()}
    return account_page(request, _SECURITY_TEMPLATE, http_status, **{**facts, **context})


def redirect_with_flash(request: Request, route: str, what: str) -> RedirectResponse:
    """Redirect to a settings page and flash what was done there."""
    flash.add(request_cookies(request), what)
    return RedirectResponse(str(request.app.url_path_for(route, lang=i18n.current_language())), 303)
