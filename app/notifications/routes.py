"""Notifications over HTTP: the bell of the bar, its live count, the list, and links that end mails.

What templates get:

``notifications/bell.html``
    ``account`` (or None), ``unread``, ``more``: whether there are more than that.
``notifications/page.html``
    ``views`` (View), ``unread``, ``before``, ``unmailed`` (kinds without mail), ``mails``: whether this
    site sends any, ``account``.
``notifications/unsubscribe.html``
    ``wish``, ``token``, ``all_token`` (to end all mails instead of one kind's), ``done``.
"""

from __future__ import annotations

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from app.accounts.current import CurrentAccount, SignedIn, who
from app.db import Database
from app.errors import NotFound, OfStatus, Unreadable
from app.i18n import N_
from app.notifications import service
from app.notifications.live import Live
from app.notifications.models import MAILED, Kind
from app.notifications.unsubscribing import Unsubscribing, Wish
from app.notifications.views import views
from app.web.form import read_form
from app.web.languages import PREFIX
from app.web.page import fragment, own_page
from app.web.paging import Before
from app.web.sse import event_stream

router = APIRouter()
FROM_ANYWHERE = r"/[a-z]+/unsubscribe/[^/]+"
"""Posted to by mail programs, which say nothing about where they come from: the token says all."""


class NotificationUnknown(NotFound):
    code = "notification_unknown"
    message = N_("There is no such notification.")


@router.get(f"{PREFIX}/notifications/bell", name="bell")
async def bell(request: Request, lang: str, account: CurrentAccount) -> HTMLResponse:
    db: Database = request.app.state.db
    unread = 0
    if account is not None:
        async with db.session() as session:
            unread = await service.unread_count(session, account.id)
    more = unread >= service.MOST_COUNTED
    shown = service.MOST_COUNTED - 1 if more else unread
    return fragment(request, "notifications/bell.html", account=account, unread=shown, more=more)


@router.get("/notifications/stream", name="notifications_stream")
async def stream(request: Request) -> Response:
    """Who is not signed in is told so in the stream's own words: a refusal is an error in the browser's console."""
    if "text/event-stream" not in request.headers.get("accept", ""):
        raise OfStatus(406)  # an EventSource asks for nothing else, and whoever does not would wait for an end
    live: Live = request.app.state.live
    return event_stream(live.frames((await who(request)).sign_in))


@router.get(f"{PREFIX}/notifications", name="notifications")
async def show_notifications(request: Request, lang: str, account: SignedIn, before: Before = None) -> HTMLResponse:
    db: Database = request.app.state.db
    async with db.session() as session:
        listed = await service.page(session, account.id, before)
        shown = await views(session, request.app.state.describers, account, listed.notifications)
        unread = await service.unread_count(session, account.id)
        unmailed = await service.unmailed(session, account.id)
    mails = bool(request.app.state.settings.smtp_url)
    facts = {"views": shown, "before": listed.before, "unread": unread, "unmailed": unmailed, "mails": mails}
    return own_page(request, "notifications/page.html", account=account, **facts)


@router.get(f"{PREFIX}/notifications/{{notification_id}}", name="notification")
async def open_notification(request: Request, lang: str, notification_id: str, account: SignedIn) -> Response:
    """On to what it is about; it counts as read."""
    db: Database = request.app.state.db
    async with db.writing() as session:
        row = await service.get(session, account.id, notification_id[:32]) if notification_id.isalnum() else None
        if row is None:
            raise NotificationUnknown
        await service.mark_read(session, account.id, row.id)
        (view,) = await views(session, request.app.state.describers, account, [row])
    service.wake(request.app.state.bus, session)
    if view.about is None:
        return _to_list(request, lang)
    address = request.app.url_path_for(view.about.route, lang=lang, **view.about.parts)
    return RedirectResponse(f"{address}{view.about.anchor}", 303, {"cache-control": "no-store"})


@router.post(f"{PREFIX}/notifications/read", name="read_notifications")
async def read_notifications(request: Request, lang: str, account: SignedIn) -> Response:
    """The one that the form names, or all."""
    which = (await read_form(request)).get("which")
    db: Database = request.app.state.db
    async with db.writing() as session:
        await service.mark_read(session, account.id, which)
    service.wake(request.app.state.bus, session)
    return _to_list(request, lang)


@router.post(f"{PREFIX}/notifications/mails", name="begin_mails")
async def begin_mails(request: Request, lang: str, account: SignedIn) -> Response:
    kind = (await read_form(request)).get("kind", "")
    if kind not in MAILED:
        raise Unreadable(reason="kind")
    db: Database = request.app.state.db
    async with db.writing() as session:
        await service.begin_mails(session, account.id, Kind(kind))
    return _to_list(request, lang)


@router.get(f"{PREFIX}/unsubscribe/{{token}}", name="unsubscribe_page")
async def unsubscribe_page(request: Request, lang: str, token: str) -> HTMLResponse:
    return _unsubscribe_page(request, token, done=False)


@router.post(f"{PREFIX}/unsubscribe/{{token}}", name="unsubscribe")
async def unsubscribe(request: Request, lang: str, token: str) -> HTMLResponse:
    """Pressed on the page, or sent by a mail program (RFC 8058): neither needs a sign-in."""
    unsubscribing: Unsubscribing = request.app.state.unsubscribing
    wish = unsubscribing.read(token)
    db: Database = request.app.state.db
    async with db.writing() as session:
        await service.end_mails(session, wish.account_id, wish.kind)
    return _unsubscribe_page(request, token, done=True)


def _unsubscribe_page(request: Request, token: str, *, done: bool) -> HTMLResponse:
    unsubscribing: Unsubscribing = request.app.state.unsubscribing
    wish = unsubscribing.read(token)
    all_token = unsubscribing.token(Wish(wish.account_id, None))
    facts = {"wish": wish, "token": token, "all_token": all_token, "done": done}
    return own_page(request, "notifications/unsubscribe.html", **facts)


def _to_list(request: Request, lang: str) -> RedirectResponse:
    return RedirectResponse(str(request.app.url_path_for("notifications", lang=lang)), 303)
