"""One connection from a browser: how much it may send, and for how long, before there is a request to answer.

Uvicorn's own parser keeps header lines for as long as they come: a single connection could fill the memory of the
process. What counts here is everything but bodies, which ``web.body`` counts: the head of a request, what stands
around the pieces of a chunked body, and what comes behind it.
"""

from __future__ import annotations

from asyncio import BaseTransport, TimerHandle, Transport
from typing import cast

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

MOST_HEAD_BYTES = 64 * 1024
"""Of one request, without its body. What came with one read of the socket is taken whole."""
WHOLE_WITHIN_S = 60.0
"""A request, body and all, has to be here so long after it began, and the first one after the connection was made."""
_TOO_LARGE = b"HTTP/1.1 431 Request Header Fields Too Large\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"


class Connection(HttpToolsProtocol):
    """Uvicorn's, with an end to its patience."""

    _head = 0
    """Bytes of the request that is being read, without its body."""
    _waiting: TimerHandle | None = None
    """Set while a request is being read."""

    def connection_made(self, transport: BaseTransport) -> None:
        super().connection_made(cast(Transport, transport))
        self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._wait_no_more()

    def data_received(self, data: bytes) -> None:
        self._wait()
        self._head += len(data)
        super().data_received(data)
        if self._head > MOST_HEAD_BYTES and not self.transport.is_closing():
            if self.cycle is None or self.cycle.response_complete:
                self.transport.write(_TOO_LARGE)
            self.transport.close()

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._wait()

    def on_body(self, body: bytes) -> None:
        self._head -= len(body)
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._head = 0
        self._wait_no_more()
        super().on_message_complete()

    def _wait(self) -> None:
        if self._waiting is None:
            self._waiting = self.loop.call_later(WHOLE_WITHIN_S, self.transport.close)

    def _wait_no_more(self) -> None:
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None
