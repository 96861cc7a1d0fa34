"""Assembles the web application. Only this module and ``cli`` import all features."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any
from urllib.parse import urlsplit

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.routing import Mount

from app.accounts.cleanup import CLEANUP_TASKS
from app.accounts.dependencies import is_admin
from app.accounts.feature import FEATURE as ACCOUNTS
from app.accounts.merge import MERGERS
from app.accounts.personal_data import AFTER_ERASURE, ERASERS, EXPORTERS
from app.accounts.session_cookie import has_session_cookie
from app.accounts.visitor_retention import RETENTION_RULES
from app.admin.feature import FEATURE as ADMIN
from app.authoring.feature import FEATURE as AUTHORING
from app.bus import Bus
from app.comments.feature import FEATURE as COMMENTS
from app.db import Database
from app.error_reports import start_error_reports
from app.errors import LockstepError
from app.exercises.feature import FEATURE as EXERCISES
from app.exports.feature import FEATURE as EXPORTS
from app.feedback.feature import FEATURE as FEEDBACK
from app.groups.feature import FEATURE as GROUPS
from app.health.feature import FEATURE as HEALTH
from app.lessons.catalog import Catalog
from app.lessons.dependencies import CATALOG, DRAFT_POLICY
from app.lessons.feature import FEATURE as LESSONS
from app.lessons.renaming import RENAMERS
from app.mail.feature import FEATURE as MAIL
from app.monitoring.feature import FEATURE as MONITORING
from app.notifications.feature import FEATURE as NOTIFICATIONS
from app.notifications.views import DESCRIBERS
from app.observability import RequestLogMiddleware, configure_logging
from app.pieces.composer import PIECE_COMPOSER, PieceComposer
from app.pieces.feature import FEATURE as PIECES
from app.pieces.gate import PiecesGate
from app.playground.feature import FEATURE as PLAYGROUND
from app.progress.feature import FEATURE as PROGRESS
from app.runs.feature import FEATURE as RUNS
from app.runs.judgements import RUN_HOOKS
from app.runs.lesson_lookup import LESSON_SOURCES
from app.search.feature import FEATURE as SEARCH
from app.settings import Settings, is_public_url
from app.site_switches import SwitchStates
from app.topic_relay import TopicRelay
from app.tracing import Tracing, activate, start_tracing
from app.web.application import Application
from app.web.assets import DOCS, Assets
from app.web.body_limit import BodyLimit
from app.web.client_network import UntrustedProxyWarning, logged_network
from app.web.cookies import CookieMiddleware
from app.web.csrf import SameOriginOnly
from app.web.dependencies import BUS, DATABASE, ONLY_LOCAL, SETTINGS, AppKey
from app.web.error_handlers import ErrorHandlers, handle_framework_error
from app.web.feature import FEATURE as WEB
from app.web.http_metrics import HttpMetrics
from app.web.http_protocol import STALL_TIMEOUT_KEY
from app.web.http_semantics import HttpSemantics
from app.web.languages import LanguageMiddleware
from app.web.maintenance import SWITCHES, MaintenanceGate, site_banners
from app.web.matched_route import RouteNoter
from app.web.page_cache import MAX_CACHED_PAGES, PageCache, PageCacheMiddleware
from app.web.part_cache import part_cache_bytes
from app.web.rendering import PAGE_SHELL, NavItem, PageShell
from app.web.security_headers import SecurityHeaders
from app.web.shutdown import exit_with_parent, on_shutdown
from app.web.trusted_hosts import TrustedHosts

TRACING = AppKey[Tracing | None]("tracing")

FEATURES = (
    PIECES,
    LESSONS,
    RUNS,
    MAIL,
    PROGRESS,
    NOTIFICATIONS,
    ACCOUNTS,
    EXERCISES,
    PLAYGROUND,
    COMMENTS,
    FEEDBACK,
    GROUPS,
    EXPORTS,
    SEARCH,
    ADMIN,
    AUTHORING,
    WEB,
    HEALTH,
    MONITORING,
)
"""Routes are tried in this order, so the most requested come first. Tasks start in this order and stop in reverse."""


def create_local_app() -> FastAPI:
    """The application for a port that only this machine can reach, under no name but localhost."""
    return create_app(only_local=True)


def create_app(settings: Settings | None = None, *, only_local: bool = False) -> FastAPI:
    """Create the application. Without ``settings``, they are read from the environment, as in uvicorn's workers."""
    settings = settings or Settings.read()
    configure_logging(settings)
    start_error_reports(settings)
    assets = Assets()
    routes = [
        *(route for feature in FEATURES for route in feature.routes),
        Mount("/static", assets, name="static"),
        Mount("/docs", Assets(DOCS, url="/docs", index="index.html"), name="docs"),
    ]
    app = Application(title="Lockstep", openapi_url=None, lifespan=_lifespan, routes=routes)
    SETTINGS.set(app, settings)
    ONLY_LOCAL.set(app, only_local)
    for feature in FEATURES:
        feature.setup(app)
    _collect(app)
    catalog = CATALOG.get(app)
    switches = SWITCHES.set(app, SwitchStates())
    most_pages = 0 if settings.environment == "development" else MAX_CACHED_PAGES
    cache = PageCache(lambda: f"{catalog.digest} {switches.edition}", most_pages)
    PAGE_SHELL.set(app, PageShell(assets, cache, _navigation, lambda: site_banners(switches), _error_context))
    app.user_middleware.extend(_middleware(settings, cache, catalog, switches, only_local=only_local))
    handlers = {kind: handler for feature in FEATURES for kind, handler in feature.exception_handlers.items()}
    handlers |= dict.fromkeys((LockstepError, HTTPException, RequestValidationError), handle_framework_error)
    for kind, handler in handlers.items():
        app.add_exception_handler(kind, handler)
    TRACING.set(app, start_tracing(app))
    return app


