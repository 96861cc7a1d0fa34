"""Counts requests and measures how long their responses take to begin, by the template of their route."""

from __future__ import annotations

import time

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.metrics import HTTP_REQUESTS, HTTP_RESPONSE_SECONDS
from app.web.matched_route import expect_route

_METHODS = frozenset(("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"))
_CLIENT_LEFT = 499
"""nginx's status for a browser that left before the response."""


class HttpMetrics:
    """Middleware around the whole application."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        begin, matched = time.perf_counter(), expect_route(scope)
        status, took_s = _CLIENT_LEFT, None

        async def send_timed(message: Message) -> None:
            nonlocal status, took_s
            if message["type"] == "http.response.start":
                status, took_s = message["status"], time.perf_counter() - begin
            await send(message)

        try:
            await self._app(scope, receive, send_timed)
        finally:
            method = scope["method"] if scope["method"] in _METHODS else "other"
            HTTP_REQUESTS.labels(method, matched.template, str(status)).inc()
            if took_s is not None:
                HTTP_RESPONSE_SECONDS.labels(method, matched.template).observe(took_s)
