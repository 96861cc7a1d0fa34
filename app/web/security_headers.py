"""Security headers on every response; a route may set its own values."""

from __future__ import annotations

from urllib.parse import unquote_plus

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.observability import redact_path

CONTENT_SECURITY_POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data:",
        "media-src 'self' data:",
        "font-src 'self'",
        "connect-src 'self'",
        "frame-src 'self'",
        "form-action 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
    )
)

UNTRUSTED_DOCUMENT_POLICY = (
    "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:; form-action 'none'; frame-ancestors 'self'"
)
"""The policy of documents made of a learner's output: no scripts, no origin, no network."""

PLOT_DOCUMENT_POLICY = (
    "sandbox allow-scripts; default-src 'none'; script-src 'self'; style-src 'unsafe-inline'; img-src data: blob:; "
    "form-action 'none'; base-uri 'none'; frame-ancestors 'self'"
)
"""The policy of documents in which this site's own script draws a learner's plot: no origin, no network."""

NO_STORE = {"cache-control": "no-store"}
"""For an answer that is about one learner or one moment: no browser and no proxy keeps it."""

CLEAR_CACHE_HEADERS = {**NO_STORE, "clear-site-data": '"cache"'}
"""For responses that sign a browser out: it drops all cached responses, including pages that Back would show.

Not ``"storage"``, which would also drop the theme: ``account-storage.ts`` removes the account's data.
"""

_DEFAULT_HEADERS = (
    (b"content-security-policy", CONTENT_SECURITY_POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), geolocation=(), microphone=(), payment=(), usb=()"),
)
_TLS_HEADERS = ((b"strict-transport-security", b"max-age=31536000"),)


class SecurityHeaders:
    """Adds missing security headers, and makes redirects relative, because the client may forge the Host header."""

    def __init__(self, app: ASGIApp, *, secure: bool) -> None:
        self._app = app
        self._secure = secure

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        here = f"{scope['scheme']}://{Headers(scope=scope).get('host', '')}".encode("latin-1")
        wanted = _DEFAULT_HEADERS + _TLS_HEADERS if self._secure or scope["scheme"] == "https" else _DEFAULT_HEADERS
        wanted = (*wanted, (b"referrer-policy", _referrer_policy(scope)))

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = message["headers"] = [
                    _relative_location(header, here) for header in message.get("headers", [])
                ]
                there = {name for name, _ in headers}
                headers.extend(header for header in wanted if header[0] not in there)
            await send(message)

        await self._app(scope, receive, send_guarded)


def _referrer_policy(scope: Scope) -> bytes:
    """What the page's requests say about its address. If that has a token, it must not get into a proxy's log. Pure.

    With ``no-referrer``, browsers would send no origin with the page's forms, either.
    """
    address = f"{scope['path']}?{unquote_plus(scope['query_string'].decode('latin-1'))}"
    return b"same-origin" if redact_path(address) == address else b"strict-origin"


def _relative_location(header: tuple[bytes, bytes], here: bytes) -> tuple[bytes, bytes]:
    """Make a Location header under the URL ``here`` relative; leave other headers unchanged. Pure."""
    name, value = header
    path = value.removeprefix(here)
    local = name == b"location" and path.startswith(b"/") and not path.startswith(b"//")
    return (name, path) if local else header
