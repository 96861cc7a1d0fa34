"""Signing in with an account of another site, and linking one: out to the site, and back by one fixed address."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from typing import Annotated, Any

from fastapi import APIRouter, Query
from sqlalchemy.ext.asyncio import AsyncSession
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from app import i18n
from app.accounts import said
from app.accounts.attempts import OF_HANDSHAKES, TooManyTries, account_key, address_key, count_try, take_back
from app.accounts.current import CurrentAccount, SignedIn, ThisSignIn
from app.accounts.entry import enter, open_door
from app.accounts.handshakes import Begun, HandshakeGone, begin, finish
from app.accounts.identities import (
    LastWayIn,
    NotLinked,
    account_of,
    find_identity,
    link,
    sign_up_with,
    unlink,
)
from app.accounts.invitations import find_invitation
from app.accounts.mails import Postman
from app.accounts.models import Account, Identity, SignIn
from app.accounts.other_sites import Asking, Person, Site, SiteDeclined, SiteNotBelieved, SiteSilent, SiteUnknown
from app.accounts.routes import account_page, in_words, onward
from app.accounts.settings_routes import back, is_fresh, not_theirs
from app.accounts.tries import place_of_caller
from app.db import Database
from app.errors import Problem
from app.web.form import own_path, read_form
from app.web.languages import PREFIX

router = APIRouter(prefix=PREFIX)
bare = APIRouter()

Short = Annotated[str, Query(max_length=4000)]


@router.get("/sign-in/with/{site}", name="site_sign_in")
async def site_sign_in(request: Request, lang: str, site: str, next: str = "", invitation: str = "") -> Response:
    db: Database = request.app.state.db
    facts = {"next": own_path(next) or ""}
    try:
        there = _site(request, site)
        async with db.writing() as session:
            await count_try(session, address_key("site", place_of_caller(request)), OF_HANDSHAKES)
        if invitation:
            async with db.session() as session:
                await find_invitation(session, invitation)
            facts["invitation"] = invitation
        address = await _ask(request, site, there, facts)
    except (SiteSilent, SiteNotBelieved, TooManyTries) as e:
        return account_page(request, "accounts/sign_in.html", e.http_status, form=facts, problem=e.sentence())
    return RedirectResponse(address, 303, {"cache-control": "no-store"})


@bare.get("/sign-in/from/{site}", name="site_answer")
async def site_answer(
    request: Request, site: str, account: CurrentAccount, state: Short = "", code: Short = "", iss: Short = ""
) -> Response:
    there = _site(request, site)
    db: Database = request.app.state.db
    facts: Mapping[str, str] = {"lang": i18n.current()}
    linking = False
    try:
        async with db.writing() as session:
            begun = await finish(request, session, f"site {site}", state)
        facts, linking = begun.facts, begun.account_id is not None
        if not code:
            raise SiteDeclined
        if iss and iss != there.settings.issuer:
            raise SiteNotBelieved
        asking = Asking(_redirect_uri(request, site), state, facts["nonce"], facts["verifier"])
        person = await there.person(asking, code)
        with i18n.speaking(facts["lang"]):
            return await _take(request, begun, account, person)
    except Problem as e:
        if e.code not in said.PROBLEMS:
            raise
        said.say(request, e.code)
    route = "security_page" if linking and account is not None else "sign_in_page"
    address = str(request.app.url_path_for(route, lang=facts["lang"]))
    return RedirectResponse(address, 303, {"cache-control": "no-store"})


@router.get("/settings/security/sites/{site}", name="site_page")
async def site_page(request: Request, lang: str, account: SignedIn, here: ThisSignIn, site: str) -> HTMLResponse:
    return await _page(request, account, here, site)


@router.post("/settings/security/sites/{site}", name="link_site")
async def link_site(request: Request, lang: str, account: SignedIn, here: ThisSignIn, site: str) -> Response:
    """Who asks is checked; then a link leads on, for a form may not lead to another site."""
    there = _site(request, site)
    form = await read_form(request)
    try:
        wrong = await not_theirs(request, account, here, form.get("password", ""), "password")
        if wrong:
            return await _page(request, account, here, site, 422, wrong=in_words(wrong))
        db: Database = request.app.state.db
        async with db.writing() as session:
            await count_try(session, account_key("handshake", account.id), OF_HANDSHAKES)
        address = await _ask(request, site, there, {}, account.id)
    except (TooManyTries, SiteSilent, SiteNotBelieved) as e:
        return await _page(request, account, here, site, e.http_status, problem=e.sentence())
    return await _page(request, account, here, site, address=address)


@router.post("/settings/security/sites/{site}/remove", name="unlink_site")
async def unlink_site(request: Request, lang: str, account: SignedIn, here: ThisSignIn, site: str) -> Response:
    there = _site(request, site)
    form = await read_form(request)
    db: Database = request.app.state.db
    try:
        wrong = await not_theirs(request, account, here, form.get("password", ""), "password")
        if wrong:
            return await _page(request, account, here, site, 422, wrong=in_words(wrong))
        async with db.writing() as session:
            await unlink(session, account, there.settings.issuer, issuers(request))
    except (TooManyTries, LastWayIn, NotLinked) as e:
        return await _page(request, account, here, site, e.http_status, problem=e.sentence())
    return back(request, "security_page", "unlinked")


def issuers(request: Request) -> list[str]:
    """Of the sites that may sign in here."""
    return [site.settings.issuer for site in request.app.state.sites.values()]


async def _ask(request: Request, name: str, site: Site, facts: Mapping[str, str], account_id: str | None = None) -> str:
    """Begin, and where the browser goes on."""
    state, nonce, verifier = (secrets.token_urlsafe(size) for size in (32, 32, 48))
    address = await site.address(Asking(_redirect_uri(request, name), state, nonce, verifier))
    kept = {**facts, "nonce": nonce, "verifier": verifier, "lang": i18n.current()}
    db: Database = request.app.state.db
    async with db.writing() as session:
        await begin(request, session, f"site {name}", state, kept, account_id)
    return address


async def _take(request: Request, begun: Begun, account: Account | None, person: Person) -> Response:
    """Link the person to the account that asked, or sign them in."""
    db: Database = request.app.state.db
    if begun.account_id is not None:
        if account is None or account.id != begun.account_id:
            raise HandshakeGone
        postman = Postman(request)
        async with db.writing() as session:
            await link(session, account, person)
            await postman.changed(session, account, "ways_in", account.email)
        postman.wake()
        return back(request, "security_page", "linked")
    async with db.writing() as session:
        known = await account_of(session, person)
        opened = known or await _sign_up(request, session, begun, person)
        entrance = await enter(request, session, opened, method="oidc", new=known is None)
        await take_back(session, address_key("site", place_of_caller(request)))
    open_door(request, entrance)
    return onward(request, own_path(begun.facts["next"]))


async def _sign_up(request: Request, session: AsyncSession, begun: Begun, person: Person) -> Account:
    token = begun.facts.get("invitation")
    invited = await find_invitation(session, token) if token else None
    policy = request.app.state.settings.sign_up
    return await sign_up_with(session, person, policy, invited, i18n.current())


async def _page(
    request: Request, account: Account, here: SignIn, name: str, http_status: int = 200, /, **context: Any
) -> HTMLResponse:
    site = _site(request, name)
    db: Database = request.app.state.db
    identity: Identity | None = None
    async with db.session() as session:
        try:
            identity = await find_identity(session, account, site.settings.issuer)
        except NotLinked:
            identity = None
    facts = {"account": account, "fresh": is_fresh(here), "site": name, "label": site.settings.label}
    facts |= {"identity": identity, "address": ""}
    return account_page(request, "accounts/site.html", http_status, **{**facts, **context})


def _site(request: Request, name: str) -> Site:
    found: Site | None = request.app.state.sites.get(name)
    if found is None:
        raise SiteUnknown
    return found


def _redirect_uri(request: Request, site: str) -> str:
    path = request.app.url_path_for("site_answer", site=site)
    return f"{request.app.state.settings.public_url}{path}"
