"""A forgotten password, and where the links of mails lead: opening one changes nothing, its button does."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fastapi import APIRouter
from sqlalchemy.ext.asyncio import AsyncSession
from starlette.background import BackgroundTask
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from app import i18n
from app.accounts import said
from app.accounts.attempts import TooManyTries
from app.accounts.current import SignInNeeded, who
from app.accounts.devices import remember
from app.accounts.entry import Entrance, enter, open_door
from app.accounts.links import LinkGone, LinkOfAnother, LinkUsed, Purpose, end_links, find_link, use_link
from app.accounts.mails import Postman
from app.accounts.models import Account, MailLink
from app.accounts.passwords import Passwords, weakness
from app.accounts.people import email_key, find_by_email, find_opened, fresh, make_room, readable_email
from app.accounts.routes import account_page, in_words, onward
from app.accounts.sign_ins import end_all
from app.accounts.signing_up import NO_EMAIL
from app.accounts.tries import count_mail, count_tries, mail_was_opened, was_right
from app.accounts.ways_in import other_ways_in
from app.db import Database, now, one_at_a_time
from app.i18n import N_
from app.web.form import read_form
from app.web.languages import PREFIX

router = APIRouter(prefix=PREFIX)

WRONG_PASSWORD = N_("This is not the password.")
_PAGES = {
    Purpose.confirm: "accounts/confirm.html",
    Purpose.reset: "accounts/new_password.html",
    Purpose.change: "accounts/change_email.html",
}


@router.get("/forgotten", name="forgotten_page")
async def forgotten_page(request: Request, lang: str, email: str = "") -> HTMLResponse:
    return account_page(request, "accounts/forgotten.html", form={"email": readable_email(email) or ""})


@router.post("/forgotten", name="forgotten")
async def forgotten(request: Request, lang: str) -> Response:
    form = await read_form(request)
    email = readable_email(form.get("email", ""))
    template = "accounts/forgotten.html"
    if email is None:
        return account_page(request, template, 422, form=form, wrong=in_words({"email": NO_EMAIL}))
    try:
        await count_mail(request, "reset", email)
    except TooManyTries as e:
        return account_page(request, template, e.http_status, form=form, problem=e.sentence())
    answer = account_page(request, "accounts/mail_sent.html", email=email)
    # Looked up behind the answer: how long it takes says nothing about the address.
    answer.background = BackgroundTask(_mail_reset, request.app.state.db, Postman(request), email)
    return answer


@router.get("/mail/{token}", name="mail_link_page")
async def mail_link_page(request: Request, lang: str, token: str) -> HTMLResponse:
    db: Database = request.app.state.db
    try:
        async with db.session() as session:
            link, account = await find_link(session, token)
    except LinkGone as e:
        return _gone(request, e)
    if link.purpose == Purpose.change:
        await _asked(request, account)
    return _link_page(request, link, account)


@router.post("/mail/{token}", name="mail_link")
async def mail_link(request: Request, lang: str, token: str) -> Response:
    form = await read_form(request)
    db: Database = request.app.state.db
    try:
        async with db.session() as session:
            link, account = await find_link(session, token)
        match Purpose(link.purpose):
            case Purpose.confirm:
                return await _confirm(request, link, account, form.get("password", ""))
            case Purpose.reset:
                return await _reset(request, link, account, form.get("password", ""))
            case Purpose.change:
                return await _change(request, link, account)
    except LinkGone as e:
        return _gone(request, e)
    except TooManyTries as e:
        return _link_page(request, link, account, e.http_status, problem=e.sentence())


async def _confirm(request: Request, link: MailLink, account: Account, password: str) -> Response:
    """The mailbox is theirs; the password says that they are who signed up."""
    await count_tries(request, "confirm", account.email)  # apart from sign-ins: strangers who guess have no link
    passwords: Passwords = request.app.state.passwords
    if not await passwords.check(account.password_hash, password):
        return _link_page(request, link, account, 422, wrong=in_words({"password": WRONG_PASSWORD}))
    db: Database = request.app.state.db
    async with db.writing() as session:
        await use_link(session, link)
        entrance = await _open(request, session, account)
        await was_right(request, session, "confirm", account.email)
        await mail_was_opened(request, session, "sign-up", account.email)
    open_door(request, entrance)
    return onward(request, None)


async def _reset(request: Request, link: MailLink, account: Account, password: str) -> Response:
    """A new password. Every browser is signed out, this one is signed in; the mailbox is theirs, so it is confirmed.

    Passkeys and other sites are its owner's and stay; but somebody else may have added one, so each is shown.
    """
    if weak := weakness(password, name=account.name, email=account.email):
        return _link_page(request, link, account, 422, wrong=in_words({"password": weak}))
    passwords: Passwords = request.app.state.passwords
    hashed = await passwords.hash(password)
    db: Database = request.app.state.db
    postman = Postman(request)
    async with db.writing() as session:
        await use_link(session, link)
        await end_all(session, account)
        entrance = await _open(request, session, account, password_hash=hashed)
        await end_links(session, account)
        await mail_was_opened(request, session, "reset", account.email)
        ways = await other_ways_in(session, account, request.app.state.sites)
        await postman.changed(session, account, "password", account.email, ways)
    postman.wake()
    open_door(request, entrance, what="password")
    look = str(request.app.url_path_for("security_page", lang=i18n.current()))
    return onward(request, f"{look}?after=reset" if ways else None)


async def _change(request: Request, link: MailLink, account: Account) -> Response:
    """Mail goes to the new address from now on; the old one is told.

    Who opens it has to be in the account: a mail that went to a stranger for a slip of the pen gives nothing away.
    """
    await _asked(request, account)
    db: Database = request.app.state.db
    postman = Postman(request)
    async with db.writing() as session:
        await one_at_a_time(session, f"address {email_key(link.email)}")
        await use_link(session, link)
        taken = await find_opened(session, link.email)
        if taken is not None and taken.id != account.id:
            raise LinkUsed
        await make_room(session, link.email)
        account = await fresh(session, account)
        await postman.changed(session, account, "address", account.email)
        account.email, account.email_key, account.email_confirmed_at = link.email, email_key(link.email), now()
        await end_links(session, account)  # those to the old address
    postman.wake()
    remember(request, link.email)
    said.say(request, "email")
    return onward(request, None)


async def _asked(request: Request, account: Account) -> None:
    """Whoever opens the link is who asked for it. Raises SignInNeeded or LinkOfAnother."""
    here = (await who(request)).account
    if here is None:
        raise SignInNeeded
    if here.id != account.id:
        raise LinkOfAnother


async def _open(request: Request, session: AsyncSession, account: Account, password_hash: str = "") -> Entrance:
    account = await fresh(session, account)
    new = account.email_confirmed_at is None
    account.email_confirmed_at = account.email_confirmed_at or now()
    account.password_hash = password_hash or account.password_hash
    await session.flush()
    return await enter(request, session, account, method="link", new=new)


async def _mail_reset(db: Database, postman: Postman, email: str) -> None:
    async with db.writing() as session:
        account = await find_by_email(session, email, held=True)
        if account is not None and account.disabled_at is None:
            await postman.link(session, account, Purpose.reset, account.email)
    postman.wake()


def _link_page(
    request: Request, link: MailLink, account: Account, http_status: int = 200, /, **context: Any
) -> HTMLResponse:
    facts: Mapping[str, Any] = {"token": request.path_params["token"], "email": link.email, "owner": account}
    return account_page(request, _PAGES[Purpose(link.purpose)], http_status, **facts, **context)


def _gone(request: Request, error: LinkGone) -> HTMLResponse:
    return account_page(request, "accounts/link_gone.html", error.http_status, problem=error.sentence())
