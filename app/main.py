"""The web application, wired together: the only place, with ``cli``, that knows all of it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any
from urllib.parse import urlsplit

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from sqlalchemy.exc import SQLAlchemyError
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Mount

from app import i18n
from app.accounts.cleanup import run_cleanup
from app.accounts.cookies import CookieMiddleware
from app.accounts.dependencies import LoginRequired, get_principal
from app.accounts.email_link_routes import router as account_mails
from app.accounts.emails import should_send
from app.accounts.identity_provider_routes import callback_router as site_answers
from app.accounts.identity_provider_routes import router as other_sites
from app.accounts.identity_providers import make_identity_providers
from app.accounts.models import Role
from app.accounts.passkey_routes import router as passkeys
from app.accounts.passwords import AsyncPasswordHasher
from app.accounts.personal_data import export_account
from app.accounts.routes import redirect_to_login
from app.accounts.routes import router as accounts
from app.accounts.session_cookie import has_session_cookie, session_token_hash
from app.accounts.settings_routes import router as account_settings
from app.accounts.signing import SIGN_IN_SECRET, UNSUBSCRIBE_SECRET, load_secrets
from app.accounts.visitor_retention import VisitorRetention
from app.bus import Bus
from app.comments.moderation_routes import router as moderation
from app.comments.moderation_routes import unlocalized_router as people
from app.comments.notification_content import CommentDescriber
from app.comments.personal_data import erase_comments, export_comments
from app.comments.rendering import rerender_outdated
from app.comments.routes import router as comments
from app.db import Database
from app.errors import LockstepError
from app.exports.routes import router as exports
from app.feedback.inbox import router as inbox
from app.feedback.personal_data import RETENTION_RULES as TRACES_OF_FEEDBACK
from app.feedback.personal_data import erase_feedback, export_feedback, move_feedback
from app.feedback.routes import router as feedback
from app.health.checks import ReadinessLog
from app.health.routes import router as health
from app.lessons.catalog import Catalog, request_catalog
from app.lessons.routes import router as lessons
from app.mail.transport import LogTransport, SmtpServer, SmtpTransport
from app.mail.worker import OutboxWorker
from app.notifications.mailer import NotificationMailer
from app.notifications.models import NotificationKind
from app.notifications.routes import CSRF_EXEMPT_PATHS
from app.notifications.routes import router as notifications
from app.notifications.service import delete_expired as sweep_notifications
from app.notifications.service import export_notifications
from app.notifications.unread_stream import UnreadCountStreams
from app.notifications.unsubscribe_links import UnsubscribeTokens
from app.observability import RequestLogMiddleware, configure_logging
from app.progress.achievement_catalog import AchievementCatalog
from app.progress.notification_content import AchievementDescriber
from app.progress.page_routes import router as progress_pages
from app.progress.personal_data import RETENTION_RULES as TRACES_OF_PROGRESS
from app.progress.personal_data import erase_progress, export_progress
from app.progress.routes import localized_router as progress_of_pages
from app.progress.routes import router as progress
from app.progress.service import ProgressService
from app.runs.dispatcher import RunDispatcher
from app.runs.personal_data import RETENTION_RULES as TRACES_OF_RUNS
from app.runs.personal_data import erase_runs, export_runs, move_runs
from app.runs.routes import router as runs
from app.runs.session_routes import router as sessions
from app.runs.sweeper import OutputSweeper
from app.settings import Settings, is_public_url
from app.web.application import Application
from app.web.assets import DOCS, Assets
from app.web.body_limit import BodyLimit
from app.web.csrf import SameOriginOnly
from app.web.error_handlers import ErrorHandlers, handle_framework_error
from app.web.http_protocol import STALL_TIMEOUT_KEY
from app.web.languages import LanguageMiddleware
from app.web.page_cache import MAX_CACHED_PAGES, PageCache, PageCacheMiddleware
from app.web.rendering import NavItem, is_htmx_request
from app.web.root import router as root
from app.web.security_headers import SecurityHeaders
from app.web.shutdown import exit_with_parent, on_shutdown
from runners.wire.client import RunnerClient

ROUTERS = (
    lessons,
    progress_of_pages,
    progress_pages,
    notifications,
    accounts,
    comments,
    runs,
    sessions,
    progress,
    moderation,
    people,
    feedback,
    inbox,
    exports,
    account_mails,
    account_settings,
    passkeys,
    other_sites,
    site_answers,
    root,
    health,
)
"""Looked through in this order: what is asked for most comes first."""
EXPORTERS = {
    "account": export_account,
    "runs": export_runs,
    "progress": export_progress,
    "comments": export_comments,
    "feedback": export_feedback,
    "notifications": export_notifications,
}
"""What people get of their own data, by its name in the document."""
ERASERS = (erase_runs, erase_progress, erase_comments, erase_feedback)
"""What goes with an account."""
RETENTION_RULES = (*TRACES_OF_RUNS, *TRACES_OF_PROGRESS, *TRACES_OF_FEEDBACK)
"""What there is of a visitor, and goes when they are gone."""
_MAIL_SHUTDOWN_S = 3.0


def create_local_app() -> FastAPI:
    """The application for a port that only this machine reaches, where nobody has reason to call it by another name."""
    return create_app(only_local=True)


def create_app(settings: Settings | None = None, *, only_local: bool = False) -> FastAPI:
    """Make the application. Without settings they are read from the environment, as uvicorn's workers do."""
    settings = settings or Settings.read()
    configure_logging(settings)
    catalog = Catalog(settings.lessons_dir)
    shelf = PageCache(lambda: catalog.digest, 0 if settings.environment == "development" else MAX_CACHED_PAGES)
    kept = Middleware(
        PageCacheMiddleware, shelf=shelf, passed_on=lambda asked: bool(catalog.hidden) and has_session_cookie(asked)
    )
    middleware = _middleware(settings, kept, only_local=only_local)
    assets = Assets()
    routes = [
        *(route for router in ROUTERS for route in router.routes),
        Mount("/static", assets, name="static"),
        Mount("/docs", Assets(DOCS, url="/docs", index="index.html"), name="docs"),
    ]
    app = Application(title="Lockstep", openapi_url=None, lifespan=_lifespan, middleware=middleware, routes=routes)
    app.state.settings = settings
    app.state.untrusted_users = not only_local or is_public_url(settings.public_url)
    app.state.only_local = only_local
    app.state.passwords = AsyncPasswordHasher()
    app.state.sites = make_identity_providers(settings.oidc)
    app.state.assets = assets
    app.state.shelf = shelf
    app.state.readiness_log = ReadinessLog()
    app.state.catalog = catalog
    app.state.sees_drafts = _can_see_drafts
    rulebook = AchievementCatalog(catalog)
    catalog.after_reload(rulebook.reload)
    app.state.progress = ProgressService(catalog, rulebook)
    app.state.exporters = EXPORTERS
    app.state.erasers = ERASERS
    said_of = CommentDescriber(catalog)
    app.state.describers = {
        NotificationKind.reply: said_of,
        NotificationKind.mention: said_of,
        NotificationKind.answered: said_of,
        NotificationKind.achievement: AchievementDescriber(rulebook),
    }
    app.state.mergers = (move_runs, app.state.progress.ledger.merge, move_feedback)
    app.state.nav = _navigation_items
    app.state.helpful = _error_page_context
    for kind in (LockstepError, HTTPException, RequestValidationError):
        app.add_exception_handler(kind, handle_framework_error)
    app.add_exception_handler(LoginRequired, _on_login_required)
    return app


