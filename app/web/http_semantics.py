"""What HTTP asks of every server (RFC 9110), for all routes at once.

* HEAD is answered like GET, without the body. Routes, caches and redirects only know GET.
* A request names exactly one host. Otherwise a proxy and this server could take it for requests to different sites.
* ``gzip;q=0`` in Accept-Encoding refuses gzip. Everything behind this only looks for ``gzip`` or ``br``.
"""

from __future__ import annotations

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.errors import HttpStatusError
from app.i18n import parse_quality
from app.web.error_handlers import error_response


class HttpSemantics:
    """Rejects requests without a clear host, and passes on the others in a form that routes can rely on."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        head = scope["method"] == "HEAD"
        scope = {**scope, "method": "GET" if head else scope["method"]}
        send = _without_body(send) if head else send
        headers = MutableHeaders(scope=scope)
        hosts = headers.getlist("host")
        if len(hosts) > 1 or (not hosts and scope["http_version"] != "1.0"):
            await error_response(Request(scope), HttpStatusError(400))(scope, receive, send)
            return
        if "accept-encoding" in headers:
            headers["accept-encoding"] = ", ".join(accepted_codings(headers)) or "identity"
        await self._app(scope, receive, send)


def accepted_codings(headers: Headers) -> list[str]:
    """Which of the content codings that are used here the browser accepts. Pure."""
    qualities = {
        coding.lower(): quality
        for value in headers.getlist("accept-encoding")
        for quality, coding in map(parse_quality, value[:400].split(","))
    }
    return [coding for coding in ("br", "gzip") if qualities.get(coding, 0.0) > 0]


def _without_body(send: Send) -> Send:
    """Send the headers and end the response, so that a stream ends, too."""

    async def send_head(message: Message) -> None:
        if message["type"] == "http.response.start":
            await send(message)
            await send({"type": "http.response.body", "body": b"", "more_body": False})

    return send_head
