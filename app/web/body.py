"""No request body is larger than it may be, whether it says its length or not."""

from __future__ import annotations

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.errors import TooLarge

MOST_BODY_BYTES = 1_000_000


class BodyLimit:
    """Refuse a longer body with TooLarge before the application sees any of it."""

    def __init__(self, app: ASGIApp, *, most_bytes: int = MOST_BODY_BYTES) -> None:
        self._app = app
        self._most_bytes = most_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            headers = Headers(scope=scope)
            length = headers.get("content-length", "")
            if length.isascii() and length.isdigit():
                if int(length[:20]) > self._most_bytes:
                    raise TooLarge(most_bytes=self._most_bytes)
            elif "transfer-encoding" in headers:
                receive = await self._read_ahead(receive)
        await self._app(scope, receive, send)

    async def _read_ahead(self, receive: Receive) -> Receive:
        """Read a body of unknown length now, so that it can be refused whole, and play it back."""
        kept: list[Message] = []
        size = 0
        while True:
            message = await receive()
            kept.append(message)
            size += len(message.get("body", b""))
            if size > self._most_bytes:
                raise TooLarge(most_bytes=self._most_bytes)
            if not message.get("more_body", False):
                break

        async def replay() -> Message:
            return kept.pop(0) if kept else await receive()

        return replay
