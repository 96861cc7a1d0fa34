"""Signing up, in and out, and the account menu in the top bar.

Context of the templates: ``form`` (what was typed), ``errors`` (error messages by field), ``error`` (an error message
about the whole form) and ``flash_messages`` (flash messages).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

from fastapi import APIRouter
from sqlalchemy.ext.asyncio import AsyncSession
from starlette.background import BackgroundTask
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from app import i18n
from app.accounts import flash
from app.accounts.dependencies import AccountMailerDep, BrowserDep, OptionalAccount, get_principal
from app.accounts.emails import AccountMailer
from app.accounts.identity_providers import IDENTITY_PROVIDERS
from app.accounts.impersonation import NAME_MISLEADS, name_misleads
from app.accounts.invitations import ValidInvitation, check_sign_up_allowed, find_invitation, use_invitation
from app.accounts.login import AccountDisabled, Login, log_in, log_out, set_login_cookies
from app.accounts.menu_piece import menu_context
from app.accounts.merge import MergersDep
from app.accounts.models import Account, Role
from app.accounts.passkeys import localhost_url, site_relying_party
from app.accounts.passwords import AsyncPasswordHasher, PasswordHasherDep
from app.accounts.rate_limit import clear_auth_attempts, clear_email_requests, count_auth_attempt, count_email_request
from app.accounts.sensitive_changes import lock_signed_in_account
from app.accounts.service import AccountDeleted, find_by_email, lock_account
from app.accounts.sign_up import (
    INVITED_GROUP_FINDER,
    EmailTaken,
    FirstAdminRecorderDep,
    SignUpRequest,
    sign_up,
    validate_sign_up,
)
from app.accounts.sign_up_cookie import remember_sign_up
from app.accounts.validation import MAX_EMAIL_LENGTH, normalize_email
from app.db import Database
from app.errors import LockstepError, PermissionDenied
from app.i18n import N_
from app.rate_limit import TooManyAttempts
from app.security_log import SecurityEvent, record
from app.settings import Settings
from app.web.access import Access
from app.web.cookies import CookiesDep, request_cookies
from app.web.dependencies import DATABASE, SETTINGS, DatabaseDep, SettingsDep
from app.web.error_handlers import handle_framework_error
from app.web.forms import local_path, read_form
from app.web.languages import LANGUAGE_PREFIX
from app.web.rendering import is_htmx_request, render_fragment, render_private_page
from app.web.security_headers import CLEAR_CACHE_HEADERS, NO_STORE

router = APIRouter(prefix=LANGUAGE_PREFIX)

INVALID_CREDENTIALS = N_("Incorrect email or password. If you just signed up, open the link in our email first.")
_EMPTY_FORM: Mapping[str, str] = {}


@router.get("/sign-in", name="sign_in_page", tags=[Access.public])
async def sign_in_page(request: Request, lang: str, account: OptionalAccount, next: str = "") -> HTMLResponse:
    path = local_path(next) or ""
    group = await _find_invited_group(request, path)
    return account_page(request, "accounts/sign_in.html", form={"next": path}, account=account, group=group)


@router.post("/sign-in", name="sign_in", tags=[Access.public])
async def sign_in(
    request: Request, lang: str, db: DatabaseDep, passwords: PasswordHasherDep, browser: BrowserDep, mergers: MergersDep
) -> Response:
    form = await read_form(request)
    email, password = form.get("email", "").strip(), form.get("password", "")
    email = (
        normalize_email(email) or email[:MAX_EMAIL_LENGTH]
    )  # as it is stored: the normalized domain may be spelled differently
    try:
        await count_auth_attempt(db, browser, "sign-in", email)
        account, new_hash = await _authenticate(db, passwords, email, password)
        async with db.writing() as session:
            known, account = account.password_hash, await lock_account(session, account)
            if account.password_hash != known:
                record(SecurityEvent.sign_in_failed, account=account.id, reason="wrong password")
                raise InvalidCredentials  # the password was changed while we checked it
            account.password_hash = new_hash or known
            login = await log_in(session, browser, account, mergers, method="password")
            await clear_auth_attempts(session, browser, "sign-in", email)
    except (TooManyAttempts, AccountDisabled, AccountDeleted, InvalidCredentials) as e:
        group = await _find_invited_group(request, form.get("next", ""))
        return account_page(request, "accounts/sign_in.html", e, form=form, group=group)
    set_login_cookies(browser, login)
    return redirect_after_login(request, login, local_path(form.get("next")))


@router.post("/sign-out", name="sign_out", tags=[Access.public])
async def sign_out(
    request: Request, lang: str, _account: OptionalAccount, db: DatabaseDep, cookies: CookiesDep
) -> Response:
    async with db.writing() as session:
        await log_out(session, cookies)
    flash.add(cookies, "signed_out")
    answer = redirect_to(request, None)
    answer.headers.update(CLEAR_CACHE_HEADERS)
    return answer


@router.get("/sign-up", name="sign_up_page", tags=[Access.public])
async def sign_up_page(
    request: Request,
    lang: str,
    account: OptionalAccount,
    db: DatabaseDep,
    settings: SettingsDep,
    next: str = "",
    invitation: str = "",
) -> HTMLResponse:
    try:
        valid_invitation = await _find_invitation(db, settings, invitation)
    except PermissionDenied as e:
        return _sign_up_closed_page(request, e)
    form = {
        "next": local_path(next) or "",
        "invitation": invitation,
        "email": (valid_invitation and valid_invitation.email) or "",
    }
    return await _sign_up_page(request, valid_invitation, form, account=account)


@router.post("/sign-up", name="sign_up", tags=[Access.public])
async def submit_sign_up(
    request: Request,
    lang: str,
    settings: SettingsDep,
    db: DatabaseDep,
    passwords: PasswordHasherDep,
    browser: BrowserDep,
    mergers: MergersDep,
    mailer: AccountMailerDep,
    record_first_admin: FirstAdminRecorderDep,
) -> Response:
    form = await read_form(request)
    try:
        valid_invitation = await _find_invitation(db, settings, form.get("invitation", ""))
    except PermissionDenied as e:
        return _sign_up_closed_page(request, e)
    sign_up_request, errors = validate_sign_up(form, lang, valid_invitation)
    async with db.session() as session:
        role = valid_invitation.role if valid_invitation is not None else Role.learner
        if await name_misleads(session, sign_up_request.name, role):
            errors["name"] = NAME_MISLEADS
    if errors:
        return await _sign_up_page(request, valid_invitation, form, InvalidFields(errors))
    login = None
    try:
        await count_email_request(db, browser, "sign-up", sign_up_request.email)
        hashed = await passwords.hash(form["password"])
        if valid_invitation is None:
            remember_sign_up(browser, sign_up_request.email, hashed)
            answer = _email_sent_page(request, sign_up_request)
            # In the background, so that the response time reveals nothing about the address.
            answer.background = BackgroundTask(_sign_up_in_background, db, sign_up_request, hashed, mailer)
            return answer
        async with db.writing() as session:
            await use_invitation(session, valid_invitation)
            if (opened := await sign_up(session, sign_up_request, hashed, valid_invitation, mailer)) is not None:
                if valid_invitation.makes_first_admin:
                    await record_first_admin(session, opened)
                login = await log_in(session, browser, opened, mergers, method="link", new=True)
                await clear_email_requests(session, browser, "sign-up", sign_up_request.email)
    except (TooManyAttempts, EmailTaken) as e:
        return await _sign_up_page(request, valid_invitation, form, e)
    except PermissionDenied as e:  # another tab was faster
        return _sign_up_closed_page(request, e)
    if login is None:
        return _email_sent_page(request, sign_up_request)
    set_login_cookies(browser, login)
    return redirect_after_login(request, login, sign_up_request.next_path)


@router.get("/account-menu", name="account_menu", tags=[Access.learner])
async def account_menu(request: Request, lang: str, account: OptionalAccount, cookies: CookiesDep) -> HTMLResponse:
    context = menu_context(account, cookies, request.headers.get("hx-current-url", ""))
    return render_fragment(request, "accounts/menu.html", **context, bell=None)


class InvalidCredentials(LockstepError):
    """The same message for every reason, so that it does not reveal whether the address has an account."""

    status = 422
    message = INVALID_CREDENTIALS


class InvalidFields(LockstepError):
    """``errors`` are messages by field of a form, to be translated."""

    status = 422
    message = N_("Check the highlighted fields.")

    def __init__(self, errors: Mapping[str, str]) -> None:
        super().__init__()
        self.errors = errors

    def localized_errors(self) -> dict[str, str]:
        """The messages in the current language."""
        return {field: i18n.gettext(message) for field, message in self.errors.items()}


def account_page(
    request: Request, template: str, failure: LockstepError | None = None, /, **context: Any
) -> HTMLResponse:
    """A page of account forms, which is never cached. ``failure`` is why a form is shown again."""
    settings = SETTINGS.get(request.app)
    defaults: dict[str, Any] = {"form": _EMPTY_FORM, "account": None, "group": "", "errors": {}, "error": ""}
    if isinstance(failure, InvalidFields):
        defaults["errors"] = failure.localized_errors()
    elif failure is not None:
        defaults["error"] = failure.localized_message()
    defaults["flash_messages"] = flash.pop(request_cookies(request))
    defaults |= {"sign_up": settings.sign_up, "email_enabled": bool(settings.smtp_url)}
    at = settings.public_url, request.base_url
    defaults |= {"relying_party": site_relying_party(*at), "localhost_url": localhost_url(*at)}
    defaults["identity_providers"] = [
        (name, site.settings.label) for name, site in IDENTITY_PROVIDERS.get(request.app).items()
    ]
    page = render_private_page(request, template, failure.status if failure else 200, **{**defaults, **context})
    page.headers.update(failure.headers if failure else {})
    return page


def redirect_to(request: Request, path: str | None) -> RedirectResponse:
    """Redirect to a path on this site, or to the home page."""
    home = str(request.app.url_path_for("home", lang=i18n.current_language()))
    return RedirectResponse(path or home, 303, NO_STORE)


def redirect_after_login(request: Request, login: Login, path: str | None) -> RedirectResponse:
    """Redirect to the second step if it is still to come, to where staff set it up if they must, or to the path."""
    lang = i18n.current_language()
    if login.pending:
        query = f"?{urlencode({'next': path})}" if path else ""
        return redirect_to(request, f"{request.app.url_path_for('second_step_page', lang=lang)}{query}")
    if login.lacks_second_factor and SETTINGS.get(request.app).staff_second_factor:
        return redirect_to(request, str(request.app.url_path_for("authenticator_page", lang=lang)))
    return redirect_to(request, path)


async def lock_for_sensitive_change(request: Request, session: AsyncSession) -> Account:
    """Lock the account of this browser, and check the browser again. Raises as ``lock_signed_in_account``."""
    staff = SETTINGS.get(request.app).staff_second_factor
    return await lock_signed_in_account(session, await get_principal(request), staff_second_factor=staff)


async def answer_login_required(request: Request, error: Exception) -> Response:
    """Redirect a browser that opened a page to the sign-in page and then back; send anything else the error."""
    return await redirect_opened_page(request, error, "sign_in_page")


async def redirect_opened_page(request: Request, error: Exception, route: str) -> Response:
    """Redirect a browser that opened a page to another page; send anything else the error."""
    opened = request.method == "GET" and "text/html" in request.headers.get("accept", "")
    if not opened or is_htmx_request(request):
        return await handle_framework_error(request, error)
    address = request.url_for(route, lang=i18n.current_language()).include_query_params(next=request.url.path)
    return RedirectResponse(str(address), 303, NO_STORE)


async def _authenticate(
    db: Database, passwords: AsyncPasswordHasher, email: str, password: str
) -> tuple[Account, str | None]:
    """The account that this password opens, and a new hash if the stored one has outdated parameters."""
    async with db.session() as session:
        account = await find_by_email(session, email)
    fits = await passwords.verify(account.password_hash if account else None, password)
    if account is None:
        record(SecurityEvent.sign_in_failed, reason="no account")
        raise InvalidCredentials
    if account.password_hash is None or not fits or account.email_confirmed_at is None:
        why = "no password" if account.password_hash is None else "wrong password" if not fits else "not confirmed"
        record(SecurityEvent.sign_in_failed, account=account.id, reason=why)
        raise InvalidCredentials
    return account, await passwords.hash(password) if passwords.needs_rehash(account.password_hash) else None


async def _sign_up_in_background(
    db: Database, sign_up_request: SignUpRequest, hashed: str, mailer: AccountMailer
) -> None:
    async with db.writing() as session:
        await sign_up(session, sign_up_request, hashed, None, mailer)


async def _find_invitation(db: Database, settings: Settings, token: str) -> ValidInvitation | None:
    """The invitation, if there is one. Raises PermissionDenied if sign-up is closed or needs an invitation."""
    valid_invitation = None
    if token:
        async with db.session() as session:
            valid_invitation = await find_invitation(session, token)
    check_sign_up_allowed(settings.sign_up, valid_invitation)
    return valid_invitation


async def _sign_up_page(
    request: Request,
    invitation: ValidInvitation | None,
    form: Mapping[str, str],
    failure: LockstepError | None = None,
    **context: Any,
) -> HTMLResponse:
    setup = invitation is not None and invitation.makes_first_admin
    context |= {"makes_first_admin": setup, "group": await _find_invited_group(request, form.get("next", ""))}
    return account_page(request, "accounts/sign_up.html", failure, form=form, **context)


def _email_sent_page(request: Request, sign_up_request: SignUpRequest) -> HTMLResponse:
    form = {"next": sign_up_request.next_path or ""}
    return account_page(request, "accounts/email_sent.html", email=sign_up_request.email, form=form)


async def _find_invited_group(request: Request, path: str) -> str:
    """The name of the group that waits for whoever signs in or up; empty if there is none."""
    if not path:
        return ""
    async with DATABASE.get(request.app).session() as session:
        return await INVITED_GROUP_FINDER.get(request.app)(session, path)


def _sign_up_closed_page(request: Request, why: PermissionDenied) -> HTMLResponse:
    """The page that explains why no account can be created, with a link to sign in."""
    return account_page(request, "accounts/sign_up_closed.html", why)
