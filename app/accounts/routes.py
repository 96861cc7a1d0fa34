"""Signing up, in and out, and the piece of the bar that says who is signed in.

What templates get: ``form`` (what was typed), ``wrong`` (by field, what is wrong with it, in words), ``problem`` (a
sentence about the whole) and ``said`` (what the browser is told once).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from fastapi import APIRouter
from starlette.background import BackgroundTask
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from app import i18n
from app.accounts import said
from app.accounts.attempts import TooManyTries
from app.accounts.current import CurrentAccount
from app.accounts.entry import AccountDisabled, enter, leave, open_door
from app.accounts.invitations import Invited, find_invitation, may_sign_up, use_invitation
from app.accounts.mails import Postman
from app.accounts.models import Account
from app.accounts.passkeys import named_address, place_of
from app.accounts.passwords import Passwords
from app.accounts.people import MOST_EMAIL, AccountGone, find_by_email, fresh, readable_email
from app.accounts.signing_up import Newcomer, judge, sign_up
from app.accounts.tries import count_mail, count_tries, mail_was_opened, was_right
from app.db import Database
from app.errors import NotAllowed, Problem
from app.i18n import N_
from app.web.form import own_path, read_form
from app.web.headers import NOTHING_LEFT
from app.web.languages import PREFIX
from app.web.page import fragment, own_page

router = APIRouter(prefix=PREFIX)

NO_ENTRY = N_(
    "This e-mail and password do not fit together. If you have just signed up, open the link in our mail first."
)
_NO_SUCH_FIELDS: Mapping[str, str] = {}


@router.get("/sign-in", name="sign_in_page")
async def sign_in_page(request: Request, lang: str, account: CurrentAccount, next: str = "") -> HTMLResponse:
    return account_page(request, "accounts/sign_in.html", form={"next": own_path(next) or ""}, account=account)


@router.post("/sign-in", name="sign_in")
async def sign_in(request: Request, lang: str) -> Response:
    form = await read_form(request)
    email, password = form.get("email", "").strip(), form.get("password", "")
    email = (
        readable_email(email) or email[:MOST_EMAIL]
    )  # as it was kept: a name in other letters has another spelling there
    db: Database = request.app.state.db
    try:
        await count_tries(request, "sign-in", email)
        account, anew = await _by_password(request, email, password)
        async with db.writing() as session:
            known, account = account.password_hash, await fresh(session, account)
            if account.password_hash != known:
                raise NoEntry  # it was changed while we looked at it
            account.password_hash = anew or known
            entrance = await enter(request, session, account, method="password")
            await was_right(request, session, "sign-in", email)
    except (TooManyTries, AccountDisabled, AccountGone, NoEntry) as e:
        return account_page(request, "accounts/sign_in.html", e.http_status, form=form, problem=e.sentence())
    open_door(request, entrance)
    return onward(request, own_path(form.get("next")))


@router.post("/sign-out", name="sign_out")
async def sign_out(request: Request, lang: str) -> Response:
    db: Database = request.app.state.db
    async with db.writing() as session:
        await leave(request, session)
    said.say(request, "signed_out")
    answer = onward(request, None)
    answer.headers.update(NOTHING_LEFT)
    return answer


@router.get("/sign-up", name="sign_up_page")
async def sign_up_page(
    request: Request, lang: str, account: CurrentAccount, next: str = "", invitation: str = ""
) -> HTMLResponse:
    try:
        invited = await _invited(request, invitation)
    except NotAllowed as e:
        return _closed(request, e)
    form = {"next": own_path(next) or "", "invitation": invitation, "email": (invited and invited.email) or ""}
    return account_page(request, "accounts/sign_up.html", form=form, account=account)


@router.post("/sign-up", name="sign_up")
async def sign_up_now(request: Request, lang: str) -> Response:
    form = await read_form(request)
    try:
        invited = await _invited(request, form.get("invitation", ""))
    except NotAllowed as e:
        return _closed(request, e)
    newcomer, wrong = judge(form, lang, invited)
    template = "accounts/sign_up.html"
    if wrong:
        return account_page(request, template, 422, form=form, wrong=in_words(wrong))
    db: Database = request.app.state.db
    passwords: Passwords = request.app.state.passwords
    postman = Postman(request)
    entrance = None
    try:
        await count_mail(request, "sign-up", newcomer.email)
        hashed = await passwords.hash(form["password"])
        if invited is None:
            answer = account_page(request, "accounts/mail_sent.html", email=newcomer.email)
            # Behind the answer: how long it takes says nothing about the address.
            answer.background = BackgroundTask(_sign_up_unseen, db, newcomer, hashed, postman)
            return answer
        async with db.writing() as session:
            await use_invitation(session, invited)
            if (opened := await sign_up(session, newcomer, hashed, invited, postman)) is not None:
                entrance = await enter(request, session, opened, method="link", new=True)
                await mail_was_opened(request, session, "sign-up", newcomer.email)
    except TooManyTries as e:
        return account_page(request, template, e.http_status, form=form, problem=e.sentence())
    except NotAllowed as e:  # another tab was quicker
        return _closed(request, e)
    postman.wake()
    if entrance is None:
        return account_page(request, "accounts/mail_sent.html", email=newcomer.email)
    open_door(request, entrance)
    return onward(request, own_path(form.get("next")))


@router.get("/account-menu", name="account_menu")
async def account_menu(request: Request, lang: str, account: CurrentAccount) -> HTMLResponse:
    back = _to_return_to(request.headers.get("hx-current-url", "")[:2000])
    return fragment(request, "accounts/menu.html", account=account, next=back, said=said.heard(request))


def _to_return_to(address: str) -> str:
    """The path to come back to after signing in; nothing if the page is about that itself, or none of ours. Pure."""
    try:
        here = urlsplit(address)
    except ValueError:
        return ""
    if here.path.split("/")[2:3] in (["sign-in"], ["sign-up"], ["forgotten"], ["mail"]):
        return ""
    return own_path(f"{here.path}?{here.query}" if here.query else here.path) or ""


class NoEntry(Problem):
    """One sentence for every reason: it does not say whether the address has an account."""

    status = 422
    code = "no_entry"
    message = NO_ENTRY


def account_page(request: Request, template: str, http_status: int = 200, /, **context: Any) -> HTMLResponse:
    """A page for one person, never kept."""
    settings = request.app.state.settings
    usual: dict[str, Any] = {
        "form": _NO_SUCH_FIELDS,
        "wrong": {},
        "problem": "",
        "account": None,
        "said": said.heard(request),
    }
    usual |= {"sign_up": settings.sign_up, "mails": bool(settings.smtp_url)}
    usual |= {"passkey_place": place_of(request), "named_address": named_address(request)}
    usual["sites"] = [(name, site.settings.label) for name, site in request.app.state.sites.items()]
    return own_page(request, template, http_status, **{**usual, **context})


def onward(request: Request, path: str | None) -> RedirectResponse:
    """On to a page of our own, by GET; the front page if none is named."""
    home = str(request.app.url_path_for("home", lang=i18n.current()))
    return RedirectResponse(path or home, 303, {"cache-control": "no-store"})


def in_words(wrong: Mapping[str, str]) -> dict[str, str]:
    """The messages in the language in use."""
    return {field: i18n.gettext(message) for field, message in wrong.items()}


async def ask_to_sign_in(request: Request, error: Exception) -> Response:
    """Somebody who is signed out wants a page: they may sign in, and come back to it."""
    address = request.url_for("sign_in_page", lang=i18n.current()).include_query_params(next=request.url.path)
    return RedirectResponse(str(address), 303, {"cache-control": "no-store"})


async def _by_password(request: Request, email: str, password: str) -> tuple[Account, str | None]:
    """The account that is open to this password, and a hash with today's parameters where it has one of others."""
    db: Database = request.app.state.db
    passwords: Passwords = request.app.state.passwords
    async with db.session() as session:
        account = await find_by_email(session, email)
    fits = await passwords.check(account.password_hash if account else None, password)
    if account is None or account.password_hash is None or not fits or account.email_confirmed_at is None:
        raise NoEntry
    return account, await passwords.hash(password) if passwords.outdated(account.password_hash) else None


async def _sign_up_unseen(db: Database, newcomer: Newcomer, hashed: str, postman: Postman) -> None:
    async with db.writing() as session:
        await sign_up(session, newcomer, hashed, None, postman)
    postman.wake()


async def _invited(request: Request, token: str) -> Invited | None:
    """The invitation, if there is one. Raises NotAllowed where nobody signs up, or not without one."""
    invited = None
    if token:
        db: Database = request.app.state.db
        async with db.session() as session:
            invited = await find_invitation(session, token)
    may_sign_up(request.app.state.settings.sign_up, invited)
    return invited


def _closed(request: Request, why: NotAllowed) -> HTMLResponse:
    """Why no account is made, with the way to the sign-in for who has one."""
    return account_page(request, "accounts/closed.html", why.http_status, problem=why.sentence())
