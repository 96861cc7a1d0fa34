"""Clients that stop reading are cut off, and their resources freed: a real server, real sockets, each event loop."""

from __future__ import annotations

import asyncio
import os
import socket
import threading
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, nullcontext
from pathlib import Path
from typing import ClassVar

import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import FileResponse, PlainTextResponse, Response
from starlette.routing import Route

from app.web.http_protocol import STALL_TIMEOUT_KEY, LimitedHttpProtocol
from app.web.sse import ServerSentEvent, event_stream

WITHIN_S = 1.0
LARGE = 12_000_000
"""More than the kernel keeps for a connection."""


class Opened(LimitedHttpProtocol):
    """The open connections of this process."""

    now: ClassVar[set[LimitedHttpProtocol]] = set()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self.now.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self.now.discard(self)


def application(folder: Path) -> Starlette:
    file = folder / "file.bin"
    file.write_bytes(os.urandom(LARGE))

    async def body(_request: Request) -> Response:
        return PlainTextResponse(file.read_bytes())

    async def static(_request: Request) -> Response:
        return FileResponse(file)

    async def stream(_request: Request) -> Response:
        async def frames() -> AsyncIterator[list[ServerSentEvent]]:
            while True:
                yield [ServerSentEvent("text", "x" * 100_000)]

        return event_stream(frames(), nullcontext(asyncio.Event()))

    async def silent(_request: Request) -> Response:
        async def frames() -> AsyncIterator[list[ServerSentEvent]]:
            yield [ServerSentEvent("text", "first")]
            await asyncio.sleep(3 * WITHIN_S)
            yield [ServerSentEvent("text", "last")]

        return event_stream(frames(), nullcontext(asyncio.Event()))

    routes = [Route(f"/{make.__name__}", make) for make in (body, static, stream, silent)]

    @asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncIterator[dict[str, float]]:
        yield {STALL_TIMEOUT_KEY: WITHIN_S}  # as app.main does

    return Starlette(lifespan=lifespan, routes=routes, middleware=[Middleware(GZipMiddleware, minimum_size=1000)])


@contextmanager
def serving(app: Starlette, loop: str) -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = uvicorn.Server(uvicorn.Config(app, http=Opened, loop=loop, log_config=None))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            yield listener.getsockname()[1]
        finally:
            server.should_exit = True
            thread.join()


@pytest.fixture(params=["asyncio", "uvloop"])
def port(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[int]:
    with serving(application(tmp_path), request.param) as port:
        yield port


def ask(port: int, path: str, *headers: str, room: int = 4096) -> socket.socket:
    """A browser that has sent a request, with little room for the response."""
    browser = socket.socket()
    browser.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, room)
    browser.settimeout(30)
    browser.connect(("127.0.0.1", port))
    browser.sendall("\r\n".join([f"GET {path} HTTP/1.1", "host: here", *headers, "", ""]).encode())
    return browser


async def until_none_is_open() -> None:
    async with asyncio.timeout(20):
        while Opened.now:  # noqa: ASYNC110 - the server is in another thread
            await asyncio.sleep(0.05)


async def test_who_reads_nothing_is_cut_off_whatever_was_asked_for(port: int) -> None:
    browsers = [ask(port, path) for path in ("/body", "/static", "/stream")]
    browsers += [ask(port, path, "accept-encoding: gzip") for path in ("/body", "/stream")]
    for browser in browsers:
        assert browser.recv(12) == b"HTTP/1.1 200", "it was being answered"

    await until_none_is_open()

    for browser in browsers:
        browser.close()


async def test_who_reads_slowly_gets_all_of_it(port: int) -> None:
    with ask(port, "/body", "connection: close", room=300_000) as browser:
        begun, got = time.monotonic(), 0
        while read := await asyncio.to_thread(browser.recv, 300_000):
            got += len(read)
            await asyncio.sleep(WITHIN_S / 15)
    assert got > LARGE
    assert time.monotonic() - begun > 2 * WITHIN_S, "it took longer than a connection may stall"


async def test_a_stream_with_nothing_to_say_is_not_stalled(port: int) -> None:
    with ask(port, "/silent") as browser:
        said = b""
        while b"last" not in said:
            said += (read := await asyncio.to_thread(browser.recv, 10_000))
            assert read, said
    await until_none_is_open()