def _middleware(settings: Settings, kept: Middleware, *, only_local: bool) -> list[Middleware]:
    """From the outside in."""
    stack = [
        Middleware(RequestLogMiddleware),
        Middleware(SecurityHeaders, secure=settings.secure),
        Middleware(LanguageMiddleware, secure=settings.secure),
        Middleware(ErrorHandlers),
        kept,
        Middleware(SameOriginOnly, public_url=settings.public_url, but=CSRF_EXEMPT_PATHS),
        Middleware(BodyLimit),
        Middleware(CookieMiddleware),
        Middleware(GZipMiddleware, minimum_size=1000, compresslevel=5),
    ]
    if settings.public_url or only_local:
        # A name of another site may be made to lead here, and its pages would then count as ours.
        hosts = [*filter(None, [_host(settings.public_url)]), "localhost", "127.0.0.1", "[::1]"]
        stack.insert(4, Middleware(TrustedHostMiddleware, allowed_hosts=hosts, www_redirect=False))
    return stack


def _host(url: str) -> str:
    """The host without its port, as a Host header has it: an IPv6 address keeps its brackets."""
    host = urlsplit(url).hostname or ""
    return f"[{host}]" if ":" in host else host


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[dict[str, float]]:
    state = app.state
    exit_with_parent()
    bus = state.bus = Bus()
    state.db = Database(
        state.settings.database,
        connections=state.settings.database_connections,
        wait_s=state.settings.database_wait_s,
        statement_s=state.settings.database_statement_s,
        bus=bus,
    )
    runner = RunnerClient(state.settings.socket, untrusted_users=state.untrusted_users)
    state.exporting = asyncio.Lock()
    state.desk = RunDispatcher(state.settings, state.db, runner, bus, state.progress)
    secrets = state.settings.data_dir / "secrets"
    state.secrets = await asyncio.to_thread(load_secrets, secrets / SIGN_IN_SECRET)
    state.unsubscribing = UnsubscribeTokens(*await asyncio.to_thread(load_secrets, secrets / UNSUBSCRIBE_SECRET))
    await asyncio.to_thread(state.catalog.reload)
    watching = asyncio.create_task(state.catalog.watch())
    departed = VisitorRetention(RETENTION_RULES, state.settings.visitors_kept)
    sweepers = (sweep_notifications, rerender_outdated, departed, OutputSweeper(state.desk.quotas.limits))
    sweeping = asyncio.create_task(run_cleanup(state.db, bus, sweepers))
    state.live = UnreadCountStreams(state.db, bus)
    telling = asyncio.create_task(_run_notification_mailer(app))
    sender = OutboxWorker(state.db, bus, _mail_transport(state.settings), should_send)
    sending = asyncio.create_task(sender.run())
    await state.desk.pump.resume()
    try:
        with on_shutdown(bus.close):
            yield {STALL_TIMEOUT_KEY: state.settings.stalled_connection_s}
    finally:
        bus.close()
        watching.cancel()
        with suppress(asyncio.CancelledError):
            await watching
        await sweeping
        await telling
        await _stop_mail_worker(sender, sending)
        await state.desk.pump.close()
        await runner.close()
        await state.db.close()


