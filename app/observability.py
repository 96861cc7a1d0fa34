"""Logging with request IDs: structlog, one line per request, JSON for machines or colors for people."""

from __future__ import annotations

import json
import logging
import os
import re
import secrets
import sys
import time
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

import structlog
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.error_reports import report_error
from app.security_log import Caller, request_from
from app.settings import Settings
from runners.wire.log_text import escape_entry

_HEADER = b"x-request-id"
_SLASH = "(?:/|%(?:25)*2F)"
"""A slash, or one that was encoded twice or more often on its way."""
_BEGINNING = r"(?:(?<![\w-])|(?<=2F))"
"""Of a part of the path, not in the middle of a lesson's name."""
_SECRET_LINK = re.compile(
    rf"({_BEGINNING}(?:email-link|unsubscribe|groups{_SLASH}(?:join|reminders))/?).+", re.IGNORECASE | re.DOTALL
)
"""Links of emails and invitations. What follows may be a token that was damaged on its way and works once mended."""
_TOKEN = re.compile(rf"{_BEGINNING}lockstep_[^/]+|(?<![\w-])(?=[\w-]*[A-Z])[\w-]{{43,}}", re.ASCII)
"""An API token that does not belong there, and whatever has the length of a token, such as the ID of a passkey. Names
of lessons, which may be as long, have no capital letters."""
LOGS_ON_TERMINAL = "_LOCKSTEP_LOGS_ON_TERMINAL"
"""Set by ``lockstep serve`` where it copies the web application's log to a terminal."""
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
        structlog.processors.JSONRenderer(serializer=_json_line)
        if settings.log_format == "json"
        else structlog.dev.ConsoleRenderer(
            colors=sys.stderr.isatty() or LOGS_ON_TERMINAL in os.environ,
            exception_formatter=structlog.dev.plain_traceback,
        )
    )
    shared: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    text: list[structlog.typing.Processor] = [report_error, structlog.processors.format_exc_info]
    if settings.log_format != "json":
        text.append(escape_entry)
    structlog.configure(
        processors=[*shared, *text, renderer],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.WriteLoggerFactory(file=sys.stderr),
        cache_logger_on_first_use=False,
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *text, renderer],
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(max(level, logging.WARNING))


class RequestLogMiddleware:
    """Gives each request an ID of its own, returned as X-Request-ID, and logs its result."""

    def __init__(self, app: ASGIApp, *, network_of: Callable[[str], str | None], log_clients: bool = False) -> None:
        """``network_of`` gives the network of an address, for the security log. ``log_clients``: name the account and
        the address of each request."""
        self._app = app
        self._network_of = network_of
        self._log_clients = log_clients
        self._log = _log.bind()  # once: structlog would assemble a logger for each line

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        mark = secrets.token_hex(8)
        token = _request_id.set(mark)
        begin = time.perf_counter()
        status = 0

        async def send_marked(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message.setdefault("headers", []).append((_HEADER, mark.encode()))
            await send(message)

        structlog.contextvars.bind_contextvars(request_id=mark)
        address = scope["client"][0] if scope.get("client") else None
        caller = Caller(address, self._network_of)
        try:
            with request_from(caller):
                await self._app(scope, receive, send_marked)
        finally:
            client = {"account": caller.account, "address": address} if self._log_clients else {}
            _log_request(self._log, scope, status, begin, {name: value for name, value in client.items() if value})
            structlog.contextvars.unbind_contextvars("request_id")
            _request_id.reset(token)


def redact_path(path: str) -> str:
    """A path without secrets: everything that follows the prefix of a secret link, and tokens. Pure."""
    return _TOKEN.sub("…", _SECRET_LINK.sub(r"\1…", path))


def _json_line(entry: object, **options: Any) -> str:
    """JSON in which letters of all languages are readable and everything that a terminal would obey is escaped."""
    line = json.dumps(entry, ensure_ascii=False, **options)
    return line if line.isprintable() else "".join(c if c.isprintable() else json.dumps(c)[1:-1] for c in line)


def _log_request(log: Any, scope: Scope, status: int, begin: float, client: dict[str, str]) -> None:
    facts: dict[str, Any] = {
        "method": scope["method"],
        "path": redact_path(scope["path"]),
        "status": status,
        "ms": round((time.perf_counter() - begin) * 1000, 1),
        **client,
    }
    (log.debug if scope["path"].startswith(_QUIET_PREFIXES) else log.info)("request", **facts)
