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
from app.accounts.belongings import export_account
from app.accounts.cookies import Cookies
from app.accounts.current import SignInNeeded, who
from app.accounts.departed import Departed
from app.accounts.housekeeping import keep_house
from app.accounts.mail_routes import router as account_mails
from app.accounts.mails import still_wanted
from app.accounts.models import Role
from app.accounts.other_sites import make_sites
from app.accounts.passkey_routes import router as passkeys
from app.accounts.passwords import Passwords
from app.accounts.routes import ask_to_sign_in
from app.accounts.routes import router as accounts
from app.accounts.secret import SIGN_IN, UNSUBSCRIBE, read_secrets
from app.accounts.settings_routes import router as account_settings
from app.accounts.sign_in_cookie import may_be_signed_in, sign_in_of
from app.accounts.site_routes import bare as site_answers
from app.accounts.site_routes import router as other_sites
from app.bus import Bus
from app.comments.belongings import erase_comments, export_comments
from app.comments.moderation_routes import bare as people
from app.comments.moderation_routes import router as moderation
from app.comments.rendering import renew_html
from app.comments.routes import router as comments
from app.comments.told import CommentsSaid
from app.db import Database
from app.errors import Problem
from app.exports.routes import router as exports
from app.feedback.belongings import TRACES as TRACES_OF_FEEDBACK
from app.feedback.belongings import erase_feedback, export_feedback, move_feedback
from app.feedback.inbox import router as inbox
from app.feedback.routes import router as feedback
from app.health.checks import ReadinessLog
from app.health.routes import router as health
from app.lessons.catalog import Catalog, catalog_of
from app.lessons.routes import router as lessons
from app.mail.sender import Sender
from app.mail.transport import Smtp, SmtpServer, ToLog
from app.notifications.live import Live
from app.notifications.mailer import Mailer
from app.notifications.models import Kind
from app.notifications.routes import FROM_ANYWHERE
from app.notifications.routes import router as notifications
from app.notifications.service import export_notifications
from app.notifications.service import sweep as sweep_notifications
from app.notifications.unsubscribing import Unsubscribing
from app.observability import RequestLog, set_up_logging
from app.progress.belongings import TRACES as TRACES_OF_PROGRESS
from app.progress.belongings import erase_progress, export_progress
from app.progress.page_routes import router as progress_pages
from app.progress.routes import localized as progress_of_pages
from app.progress.routes import router as progress
from app.progress.rulebook import RuleBook
from app.progress.service import Progress
from app.progress.told import AchievementsSaid
from app.runs.belongings import TRACES as TRACES_OF_RUNS
from app.runs.belongings import erase_runs, export_runs, move_runs
from app.runs.desk import Desk
from app.runs.routes import router as runs
from app.runs.session_routes import router as sessions
from app.runs.sweeper import OutputSweeper
from app.settings import Settings, names_strangers
from app.web.application import Application
from app.web.assets import DOCS, Assets
from app.web.body import BodyLimit
from app.web.connection import STALLED_S
from app.web.csrf import SameOriginOnly
from app.web.faults import Faults, on_framework_error
from app.web.headers import SecurityHeaders
from app.web.languages import Languages
from app.web.page import NavItem, by_htmx
from app.web.root import router as root
from app.web.shelf import MOST_KEPT, KeptPages, Shelf
from app.web.shutdown import end_with_parent, on_shutdown
from runners.client import RunnerClient

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
TRACES = (*TRACES_OF_RUNS, *TRACES_OF_PROGRESS, *TRACES_OF_FEEDBACK)
"""What there is of a visitor, and goes when they are gone."""
_MAIL_GRACE_S = 3.0


def create_local_app() -> FastAPI:
    """The application for a port that only this machine reaches, where nobody has reason to call it by another name."""
    return create_app(only_local=True)


def create_app(settings: Settings | None = None, *, only_local: bool = False) -> FastAPI:
    """Make the application. Without settings they are read from the environment, as uvicorn's workers do."""
    settings = settings or Settings.read()
    set_up_logging(settings)
    catalog = Catalog(settings.lessons_dir)
    shelf = Shelf(lambda: catalog.digest, 0 if settings.environment == "development" else MOST_KEPT)
    kept = Middleware(KeptPages, shelf=shelf, passed_on=lambda asked: bool(catalog.hidden) and may_be_signed_in(asked))
    middleware = _middleware(settings, kept, only_local=only_local)
    assets = Assets()
    routes = [
        *(route for router in ROUTERS for route in router.routes),
        Mount("/static", assets, name="static"),
        Mount("/docs", Assets(DOCS, url="/docs", index="index.html"), name="docs"),
    ]
    app = Application(title="Lockstep", openapi_url=None, lifespan=_lifespan, middleware=middleware, routes=routes)
    app.state.settings = settings
    app.state.strangers = not only_local or names_strangers(settings.public_url)
    app.state.only_local = only_local
    app.state.passwords = Passwords()
    app.state.sites = make_sites(settings.oidc)
    app.state.assets = assets
    app.state.shelf = shelf
    app.state.readiness_log = ReadinessLog()
    app.state.catalog = catalog
    app.state.sees_drafts = _sees_drafts
    rulebook = RuleBook(catalog)
    catalog.after_reload(rulebook.reload)
    app.state.progress = Progress(catalog, rulebook)
    app.state.exporters = EXPORTERS
    app.state.erasers = ERASERS
    said_of = CommentsSaid(catalog)
    app.state.describers = {
        Kind.reply: said_of,
        Kind.mention: said_of,
        Kind.answered: said_of,
        Kind.achievement: AchievementsSaid(rulebook),
    }
    app.state.mergers = (move_runs, app.state.progress.ledger.merge, move_feedback)
    app.state.nav = _nav
    app.state.helpful = _helpful
    for kind in (Problem, HTTPException, RequestValidationError):
        app.add_exception_handler(kind, on_framework_error)
    app.add_exception_handler(SignInNeeded, _on_sign_in_needed)
    return app