async def _run_notification_mailer(app: FastAPI) -> None:
    """Mail notifications, where there is a server that mails can be sent by."""
    state = app.state
    if state.settings.smtp_url:
        base = state.settings.public_url
        await NotificationMailer(
            state.db, state.bus, state.unsubscribing, state.describers, app.url_path_for, base
        ).run()


async def _stop_mail_worker(sender: OutboxWorker, sending: asyncio.Task[None]) -> None:
    """Let the mail that is on its way arrive, for a while. What it does in SQL is never broken off."""
    _done, late = await asyncio.wait({sending}, timeout=_MAIL_SHUTDOWN_S)
    if late:
        sender.cancel_delivery()
    await sending


def _mail_transport(settings: Settings) -> SmtpTransport | LogTransport:
    """How mails leave."""
    return (
        SmtpTransport(SmtpServer.read(settings.smtp_url), settings.mail_from) if settings.smtp_url else LogTransport()
    )


async def _on_login_required(request: Request, error: Exception) -> Response:
    """A page that was opened without a sign-in leads to one; anything else is told."""
    opened = request.method == "GET" and "text/html" in request.headers.get("accept", "")
    if opened and not is_htmx_request(request):
        return await redirect_to_login(request, error)
    return await handle_framework_error(request, error)


async def _can_see_drafts(request: Request) -> bool:
    """Instructors do. While the database is away nobody does, and lessons are served all the same."""
    if session_token_hash(request) is None:
        return False
    try:
        account = (await get_principal(request)).account
    except (SQLAlchemyError, OSError):
        return False
    return account is not None and account.role != Role.learner


def _navigation_items(request: Request) -> list[NavItem]:
    """The links of the top bar: one for each course."""
    lang = i18n.current_language()
    path = request.url.path
    addresses = [
        (course.title, str(request.app.url_path_for("course", lang=lang, course=course.slug)))
        for course in request_catalog(request).courses(lang)
    ]
    return [NavItem(title, url, path == url or path.startswith(f"{url}/")) for title, url in addresses]


def _error_page_context(request: Request, problem: LockstepError) -> Mapping[str, Any]:
    """An error page offers the outline of every course."""
    catalog = request_catalog(request)
    lang = i18n.current_language()
    return {"courses": [catalog.outline(course.slug, lang) for course in catalog.courses(lang)]}
