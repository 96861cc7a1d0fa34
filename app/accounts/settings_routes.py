"""The pages on which people change their account: profile, security, data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from zoneinfo import available_timezones

from fastapi import APIRouter
from starlette.background import BackgroundTask
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response, StreamingResponse

from app import i18n
from app.accounts import said
from app.accounts.agents import browser_words
from app.accounts.attempts import OF_EXPORTS, TooManyTries, account_key, count_try
from app.accounts.belongings import erase, export
from app.accounts.current import SignedIn, ThisSignIn
from app.accounts.entry import close_door
from app.accounts.handles import change_handle, why_not_handle
from app.accounts.identities import list_identities
from app.accounts.links import Purpose, end_links
from app.accounts.mail_routes import WRONG_PASSWORD
from app.accounts.mails import Postman
from app.accounts.models import Account, Mailing, SignIn
from app.accounts.passkeys import list_passkeys
from app.accounts.passwords import Passwords, weakness
from app.accounts.people import find_opened, fresh, readable_email, readable_name
from app.accounts.routes import account_page, in_words
from app.accounts.sign_in_cookie import keep_sign_in
from app.accounts.sign_ins import FRESH, LASTS, end_all, end_listed, list_sign_ins, start_sign_in
from app.accounts.signing_up import NO_EMAIL, NO_NAME
from app.accounts.tries import count_mail, count_tries, was_right
from app.accounts.ways_in import other_ways_in
from app.db import Database, now, one_at_a_time
from app.i18n import N_
from app.web.form import read_form
from app.web.headers import NOTHING_LEFT
from app.web.languages import PREFIX

router = APIRouter(prefix=f"{PREFIX}/settings")

NO_ZONE = N_("Choose a time zone of the list.")
STALE = N_("You signed in a while ago. Sign out, sign in again, and come back within ten minutes.")
_SECURITY = "accounts/security.html"
_DATA = "accounts/data.html"


@router.get("", name="settings_page")
async def settings_page(request: Request, lang: str, account: SignedIn) -> HTMLResponse:
    return _profile(request, account, _typed(account))


@router.post("", name="settings_profile")
async def save_profile(request: Request, lang: str, account: SignedIn) -> Response:
    form = await read_form(request)
    name, handle = readable_name(form.get("name", "")), form.get("handle", "").strip().removeprefix("@").lower()
    wrong: dict[str, str] = {} if name else {"name": NO_NAME}
    if form.get("time_zone") not in available_timezones():
        wrong["time_zone"] = NO_ZONE
    db: Database = request.app.state.db
    async with db.writing() as session:
        await one_at_a_time(session, "handles")
        mine = await fresh(session, account)
        if refusal := await why_not_handle(session, mine, handle):
            wrong["handle"] = refusal
        if not wrong:
            await change_handle(session, mine, handle)
            mine.name, mine.time_zone = name or mine.name, form["time_zone"]
            mine.language = form["language"] if form.get("language") in i18n.CODES else mine.language
            mine.mailing = form["mailing"] if form.get("mailing") in set(Mailing) else mine.mailing
            mine.public_profile = form.get("public_profile") == "on"
    if wrong:
        return _profile(request, account, {**_typed(account), **form}, 422, wrong=in_words(wrong))
    return back(request, "settings_page", "saved")


@router.get("/security", name="security_page")
async def security_page(
    request: Request, lang: str, account: SignedIn, here: ThisSignIn, after: str = ""
) -> HTMLResponse:
    return await _security(request, account, here, after_reset=after == "reset")


@router.post("/security/password", name="change_password")
async def change_password(request: Request, lang: str, account: SignedIn, here: ThisSignIn) -> Response:
    form = await read_form(request)
    new = form.get("new_password", "")
    passwords: Passwords = request.app.state.passwords
    try:
        wrong = await not_theirs(request, account, here, form.get("password", ""), "password")
    except TooManyTries as e:
        return await _security(request, account, here, e.http_status, problem=e.sentence())
    if weak := weakness(new, name=account.name, email=account.email):
        wrong["new_password"] = weak
    if wrong:
        return await _security(request, account, here, 422, wrong=in_words(wrong))
    hashed = await passwords.hash(new)
    db: Database = request.app.state.db
    postman = Postman(request)
    async with db.writing() as session:
        mine = await fresh(session, account)
        mine.password_hash = hashed
        await end_all(session, mine)
        await end_links(session, mine)
        token = await start_sign_in(session, mine, method=here.method, agent=here.agent, address=here.address)
        ways = await other_ways_in(session, mine, request.app.state.sites)
        await postman.changed(session, mine, "password", mine.email, ways)
    postman.wake()
    keep_sign_in(request, token, int(LASTS.total_seconds()))
    return back(request, "security_page", "password")


@router.post("/security/email", name="change_email")
async def change_email(request: Request, lang: str, account: SignedIn, here: ThisSignIn) -> Response:
    form = await read_form(request)
    email = readable_email(form.get("email", ""))
    try:
        wrong = await not_theirs(request, account, here, form.get("email_password", ""), "email_password")
        if email is None:
            wrong["email"] = NO_EMAIL
        elif not wrong:
            await count_mail(request, "change", email)
    except TooManyTries as e:
        return await _security(request, account, here, e.http_status, form=form, problem=e.sentence())
    if wrong or email is None:
        return await _security(request, account, here, 422, form=form, wrong=in_words(wrong))
    answer = back(request, "security_page", "change_sent")
    answer.background = BackgroundTask(_mail_change, request.app.state.db, Postman(request), account, email)
    return answer


@router.post("/security/sign-ins", name="end_sign_ins")
async def end_sign_ins(request: Request, lang: str, account: SignedIn, here: ThisSignIn) -> Response:
    form = await read_form(request)
    db: Database = request.app.state.db
    async with db.writing() as session:
        if form.get("which") == "others":
            await end_all(session, account, but=here.token_hash)
        else:
            await end_listed(session, account, form.get("which", ""))
    return back(request, "security_page", "ended")


@router.get("/data", name="data_page")
async def data_page(request: Request, lang: str, account: SignedIn, here: ThisSignIn) -> HTMLResponse:
    return account_page(request, _DATA, account=account, fresh=is_fresh(here))


@router.get("/data/export", name="export_data")
async def export_data(request: Request, lang: str, account: SignedIn) -> StreamingResponse:
    name = f"lockstep-{account.handle}.json"
    headers = {"content-disposition": f'attachment; filename="{name}"', "cache-control": "no-store"}
    state = request.app.state
    async with state.db.writing() as session:
        await count_try(session, account_key("export", account.id), OF_EXPORTS)
    stream = export(state.db, account, state.exporters, state.settings.data_dir)
    return StreamingResponse(stream, media_type="application/json", headers=headers)


@router.post("/data/delete", name="delete_account")
async def delete_account(request: Request, lang: str, account: SignedIn, here: ThisSignIn) -> Response:
    form = await read_form(request)
    try:
        wrong = await not_theirs(request, account, here, form.get("password", ""), "password")
    except TooManyTries as e:
        return account_page(request, _DATA, e.http_status, account=account, fresh=is_fresh(here), problem=e.sentence())
    if wrong:
        return account_page(request, _DATA, 422, account=account, fresh=is_fresh(here), wrong=in_words(wrong))
    db: Database = request.app.state.db
    async with db.writing() as session:
        await erase(session, account, request.app.state.erasers)
    close_door(request)
    said.say(request, "deleted")
    return RedirectResponse(str(request.app.url_path_for("home", lang=lang)), 303, NOTHING_LEFT)


async def not_theirs(request: Request, account: Account, here: SignIn, password: str, field: str) -> dict[str, str]:
    """What is wrong with who asks: the password is, or, without one, they signed in too long ago."""
    if account.password_hash is None:
        return {} if is_fresh(here) else {field: STALE}
    await count_tries(request, "password", account.email)  # apart from sign-ins: guesses there lock nobody out here
    passwords: Passwords = request.app.state.passwords
    if not await passwords.check(account.password_hash, password):
        return {field: WRONG_PASSWORD}
    db: Database = request.app.state.db
    async with db.writing() as session:
        await was_right(request, session, "password", account.email)
    return {}


def is_fresh(here: SignIn) -> bool:
    """Whether they signed in so lately that nobody asks again."""
    return now() - here.created_at < FRESH


async def _mail_change(db: Database, postman: Postman, account: Account, email: str) -> None:
    """A link to the new address; if somebody has it, a mail that says so. Behind the answer, which says neither."""
    async with db.writing() as session:
        account = await fresh(session, account)
        other = await find_opened(session, email)
        if other is None or other.id == account.id:
            await postman.link(session, account, Purpose.change, email)
        else:
            await postman.already(session, other)
    postman.wake()


def _typed(account: Account) -> dict[str, str]:
    shown = {name: str(getattr(account, name)) for name in ("name", "handle", "time_zone", "language", "mailing")}
    return {**shown, **({"public_profile": "on"} if account.public_profile else {})}


def _profile(
    request: Request, account: Account, form: Mapping[str, str], http_status: int = 200, /, **context: Any
) -> HTMLResponse:
    zones = sorted(zone for zone in available_timezones() if "/" in zone or zone in ("UTC", account.time_zone))
    return account_page(
        request, "accounts/profile.html", http_status, account=account, form=form, zones=zones, **context
    )


async def _security(
    request: Request, account: Account, here: SignIn, http_status: int = 200, /, **context: Any
) -> HTMLResponse:
    db: Database = request.app.state.db
    async with db.session() as session:
        sign_ins = await list_sign_ins(session, account)
        passkeys = await list_passkeys(session, account)
        ways = await other_ways_in(session, account, request.app.state.sites)
        linked = {each.issuer: each for each in await list_identities(session, account)}
    facts = {"account": account, "here": here, "sign_ins": sign_ins, "fresh": is_fresh(here)}
    facts |= {"browser_words": browser_words, "passkeys": passkeys, "ways": ways, "after_reset": False}
    facts["linked"] = {name: linked.get(site.settings.issuer) for name, site in request.app.state.sites.items()}
    return account_page(request, _SECURITY, http_status, **{**facts, **context})


def back(request: Request, route: str, what: str) -> RedirectResponse:
    """To a page of settings, which says what was done."""
    said.say(request, what)
    return RedirectResponse(str(request.app.url_path_for(route, lang=i18n.current())), 303)
