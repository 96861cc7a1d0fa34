"""Notifications over HTTP: the bell in the top bar, its live count, the list, and links that stop emails.

Contexts of the templates:

``notifications/bell.html``
    ``account`` (or None), ``unread``, ``more``: whether the count stops there.
``notifications/page.html``
    ``views`` (NotificationView), ``unread``, ``before``, ``unmailed`` (kinds without emails), ``mails``: whether this
    site sends emails, ``account``.
``notifications/unsubscribe.html``
    ``wish``, ``token``, ``all_token`` (stops all emails instead of one kind), ``done``.
"""

from __future__ import annotations

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from app.accounts.dependencies import OptionalAccount, RequiredAccount, get_principal
from app.accounts.disabled_accounts import DisabledAccountsDep
from app.errors import HttpStatusError, InvalidInput, NotFound
from app.i18n import N_
from app.notifications import service
from app.notifications.models import EMAILED_KINDS, NotificationKind
from app.notifications.page_piece import bell_context
from app.notifications.unread_stream import UnreadCountStreamsDep
from app.notifications.unsubscribe_links import UnsubscribeRequest, UnsubscribeTokens, UnsubscribeTokensDep
from app.notifications.views import DescribersDep, build_views
from app.web.access import Access
from app.web.dependencies import DatabaseDep, SettingsDep
from app.web.forms import read_form
from app.web.languages import LANGUAGE_PREFIX
from app.web.pagination import BeforeCursor
from app.web.rendering import render_fragment, render_private_page
from app.web.security_headers import NO_STORE
from app.web.sse import event_stream

router = APIRouter()
CSRF_EXEMPT_PATHS = r"/[a-z]+/unsubscribe/[^/]+"
"""Mail programs post to it without an Origin header; the token authorizes the request."""


class NotificationNotFound(NotFound):
    message = N_("This notification does not exist.")


@router.get(f"{LANGUAGE_PREFIX}/notifications/bell", name="bell", tags=[Access.learner])
async def bell(request: Request, lang: str, account: OptionalAccount, db: DatabaseDep) -> HTMLResponse:
    unread = 0
    if account is not None:
        async with db.session() as session:
            unread = await service.unread_count(session, account.id)
    return render_fragment(request, "notifications/bell.html", **bell_context(account, unread))


@router.get("/notifications/stream", name="notifications_stream", tags=[Access.learner])
async def stream(request: Request, streams: UnreadCountStreamsDep, disabled: DisabledAccountsDep) -> Response:
    """A stream for visitors too, which ends at once: browsers log an error response in the console."""
    if "text/event-stream" not in request.headers.get("accept", ""):
        raise HttpStatusError(406)  # an EventSource always accepts this type; other clients would wait for an end
    principal = await get_principal(request)
    return event_stream(streams.events(principal.auth_session), disabled.watch(principal.learner_id))


@router.get(f"{LANGUAGE_PREFIX}/notifications", name="notifications", tags=[Access.account])
async def show_notifications(
    request: Request,
    lang: str,
    account: RequiredAccount,
    db: DatabaseDep,
    describers: DescribersDep,
    settings: SettingsDep,
    before: BeforeCursor = None,
) -> HTMLResponse:
    async with db.session() as session:
        listed = await service.list_notifications(session, account.id, before)
        shown = await build_views(session, describers, account, listed.notifications)
        unread = await service.unread_count(session, account.id)
        unmailed = await service.email_opt_outs(session, account.id)
    mails = bool(settings.smtp_url)
    facts = {"views": shown, "before": listed.before, "unread": unread, "unmailed": unmailed, "mails": mails}
    return render_private_page(request, "notifications/page.html", account=account, **facts)


@router.get(f"{LANGUAGE_PREFIX}/notifications/{{notification_id}}", name="notification", tags=[Access.account])
async def open_notification(
    request: Request,
    lang: str,
    notification_id: str,
    account: RequiredAccount,
    db: DatabaseDep,
    describers: DescribersDep,
) -> Response:
    """Redirect to the subject of a notification and mark it as read."""
    async with db.writing() as session:
        row = (
            await service.get_notification(session, account.id, notification_id[:32])
            if notification_id.isalnum()
            else None
        )
        if row is None:
            raise NotificationNotFound
        await service.mark_read(session, account.id, row.id)
        (view,) = await build_views(session, describers, account, [row])
    if view.content is None:
        return _redirect_to_list(request, lang)
    address = request.app.url_path_for(view.content.route, lang=lang, **view.content.route_params)
    return RedirectResponse(f"{address}{view.content.anchor}", 303, NO_STORE)


@router.post(f"{LANGUAGE_PREFIX}/notifications/read", name="mark_notifications_read", tags=[Access.account])
async def mark_notifications_read(request: Request, lang: str, account: RequiredAccount, db: DatabaseDep) -> Response:
    """Mark the notification named by the form as read, or all of them."""
    which = (await read_form(request)).get("which")
    async with db.writing() as session:
        await service.mark_read(session, account.id, which)
    return _redirect_to_list(request, lang)


@router.post(f"{LANGUAGE_PREFIX}/notifications/emails", name="resume_emails", tags=[Access.account])
async def resume_emails(request: Request, lang: str, account: RequiredAccount, db: DatabaseDep) -> Response:
    kind = (await read_form(request)).get("kind", "")
    if kind not in EMAILED_KINDS:
        raise InvalidInput(reason="kind")
    async with db.writing() as session:
        await service.opt_in_to_emails(session, account.id, NotificationKind(kind))
    return _redirect_to_list(request, lang)


@router.get(f"{LANGUAGE_PREFIX}/unsubscribe/{{token}}", name="unsubscribe_page", tags=[Access.public])
async def unsubscribe_page(
    request: Request, lang: str, token: str, unsubscribe_tokens: UnsubscribeTokensDep
) -> HTMLResponse:
    return _unsubscribe_page(request, unsubscribe_tokens, token, done=False)


@router.post(f"{LANGUAGE_PREFIX}/unsubscribe/{{token}}", name="unsubscribe", tags=[Access.public])
async def unsubscribe(
    request: Request, lang: str, token: str, db: DatabaseDep, unsubscribe_tokens: UnsubscribeTokensDep
) -> HTMLResponse:
    """Used by the page's button and by mail programs (RFC 8058); needs no sign-in."""
    wish = unsubscribe_tokens.verify(token)
    async with db.writing() as session:
        await service.opt_out_of_emails(session, wish.account_id, wish.kind)
    return _unsubscribe_page(request, unsubscribe_tokens, token, done=True)


def _unsubscribe_page(
    request: Request, unsubscribe_tokens: UnsubscribeTokens, token: str, *, done: bool
) -> HTMLResponse:
    wish = unsubscribe_tokens.verify(token)
    all_token = unsubscribe_tokens.sign(UnsubscribeRequest(wish.account_id, None))
    facts = {"wish": wish, "token": token, "all_token": all_token, "done": done}
    return render_private_page(request, "notifications/unsubscribe.html", **facts)


def _redirect_to_list(request: Request, lang: str) -> RedirectResponse:
    return RedirectResponse(str(request.app.url_path_for("notifications", lang=lang)), 303)
