"""Password resets, and the pages that links in emails open. Opening a link changes nothing; its button does."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fastapi import APIRouter
from sqlalchemy.ext.asyncio import AsyncSession
from starlette.background import BackgroundTask
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from app import i18n
from app.accounts import flash
from app.accounts.auth_challenges import revoke_challenges
from app.accounts.auth_methods import list_passwordless_methods
from app.accounts.auth_sessions import revoke_all_auth_sessions
from app.accounts.dependencies import (
    AccountMailerDep,
    BrowserDep,
    LoginRequired,
    account_mailer,
    browser_of,
    get_principal,
)
from app.accounts.email_links import (
    EmailLinkForAnotherAccount,
    EmailLinkUsed,
    InvalidEmailLink,
    LinkPurpose,
    find_link,
    revoke_links,
    use_link,
)
from app.accounts.emails import AccountMailer
from app.accounts.identity_providers import IDENTITY_PROVIDERS
from app.accounts.login import Login, log_in, set_login_cookies
from app.accounts.merge import MERGERS
from app.accounts.models import Account, EmailLink
from app.accounts.passwords import PASSWORD_HASHER, password_weakness
from app.accounts.rate_limit import clear_auth_attempts, clear_email_requests, count_auth_attempt, count_email_request
from app.accounts.routes import (
    InvalidFields,
    account_page,
    lock_for_sensitive_change,
    redirect_after_login,
    redirect_to,
)
from app.accounts.service import delete_unclaimed_account, find_by_email, find_claimed_account, lock_account
from app.accounts.sign_up_cookie import forget_sign_up, has_signed_up
from app.accounts.trusted_devices import trust_device
from app.accounts.validation import INVALID_EMAIL, email_key, normalize_email
from app.db import Database, advisory_lock, now
from app.errors import LockstepError
from app.i18n import N_
from app.rate_limit import TooManyAttempts
from app.security_log import SecurityEvent, record
from app.web.access import Access
from app.web.dependencies import DATABASE, DatabaseDep
from app.web.forms import local_path, read_form
from app.web.languages import LANGUAGE_PREFIX

router = APIRouter(prefix=LANGUAGE_PREFIX, tags=[Access.public])

WRONG_PASSWORD = N_("Incorrect password.")
_PAGES = {
    LinkPurpose.confirm: "accounts/confirm.html",
    LinkPurpose.reset: "accounts/new_password.html",
    LinkPurpose.change: "accounts/change_email.html",
}


@router.get("/password-reset", name="password_reset_page")
async def forgot_password_page(request: Request, lang: str, email: str = "") -> HTMLResponse:
    return account_page(request, "accounts/forgot_password.html", form={"email": normalize_email(email) or ""})


@router.post("/password-reset", name="password_reset")
async def request_password_reset(
    request: Request, lang: str, db: DatabaseDep, browser: BrowserDep, mailer: AccountMailerDep
) -> Response:
    form = await read_form(request)
    email = normalize_email(form.get("email", ""))
    template = "accounts/forgot_password.html"
    if email is None:
        return account_page(request, template, InvalidFields({"email": INVALID_EMAIL}), form=form)
    try:
        await count_email_request(db, browser, "reset", email)
    except TooManyAttempts as e:
        return account_page(request, template, e, form=form)
    answer = account_page(request, "accounts/email_sent.html", email=email)
    # Looked up after the response is sent, so that its timing reveals nothing about the address.
    answer.background = BackgroundTask(_send_reset_link, db, mailer, email)
    return answer


@router.get("/email-link/{token}", name="email_link_page")
async def email_link_page(request: Request, lang: str, token: str, db: DatabaseDep) -> HTMLResponse:
    try:
        async with db.session() as session:
            link, account = await find_link(session, token)
    except InvalidEmailLink as e:
        return await _invalid_link_page(request, e)
    if link.purpose == LinkPurpose.change:
        await _require_link_owner(request, account)
    return _link_page(request, link, account)


@router.post("/email-link/{token}", name="email_link")
async def use_email_link(request: Request, lang: str, token: str, db: DatabaseDep) -> Response:
    form = await read_form(request)
    try:
        async with db.session() as session:
            link, account = await find_link(session, token)
        match LinkPurpose(link.purpose):
            case LinkPurpose.confirm:
                return await _confirm(request, link, account, form.get("password", ""))
            case LinkPurpose.reset:
                return await _reset(request, link, account, form.get("password", ""))
            case LinkPurpose.change:
                return await _change(request, link, account)
    except InvalidEmailLink as e:
        return await _invalid_link_page(request, e)
    except TooManyAttempts as e:
        return _link_page(request, link, account, e)


async def _confirm(request: Request, link: EmailLink, account: Account, password: str) -> Response:
    """The link proves that the mailbox is theirs; the browser or the password proves that they signed up."""
    browser, db = browser_of(request), DATABASE.get(request.app)
    await count_auth_attempt(db, browser, "confirm", account.email)  # separate from sign-ins: attackers have no link
    passwords = PASSWORD_HASHER.get(request.app)
    if not has_signed_up(browser, account) and not await passwords.verify(account.password_hash, password):
        record(SecurityEvent.sign_in_failed, account=account.id, reason="wrong password")
        return _link_page(request, link, account, InvalidFields({"password": WRONG_PASSWORD}))
    async with db.writing() as session:
        await use_link(session, link)
        login = await _confirm_and_log_in(request, session, account)
        await clear_auth_attempts(session, browser, "confirm", account.email)
        await clear_email_requests(session, browser, "sign-up", account.email)
    forget_sign_up(browser)
    set_login_cookies(browser, login)
    return redirect_after_login(request, login, local_path(link.next_path))


async def _reset(request: Request, link: EmailLink, account: Account, password: str) -> Response:
    """Set a new password, sign out every browser, and sign in this one. The link also confirms the address.

    Passkeys and linked sites are kept, but each is shown because somebody else may have added it.
    """
    if weak := password_weakness(password, name=account.name, email=account.email):
        return _link_page(request, link, account, InvalidFields({"password": weak}))
    passwords = PASSWORD_HASHER.get(request.app)
    hashed = await passwords.hash(password)
    db, browser, mailer = DATABASE.get(request.app), browser_of(request), account_mailer(request)
    async with db.writing() as session:
        account = await lock_account(session, account)  # before its links, as every other change does
        await use_link(session, link)
        await revoke_all_auth_sessions(session, account)
        login = await _confirm_and_log_in(request, session, account, password_hash=hashed)
        await revoke_links(session, account)
        await revoke_challenges(session, account)
        await clear_email_requests(session, browser, "reset", account.email)
        auth_methods = await list_passwordless_methods(session, account, IDENTITY_PROVIDERS.get(request.app))
        await mailer.send_changed(session, account, "password", account.email, auth_methods)
    record(SecurityEvent.password_changed, account=account.id, reason="link in an email")
    set_login_cookies(browser, login, what="password")
    look = str(request.app.url_path_for("security_page", lang=i18n.current_language()))
    return redirect_after_login(request, login, f"{look}?after=reset" if auth_methods else None)


async def _change(request: Request, link: EmailLink, account: Account) -> Response:
    """Change the address to the new one and notify the old one.

    The person who opens the link must be signed in, so a link that was sent to a mistyped address is of no use to a
    stranger.
    """
    await _require_link_owner(request, account)
    db, browser, mailer = DATABASE.get(request.app), browser_of(request), account_mailer(request)
    async with db.writing() as session:
        await advisory_lock(session, f"address {email_key(link.email)}")
        account = await lock_for_sensitive_change(request, session)
        await use_link(session, link)
        taken = await find_claimed_account(session, link.email)
        if taken is not None and taken.id != account.id:
            raise EmailLinkUsed
        await delete_unclaimed_account(session, link.email)
        await mailer.send_changed(session, account, "address", account.email)
        account.email, account.email_key, account.email_confirmed_at = link.email, email_key(link.email), now()
        await revoke_links(session, account)  # those to the old address
    record(SecurityEvent.email_changed)
    trust_device(browser, link.email)
    flash.add(browser.cookies, "email")
    return redirect_to(request, None)


async def _require_link_owner(request: Request, account: Account) -> None:
    """Check that the link belongs to the signed-in account. Raises LoginRequired or EmailLinkForAnotherAccount."""
    signed_in = (await get_principal(request)).account
    if signed_in is None:
        raise LoginRequired
    if signed_in.id != account.id:
        record(SecurityEvent.email_link_refused, reason=EmailLinkForAnotherAccount.code)
        raise EmailLinkForAnotherAccount


async def _confirm_and_log_in(
    request: Request, session: AsyncSession, account: Account, password_hash: str = ""
) -> Login:
    account = await lock_account(session, account)
    new = account.email_confirmed_at is None
    account.email_confirmed_at = account.email_confirmed_at or now()
    account.password_hash = password_hash or account.password_hash
    await session.flush()
    mergers = MERGERS.get(request.app)
    return await log_in(session, browser_of(request), account, mergers, method="link", new=new)


async def _send_reset_link(db: Database, mailer: AccountMailer, email: str) -> None:
    async with db.writing() as session:
        account = await find_by_email(session, email, held=True)
        if account is not None and account.disabled_at is None:
            await mailer.send_link(session, account, LinkPurpose.reset, account.email)
    if account is None:
        record(SecurityEvent.password_reset_requested, reason="no account")
    else:
        reason = "account disabled" if account.disabled_at is not None else ""
        record(SecurityEvent.password_reset_requested, account=account.id, reason=reason)


def _link_page(
    request: Request, link: EmailLink, account: Account, failure: LockstepError | None = None
) -> HTMLResponse:
    facts: Mapping[str, Any] = {
        "token": request.path_params["token"],
        "email": link.email,
        "owner": account,
        "signed_up_here": has_signed_up(browser_of(request), account),
    }
    return account_page(request, _PAGES[LinkPurpose(link.purpose)], failure, **facts)


async def _invalid_link_page(request: Request, error: InvalidEmailLink) -> HTMLResponse:
    """Whoever is signed in has probably used the link already, and needs neither a new one nor the form to sign in."""
    record(SecurityEvent.email_link_refused, reason=error.code)
    owner = (await get_principal(request)).account
    return account_page(request, "accounts/invalid_link.html", error, owner=owner)
