"""Limits on one HTTP connection: how much it may send before there is a complete request, and how long it may stall.

Uvicorn's parser keeps header lines as long as they arrive, so a single connection could fill the memory of the process.
This module counts everything except bodies, which ``web.body_limit`` counts: request headers, the framing of chunked
bodies, and what follows a body.

Uvicorn also tolerates clients that send requests but do not read the responses, which then stay in memory. The kernel
knows whether a client reads, because it counts acknowledged bytes, even on a stream that sends little.
"""

from __future__ import annotations

import socket
import struct
from asyncio import BaseTransport, TimerHandle, Transport
from typing import cast
from urllib.parse import urlsplit

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

MAX_HEADER_BYTES = 64 * 1024
"""Per request, without its body. The data of one socket read is always accepted."""
REQUEST_TIMEOUT_S = 60.0
"""How long a whole request with its body may take to arrive, and the first request of a connection."""
STALL_TIMEOUT_KEY = "connection_stall_timeout_s"
"""Key in the lifespan's state: how many seconds a response may wait to be read."""
_CHECKS_PER_TIMEOUT = 4
"""How often a connection is checked within that time."""
_TCP_INFO = struct.Struct("=24xI92xQ16xI")
"""From Linux's ``struct tcp_info``: unacknowledged segments, acknowledged bytes, unsent bytes."""
_HEADERS_TOO_LARGE = b"HTTP/1.1 431 Request Header Fields Too Large\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"


class LimitedHttpProtocol(HttpToolsProtocol):
    """Uvicorn's protocol with limits."""

    _head = 0
    """Bytes of the current request so far, without its body."""
    _waiting: TimerHandle | None = None
    """Set while a request is being received."""
    _looking: TimerHandle | None = None
    """Set while connected, if this server closes stalled connections."""
    _read = 0
    """Bytes that the client had acknowledged at the last check."""

    def connection_made(self, transport: BaseTransport) -> None:
        super().connection_made(cast(Transport, transport))
        self._wait()
        self._stalled_s: float = self.app_state.get(STALL_TIMEOUT_KEY, 0)
        self._read_at = self.loop.time()
        if self._stalled_s:
            self._looking = self.loop.call_later(self._stalled_s / _CHECKS_PER_TIMEOUT, self._look)

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._wait_no_more()
        if self._looking is not None:
            self._looking.cancel()

    def data_received(self, data: bytes) -> None:
        self._wait()
        self._head += len(data)
        super().data_received(data)
        if self._head > MAX_HEADER_BYTES and not self.transport.is_closing():
            if self.cycle is None or self.cycle.response_complete:
                self.transport.write(_HEADERS_TOO_LARGE)
            self.transport.close()

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._wait()

    def on_headers_complete(self) -> None:
        named = b"" if self.url.startswith(b"/") else urlsplit(self.url).netloc
        if named and [named] != [value for name, value in self.headers if name == b"host"]:
            self.headers.append((b"host", named))
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._head -= len(body)
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._head = 0
        self._wait_no_more()
        super().on_message_complete()

    def _wait(self) -> None:
        if self._waiting is None:
            self._waiting = self.loop.call_later(REQUEST_TIMEOUT_S, self.transport.close)

    def _wait_no_more(self) -> None:
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None

    def _look(self) -> None:
        """Close the connection if data is waiting and the client has read none for too long."""
        tcp: socket.socket = self.transport.get_extra_info("socket")
        info = tcp.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _TCP_INFO.size)
        on_its_way, read, unsent = _TCP_INFO.unpack(info)
        waits = on_its_way or unsent or self.transport.get_write_buffer_size()
        if not waits or read != self._read:
            self._read, self._read_at = read, self.loop.time()
        elif self.loop.time() - self._read_at >= self._stalled_s:
            self.transport.abort()
            return
        self._looking = self.loop.call_later(self._stalled_s / _CHECKS_PER_TIMEOUT, self._look)
