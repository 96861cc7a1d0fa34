"""Logging with request IDs: structlog, one line per request, JSON for machines or colors for people."""

from __future__ import annotations

import logging
import re
import secrets
import sys
import time
from contextvars import ContextVar
from typing import Any

import structlog
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.settings import Settings

_HEADER = b"x-request-id"
_VALID_REQUEST_ID = re.compile(rb"[A-Za-z0-9_-]{8,64}")
_PATH_TOKEN = re.compile(r"/(?:[a-z0-9.]+\.)?[A-Za-z0-9_-]{43}(?=/|$)")
_QUIET_PREFIXES = ("/healthz", "/static/")

_request_id: ContextVar[str] = ContextVar("request_id", default="")
_log = structlog.get_logger("access")


def request_id() -> str:
    """The ID of the current request; empty outside a request."""
    return _request_id.get()


def configure_logging(settings: Settings) -> None:
    """Send the log lines of structlog and of libraries to standard error."""
    level = logging.getLevelNamesMapping()[settings.log_level.upper()]
    renderer: structlog.typing.Processor = (
        structlog.processors.JSONRenderer(ensure_ascii=False)
        if settings.log_format == "json"
        else structlog.dev.ConsoleRenderer(
            colors=sys.stderr.isatty(), exception_formatter=structlog.dev.plain_traceback
        )
    )
    shared: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    errors: list[structlog.typing.Processor] = (
        [structlog.processors.format_exc_info] if settings.log_format == "json" else []
    )
    structlog.configure(
        processors=[*shared, *errors, renderer],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.WriteLoggerFactory(file=sys.stderr),
        cache_logger_on_first_use=False,
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *errors, renderer],
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(max(level, logging.WARNING))


class RequestLogMiddleware:
    """Gives each request an ID, read from and returned as X-Request-ID, and logs its result."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        given = next((value for name, value in scope["headers"] if name == _HEADER), b"")
        mark = given if _VALID_REQUEST_ID.fullmatch(given) else secrets.token_hex(8).encode()
        token = _request_id.set(mark.decode())
        begin = time.perf_counter()
        status = 0

        async def send_marked(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message.setdefault("headers", []).append((_HEADER, mark))
            await send(message)

        structlog.contextvars.bind_contextvars(request_id=mark.decode())
        try:
            await self._app(scope, receive, send_marked)
        finally:
            _log_request(scope, status, begin)
            structlog.contextvars.unbind_contextvars("request_id")
            _request_id.reset(token)


def redact_path(path: str) -> str:
    """A path without secrets: the tokens of links in emails. Pure."""
    return _PATH_TOKEN.sub("/…", path)


def _log_request(scope: Scope, status: int, begin: float) -> None:
    facts: dict[str, Any] = {
        "method": scope["method"],
        "path": redact_path(scope["path"]),
        "status": status,
        "ms": round((time.perf_counter() - begin) * 1000, 1),
    }
    (_log.debug if scope["path"].startswith(_QUIET_PREFIXES) else _log.info)("request", **facts)
