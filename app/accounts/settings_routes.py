"""The settings pages of an account: profile, security, data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from zoneinfo import available_timezones

from fastapi import APIRouter
from starlette.background import BackgroundTask, BackgroundTasks
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response, StreamingResponse

from app import i18n
from app.accounts import flash
from app.accounts.auth_challenges import revoke_challenges
from app.accounts.auth_methods import list_passwordless_methods
from app.accounts.auth_sessions import (
    create_auth_session,
    list_auth_sessions,
    revoke_all_auth_sessions,
    revoke_by_public_id,
)
from app.accounts.dependencies import (
    AccountMailerDep,
    RequiredAccount,
    RequiredSignIn,
    SignedIn,
    browser_of,
    get_principal,
)
from app.accounts.email_link_routes import WRONG_PASSWORD
from app.accounts.email_links import LinkPurpose, revoke_links
from app.accounts.emails import AccountMailer
from app.accounts.handles import change_handle, validate_handle
from app.accounts.identities import list_identities
from app.accounts.identity_providers import IDENTITY_PROVIDERS, IdentityProvider, IdentityProvidersDep
from app.accounts.impersonation import NAME_MISLEADS, name_misleads
from app.accounts.login import clear_login_cookies
from app.accounts.models import Account, EmailFrequency
from app.accounts.passkeys import list_passkeys
from app.accounts.passwords import PASSWORD_HASHER, PasswordHasherDep, password_weakness
from app.accounts.personal_data import AfterErasureDep, ErasersDep, ExportersDep, erase_account, export_personal_data
from app.accounts.rate_limit import (
    EXPORTS_PER_ACCOUNT,
    account_limit_key,
    clear_auth_attempts,
    count_auth_attempt,
    count_email_request,
)
from app.accounts.routes import InvalidFields, account_page, lock_for_sensitive_change
from app.accounts.second_factor import find_authenticator
from app.accounts.sensitive_changes import (
    LoginTooOld,
    StrongerLoginRequired,
    lock_own_session,
    require_known_factors,
)
from app.accounts.service import find_claimed_account, lock_account
from app.accounts.session_cookie import set_session_cookie
from app.accounts.user_agent import describe_browser
from app.accounts.validation import INVALID_EMAIL, INVALID_NAME, normalize_email, normalize_name, timezone_choices
from app.db import Database, advisory_lock
from app.errors import LockstepError
from app.i18n import N_
from app.rate_limit import TooManyAttempts, count_attempt
from app.security_log import SecurityEvent, record
from app.web.access import Access
from app.web.cookies import CookiesDep, request_cookies
from app.web.dependencies import DATABASE, DatabaseDep, SettingsDep
from app.web.forms import read_form
from app.web.languages import LANGUAGE_PREFIX
from app.web.security_headers import CLEAR_CACHE_HEADERS

router = APIRouter(prefix=f"{LANGUAGE_PREFIX}/settings", tags=[Access.account])

INVALID_TIME_ZONE = N_("Choose a time zone from the list.")
_NO_ERRORS: Mapping[str, str] = {}


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
        if name and name != mine.name and await name_misleads(session, name, mine.role):
            errors["name"] = NAME_MISLEADS
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
        return _profile_page(request, account, {**_form_values(account), **form}, InvalidFields(errors))
    return redirect_with_flash(request, "settings_page", "saved")


@router.get("/security", name="security_page")
async def security_page(request: Request, lang: str, signed_in: RequiredSignIn, after: str = "") -> HTMLResponse:
    return await _security_page(request, signed_in, after_reset=after == "reset")


@router.post("/security/password", name="change_password")
async def change_password(
    request: Request,
    lang: str,
    signed_in: RequiredSignIn,
    db: DatabaseDep,
    passwords: PasswordHasherDep,
    sites: IdentityProvidersDep,
    cookies: CookiesDep,
    mailer: AccountMailerDep,
) -> Response:
    form = await read_form(request)
    new = form.get("new_password", "")
    weak = password_weakness(new, name=signed_in.account.name, email=signed_in.account.email)
    try:
        await reauthenticate(request, signed_in, form, "password", {"new_password": weak} if weak else _NO_ERRORS)
    except (InvalidFields, TooManyAttempts) as e:
        return await _security_page(request, signed_in, e)
    hashed = await passwords.hash(new)
    try:
        token = await _replace_password(request, signed_in, hashed, db, sites, mailer)
    except StrongerLoginRequired as e:
        return await _security_page(request, signed_in, e)
    record(SecurityEvent.password_changed, reason="settings")
    set_session_cookie(cookies, token)
    return redirect_with_flash(request, "security_page", "password")


async def _replace_password(
    request: Request,
    signed_in: SignedIn,
    hashed: str,
    db: Database,
    sites: Mapping[str, IdentityProvider],
    mailer: AccountMailer,
) -> str:
    """Store the hash of a password and sign out every browser; returns a token for this one."""
    async with db.writing() as session:
        mine = await lock_for_sensitive_change(request, session)
        mine.password_hash = hashed
        await revoke_all_auth_sessions(session, mine)
        await revoke_links(session, mine)
        await revoke_challenges(session, mine)
        token = await create_auth_session(
            session,
            mine,
            method=signed_in.auth_session.method,
            user_agent=signed_in.auth_session.user_agent,
            ip_address=signed_in.auth_session.ip_address,
            signed_in_at=signed_in.auth_session.created_at,  # the password alone is no recent sign-in
        )
        auth_methods = await list_passwordless_methods(session, mine, sites)
        await mailer.send_changed(session, mine, "password", mine.email, auth_methods)
    return token


@router.post("/security/email", name="change_email")
async def change_email(
    request: Request, lang: str, signed_in: RequiredSignIn, db: DatabaseDep, mailer: AccountMailerDep
) -> Response:
    form = await read_form(request)
    email = normalize_email(form.get("email", ""))
    try:
        await reauthenticate(
            request, signed_in, form, "email_password", _NO_ERRORS if email else {"email": INVALID_EMAIL}
        )
        await count_email_request(db, browser_of(request), "change", email or "")
    except (InvalidFields, TooManyAttempts) as e:
        return await _security_page(request, signed_in, e, form=form)
    record(SecurityEvent.email_change_requested)
    answer = redirect_with_flash(request, "security_page", "change_sent")
    answer.background = BackgroundTask(_send_change_link, db, mailer, signed_in.account, email or "")
    return answer


@router.post("/security/sessions", name="end_auth_sessions")
async def revoke_auth_sessions(request: Request, lang: str, signed_in: RequiredSignIn, db: DatabaseDep) -> Response:
    form = await read_form(request)
    try:
        await _confirm_identity(request, signed_in, form, "sign_ins_password")
    except (InvalidFields, TooManyAttempts) as e:
        return await _security_page(request, signed_in, e)
    async with db.writing() as session:
        # Without a code, too: whoever has just added an authenticator app must not keep the owner from ending theirs.
        await lock_own_session(session, await get_principal(request))
        if form.get("which") == "others":
            await revoke_all_auth_sessions(session, signed_in.account, but=signed_in.auth_session.token_hash)
        else:
            await revoke_by_public_id(session, signed_in.account, form.get("which", ""))
    record(SecurityEvent.auth_sessions_ended, reason="others" if form.get("which") == "others" else "one")
    return redirect_with_flash(request, "security_page", "ended")


@router.get("/data", name="data_page")
async def data_page(request: Request, lang: str, signed_in: RequiredSignIn) -> HTMLResponse:
    return _data_page(request, signed_in)


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
    record(SecurityEvent.data_exported)
    stream = export_personal_data(db, account, exporters, settings.data_dir)
    return StreamingResponse(stream, media_type="application/json", headers=headers)


@router.post("/data/delete", name="delete_account")
async def delete_account(
    request: Request,
    lang: str,
    signed_in: RequiredSignIn,
    db: DatabaseDep,
    erasers: ErasersDep,
    afterward: AfterErasureDep,
    cookies: CookiesDep,
) -> Response:
    form = await read_form(request)
    try:
        await reauthenticate(request, signed_in, form, "password")
        async with db.writing() as session:
            learners = await erase_account(session, await lock_for_sensitive_change(request, session), erasers)
    except (InvalidFields, TooManyAttempts, StrongerLoginRequired) as e:
        return _data_page(request, signed_in, e)
    record(SecurityEvent.account_deleted)
    clear_login_cookies(cookies)
    flash.add(cookies, "deleted")
    ending = BackgroundTasks([BackgroundTask(end, learner) for learner in learners for end in afterward])
    home = str(request.app.url_path_for("home", lang=lang))
    return RedirectResponse(home, 303, CLEAR_CACHE_HEADERS, background=ending)


async def reauthenticate(
    request: Request,
    signed_in: SignedIn,
    form: Mapping[str, str],
    field: str,
    other_errors: Mapping[str, str] = _NO_ERRORS,
) -> None:
    """Check the password in ``field`` or, for accounts without one, that the sign-in is recent.

    A browser that signed in before the account had an authenticator app has to sign in again, with a code.

    Raises InvalidFields, with the errors of other fields too, or TooManyAttempts.
    """
    lacks = (await get_principal(request)).lacks_second_factor
    try:
        async with DATABASE.get(request.app).session() as session:
            method = signed_in.auth_session.method
            await require_known_factors(session, signed_in.account, method, lacks_second_factor=lacks)
    except StrongerLoginRequired as e:
        raise InvalidFields({field: e.message}) from e
    await _confirm_identity(request, signed_in, form, field, other_errors)


async def _confirm_identity(
    request: Request,
    signed_in: SignedIn,
    form: Mapping[str, str],
    field: str,
    other_errors: Mapping[str, str] = _NO_ERRORS,
) -> None:
    errors = dict(other_errors)
    if signed_in.account.password_hash is None:
        if not signed_in.recently:
            record(SecurityEvent.reauthentication_failed, reason="sign-in too old")
            errors[field] = LoginTooOld.message
    elif not await _is_password(request, signed_in.account, signed_in.account.password_hash, form.get(field, "")):
        record(SecurityEvent.reauthentication_failed, reason="wrong password")
        errors[field] = WRONG_PASSWORD
    if errors:
        raise InvalidFields(errors)


async def _is_password(request: Request, account: Account, password_hash: str, password: str) -> bool:
    db, browser = DATABASE.get(request.app), browser_of(request)
    await count_auth_attempt(db, browser, "password", account.email)  # wrong guesses here do not block signing in
    fits = await PASSWORD_HASHER.get(request.app).verify(password_hash, password)
    if fits:
        async with db.writing() as session:
            await clear_auth_attempts(session, browser, "password", account.email)
    return fits


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
    request: Request, account: Account, form: Mapping[str, str], failure: LockstepError | None = None
) -> HTMLResponse:
    zones = timezone_choices(account.time_zone)
    return account_page(request, "accounts/profile.html", failure, account=account, form=form, time_zones=zones)


async def _security_page(
    request: Request, signed_in: SignedIn, failure: LockstepError | None = None, **context: Any
) -> HTMLResponse:
    sites = IDENTITY_PROVIDERS.get(request.app)
    async with DATABASE.get(request.app).session() as session:
        sign_ins = await list_auth_sessions(session, signed_in.account)
        passkeys = await list_passkeys(session, signed_in.account)
        authenticator = await find_authenticator(session, signed_in.account)
        auth_methods = await list_passwordless_methods(session, signed_in.account, sites)
        linked = {each.issuer: each for each in await list_identities(session, signed_in.account)}
    facts = {
        "account": signed_in.account,
        "auth_session": signed_in.auth_session,
        "sign_ins": sign_ins,
        "logged_in_recently": signed_in.recently,
    }
    facts |= {
        "describe_browser": describe_browser,
        "passkeys": passkeys,
        "authenticator": authenticator,
        "auth_methods": auth_methods,
        "after_reset": False,
    }
    facts["linked"] = {name: linked.get(site.settings.issuer) for name, site in sites.items()}
    return account_page(request, "accounts/security.html", failure, **{**facts, **context})


def _data_page(request: Request, signed_in: SignedIn, failure: LockstepError | None = None) -> HTMLResponse:
    return account_page(
        request, "accounts/data.html", failure, account=signed_in.account, logged_in_recently=signed_in.recently
    )


def redirect_with_flash(request: Request, route: str, what: str) -> RedirectResponse:
    """Redirect to a settings page and flash what was done there."""
    flash.add(request_cookies(request), what)
    return RedirectResponse(str(request.app.url_path_for(route, lang=i18n.current_language())), 303)