def _middleware(settings: Settings, kept: Middleware, *, only_local: bool) -> list[Middleware]:
    """From the outside in."""
    stack = [
        Middleware(RequestLog),
        Middleware(SecurityHeaders, secure=settings.secure),
        Middleware(Languages, secure=settings.secure),
        Middleware(Faults),
        kept,
        Middleware(SameOriginOnly, public_url=settings.public_url, but=FROM_ANYWHERE),
        Middleware(BodyLimit),
        Middleware(Cookies),
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
    end_with_parent()
    bus = state.bus = Bus()
    state.db = Database(
        state.settings.database,
        connections=state.settings.database_connections,
        wait_s=state.settings.database_wait_s,
        statement_s=state.settings.database_statement_s,
    )
    runner = RunnerClient(state.settings.socket, strangers=state.strangers)
    state.exporting = asyncio.Lock()
    state.desk = Desk(state.settings, state.db, runner, bus, state.progress)
    secrets = state.settings.data_dir / "secrets"
    state.secrets = await asyncio.to_thread(read_secrets, secrets / SIGN_IN)
    state.unsubscribing = Unsubscribing(*await asyncio.to_thread(read_secrets, secrets / UNSUBSCRIBE))
    await asyncio.to_thread(state.catalog.reload)
    watching = asyncio.create_task(state.catalog.watch())
    departed = Departed(TRACES, state.settings.visitors_kept)
    sweepers = (sweep_notifications, renew_html, departed, OutputSweeper(state.desk.quotas.limits))
    sweeping = asyncio.create_task(keep_house(state.db, bus, sweepers))
    state.live = Live(state.db, bus)
    telling = asyncio.create_task(_tell(app))
    sender = Sender(state.db, bus, _transport(state.settings), still_wanted)
    sending = asyncio.create_task(sender.run())
    await state.desk.pump.resume()
    try:
        with on_shutdown(bus.close):
            yield {STALLED_S: state.settings.stalled_connection_s}
    finally:
        bus.close()
        watching.cancel()
        with suppress(asyncio.CancelledError):
            await watching
        await sweeping
        await telling
        await _end(sender, sending)
        await state.desk.pump.close()
        await runner.close()
        await state.db.close()


async def _tell(app: FastAPI) -> None:
    """Mail notifications, where there is a server that mails can be sent by."""
    state = app.state
    if state.settings.smtp_url:
        base = state.settings.public_url
        await Mailer(state.db, state.bus, state.unsubscribing, state.describers, app.url_path_for, base).run()


async def _end(sender: Sender, sending: asyncio.Task[None]) -> None:
    """Let the mail that is on its way arrive, for a while. What it does in SQL is never broken off."""
    _done, late = await asyncio.wait({sending}, timeout=_MAIL_GRACE_S)
    if late:
        sender.hurry()
    await sending


def _transport(settings: Settings) -> Smtp | ToLog:
    """How mails leave."""
    return Smtp(SmtpServer.read(settings.smtp_url), settings.mail_from) if settings.smtp_url else ToLog()


async def _on_sign_in_needed(request: Request, error: Exception) -> Response:
    """A page that was opened without a sign-in leads to one; anything else is told."""
    opened = request.method == "GET" and "text/html" in request.headers.get("accept", "")
    if opened and not by_htmx(request):
        return await ask_to_sign_in(request, error)
    return await on_framework_error(request, error)


async def _sees_drafts(request: Request) -> bool:
    """Instructors do. While the database is away nobody does, and lessons are served all the same."""
    if sign_in_of(request) is None:
        return False
    try:
        account = (await who(request)).account
    except (SQLAlchemyError, OSError):
        return False
    return account is not None and account.role != Role.learner


def _nav(request: Request) -> list[NavItem]:
    """The links of the top bar: one for each course."""
    lang = i18n.current()
    path = request.url.path
    addresses = [
        (course.title, str(request.app.url_path_for("course", lang=lang, course=course.slug)))
        for course in catalog_of(request).courses(lang)
    ]
    return [NavItem(title, url, path == url or path.startswith(f"{url}/")) for title, url in addresses]


def _helpful(request: Request, problem: Problem) -> Mapping[str, Any]:
    """An error page offers the outline of every course."""
    catalog = catalog_of(request)
    lang = i18n.current()
    return {"courses": [catalog.outline(course.slug, lang) for course in catalog.courses(lang)]}
