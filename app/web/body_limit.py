"""Limits the size of request bodies, whatever their Content-Length says."""

from __future__ import annotations

import re

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.errors import HttpStatusError, RequestTooLarge

MAX_BODY_BYTES = 1_000_000
_CONTENT_LENGTH = re.compile(r"[0-9]{1,15}")


class BodyLimit:
    """Rejects a larger body with RequestTooLarge before the application sees any of it."""

    def __init__(self, app: ASGIApp, *, most_bytes: int = MAX_BODY_BYTES) -> None:
        self._app = app
        self._most_bytes = most_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            for length in Headers(scope=scope).getlist("content-length"):
                if not _CONTENT_LENGTH.fullmatch(length):
                    raise HttpStatusError(400)
                if int(length) > self._most_bytes:
                    raise RequestTooLarge(most_bytes=self._most_bytes)
            receive = await self._read_ahead(receive)
        await self._app(scope, receive, send)

    async def _read_ahead(self, receive: Receive) -> Receive:
        """Read the whole body first, so that it can be counted and rejected, then replay it."""
        kept: list[Message] = []
        size = 0
        while True:
            message = await receive()
            kept.append(message)
            size += len(message.get("body", b""))
            if size > self._most_bytes:
                raise RequestTooLarge(most_bytes=self._most_bytes)
            if not message.get("more_body", False):
                break

        async def replay() -> Message:
            return kept.pop(0) if kept else await receive()

        return replay