def _collect(app: FastAPI) -> None:
    """Collect what the features contribute to each other."""
    EXPORTERS.set(app, {name: exporter for feature in FEATURES for name, exporter in feature.exporters.items()})
    ERASERS.set(app, [eraser for feature in FEATURES for eraser in feature.erasers])
    AFTER_ERASURE.set(app, [end for feature in FEATURES for end in feature.after_erasure(app)])
    MERGERS.set(app, [merger for feature in FEATURES for merger in feature.mergers(app)])
    (policy,) = [feature.draft_policy for feature in FEATURES if feature.draft_policy is not None]
    DRAFT_POLICY.set(app, policy)
    RETENTION_RULES.set(app, [rule for feature in FEATURES for rule in feature.retention_rules])
    CLEANUP_TASKS.set(app, [task for feature in FEATURES for task in feature.cleanup_tasks(app)])
    pieces = [piece for feature in FEATURES for piece in feature.page_pieces(app)]
    PIECE_COMPOSER.set(app, PieceComposer(pieces, part_cache_bytes(SETTINGS.get(app))))
    RENAMERS.set(app, [renamer for feature in FEATURES for renamer in feature.renamers])
    RUN_HOOKS.set(app, [hook for feature in FEATURES for hook in feature.run_hooks(app)])
    LESSON_SOURCES.set(app, {name: find for feature in FEATURES for name, find in feature.lesson_sources.items()})
    DESCRIBERS.set(app, {kind: say for feature in FEATURES for kind, say in feature.describers(app).items()})


def _navigation(request: Request) -> list[NavItem]:
    return [item for feature in FEATURES for item in feature.navigation(request)]


def _error_context(request: Request, problem: LockstepError) -> Mapping[str, Any]:
    return {name: value for feature in FEATURES for name, value in feature.error_context(request, problem).items()}


def _middleware(
    settings: Settings, cache: PageCache, catalog: Catalog, switches: SwitchStates, *, only_local: bool
) -> list[Middleware]:
    """From the outside in."""
    exempt = "|".join(f"(?:{path})" for feature in FEATURES for path in feature.csrf_exempt_paths)
    open_paths = "|".join(f"(?:{path})" for feature in FEATURES for path in feature.open_in_maintenance)
    stack = [
        Middleware(RequestLogMiddleware, network_of=logged_network, log_clients=settings.log_clients),
        Middleware(SecurityHeaders, secure=settings.secure),
        Middleware(LanguageMiddleware, secure=settings.secure),
        Middleware(HttpSemantics),
        Middleware(ErrorHandlers),
        Middleware(
            PageCacheMiddleware,
            cache=cache,
            passed_on=lambda asked: catalog.differs_for_instructors and has_session_cookie(asked),
        ),
        Middleware(PiecesGate),
        Middleware(SameOriginOnly, public_url=settings.public_url, but=exempt),
        Middleware(BodyLimit),
        Middleware(CookieMiddleware),
        Middleware(MaintenanceGate, switches=switches, is_admin=is_admin, but=open_paths),
        Middleware(GZipMiddleware, minimum_size=1000, compresslevel=5),
    ]
    if settings.public_url or only_local:
        names = [*filter(None, [_host(settings.public_url)]), "localhost", "127.0.0.1", "[::1]"]
        probes = [path for feature in FEATURES for path in feature.health_check_paths]
        stack.insert(5, Middleware(TrustedHosts, names=names, by_address=probes))
    if is_public_url(settings.public_url):
        stack.insert(0, Middleware(UntrustedProxyWarning))
    if settings.metrics_address:
        stack = [Middleware(HttpMetrics), *stack, Middleware(RouteNoter)]
    return stack


def _host(url: str) -> str:
    """The host without its port, as in a Host header: an IPv6 address keeps its brackets."""
    host = urlsplit(url).hostname or ""
    return f"[{host}]" if ":" in host else host


@asynccontextmanager
async def _traced(app: FastAPI) -> AsyncIterator[None]:
    tracing = TRACING.get(app)
    if tracing is None:
        yield
        return
    tracing.instrument_engine(DATABASE.get(app).engine)
    activate(tracing)
    try:
        yield
    finally:
        activate(None)
        await tracing.close()


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[dict[str, float]]:
    settings = SETTINGS.get(app)
    exit_with_parent()
    async with AsyncExitStack() as running:
        bus = BUS.set(app, Bus())
        db = DATABASE.set(
            app,
            Database(
                settings.database,
                connections=settings.database_connections,
                wait_s=settings.database_wait_timeout_s,
                statement_s=settings.database_statement_timeout_s,
                pooled=settings.database_transaction_pooling,
                bus=bus,
            ),
        )
        running.push_async_callback(db.close)
        await running.enter_async_context(TopicRelay(db, bus, settings.database_listen_url).running())
        await running.enter_async_context(_traced(app))
        try:
            for feature in FEATURES:
                if feature.lifespan is not None:
                    await running.enter_async_context(feature.lifespan(app))
            with on_shutdown(bus.close):
                yield {STALL_TIMEOUT_KEY: settings.connection_stall_timeout_s}
        finally:
            bus.close()  # background tasks end by themselves, then each feature's lifespan is left
