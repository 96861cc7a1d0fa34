"""Signing in with a passkey, and the passkeys of an account. A script asks the device; it sends and gets JSON."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response

from app import i18n
from app.accounts.attempts import OF_HANDSHAKES, TooManyTries, account_key, count_try
from app.accounts.current import SignedIn, ThisSignIn
from app.accounts.entry import enter, open_door
from app.accounts.handshakes import begin, finish, offer, take
from app.accounts.identities import LastWayIn
from app.accounts.mails import Postman
from app.accounts.models import Account, Passkey, SignIn
from app.accounts.passkeys import (
    NoPlaceForPasskeys,
    PasskeyUnusable,
    Place,
    add_passkey,
    ask,
    ask_for_new,
    challenge_of,
    find_passkey,
    id_of,
    open_with,
    place_of,
    remove_passkey,
)
from app.accounts.people import readable_name
from app.accounts.routes import account_page, in_words
from app.accounts.settings_routes import back, is_fresh, not_theirs
from app.accounts.signing_up import NO_NAME
from app.accounts.site_routes import issuers
from app.accounts.tries import count_tries, was_right
from app.db import Database
from app.web.form import own_path, read_form
from app.web.languages import PREFIX

router = APIRouter(prefix=PREFIX)

_NEW = "new passkey"
_NOT_KEPT = {"cache-control": "no-store"}


@router.post("/passkey/options", name="passkey_options")
async def passkey_options(request: Request, lang: str) -> Response:
    """Each page of sign-in asks at once, for the browser to offer passkeys: nothing is kept and nothing counted."""
    return JSONResponse(ask(_place(request), offer(request)), headers=_NOT_KEPT)


@router.post("/passkey/sign-in", name="passkey_sign_in")
async def passkey_sign_in(request: Request, lang: str, body: dict[str, Any]) -> Response:
    place, credential = _place(request), _credential(body)
    challenge, identifier = challenge_of(credential), id_of(credential)
    await count_tries(request, "passkey", identifier)
    db: Database = request.app.state.db
    async with db.writing() as session:
        await take(request, session, challenge)
    async with db.writing() as session:
        _, account = await open_with(session, place, challenge, credential)
        entrance = await enter(request, session, account, method="passkey")
        await was_right(request, session, "passkey", identifier)
    open_door(request, entrance, identifier)
    wanted = body.get("next")
    home = str(request.app.url_path_for("home", lang=i18n.current()))
    return JSONResponse({"next": own_path(wanted if isinstance(wanted, str) else None) or home}, headers=_NOT_KEPT)


@router.post("/settings/security/passkeys/options", name="new_passkey_options")
async def new_passkey_options(request: Request, lang: str, account: SignedIn, here: ThisSignIn) -> Response:
    """Who asks is checked here; what the device answers is bound to this."""
    form = await read_form(request)
    name = readable_name(form.get("passkey_name", ""))
    wrong = await not_theirs(request, account, here, form.get("passkey_password", ""), "passkey_password")
    if name is None:
        wrong["passkey_name"] = NO_NAME
    if wrong or name is None:
        return JSONResponse({"wrong": in_words(wrong)}, 422, _NOT_KEPT)
    place = _place(request)
    db: Database = request.app.state.db
    async with db.writing() as session:
        await count_try(session, account_key("handshake", account.id), OF_HANDSHAKES)
        challenge, options = await ask_for_new(session, place, account)
        await begin(request, session, _NEW, challenge, {"name": name}, account.id)
    return JSONResponse(options, headers=_NOT_KEPT)


@router.post("/settings/security/passkeys", name="add_passkey")
async def add(request: Request, lang: str, account: SignedIn, body: dict[str, Any]) -> Response:
    place, credential = _place(request), _credential(body)
    challenge = challenge_of(credential)
    db: Database = request.app.state.db
    async with db.writing() as session:
        begun = await finish(request, session, _NEW, challenge)
    if begun.account_id != account.id:
        raise PasskeyUnusable
    postman = Postman(request)
    async with db.writing() as session:
        await add_passkey(session, place, account, begun.facts["name"], challenge, credential)
        await postman.changed(session, account, "ways_in", account.email)
    postman.wake()
    return JSONResponse({"next": back(request, "security_page", "passkey").headers["location"]}, headers=_NOT_KEPT)


@router.get("/settings/security/passkeys/{passkey}", name="passkey_page")
async def passkey_page(request: Request, lang: str, account: SignedIn, here: ThisSignIn, passkey: str) -> HTMLResponse:
    return _page(request, account, here, await _mine(request, account, passkey))


@router.post("/settings/security/passkeys/{passkey}", name="rename_passkey")
async def rename(request: Request, lang: str, account: SignedIn, here: ThisSignIn, passkey: str) -> Response:
    form = await read_form(request)
    name = readable_name(form.get("name", ""))
    mine = await _mine(request, account, passkey)
    if name is None:
        return _page(request, account, here, mine, 422, form=form, wrong=in_words({"name": NO_NAME}))
    db: Database = request.app.state.db
    async with db.writing() as session:
        (await find_passkey(session, account, passkey)).name = name
    return back(request, "security_page", "saved")


@router.post("/settings/security/passkeys/{passkey}/remove", name="remove_passkey")
async def remove(request: Request, lang: str, account: SignedIn, here: ThisSignIn, passkey: str) -> Response:
    form = await read_form(request)
    mine = await _mine(request, account, passkey)
    db: Database = request.app.state.db
    try:
        wrong = await not_theirs(request, account, here, form.get("password", ""), "password")
        if wrong:
            return _page(request, account, here, mine, 422, wrong=in_words(wrong))
        async with db.writing() as session:
            await remove_passkey(session, account, passkey, issuers(request))
    except (TooManyTries, LastWayIn) as e:
        return _page(request, account, here, mine, e.http_status, problem=e.sentence())
    return back(request, "security_page", "passkey_removed")


async def _mine(request: Request, account: Account, passkey: str) -> Passkey:
    db: Database = request.app.state.db
    async with db.session() as session:
        return await find_passkey(session, account, passkey)


def _page(
    request: Request, account: Account, here: SignIn, passkey: Passkey, http_status: int = 200, /, **context: Any
) -> HTMLResponse:
    facts = {"account": account, "fresh": is_fresh(here), "passkey": passkey, "form": {"name": passkey.name}}
    return account_page(request, "accounts/passkey.html", http_status, **{**facts, **context})


def _place(request: Request) -> Place:
    place = place_of(request)
    if place is None:
        raise NoPlaceForPasskeys
    return place


def _credential(body: dict[str, Any]) -> dict[str, Any]:
    found = body.get("credential")
    if not isinstance(found, dict):
        raise PasskeyUnusable
    return found
