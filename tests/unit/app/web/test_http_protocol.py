"""Connections that send a lot, or slowly, before there is anything to answer: a real server, real sockets."""

from __future__ import annotations

import asyncio
import socket
from asyncio import StreamReader, StreamWriter
from collections.abc import AsyncIterator

import pytest
import uvicorn
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.types import Receive, Scope, Send

from app.web import http_protocol
from app.web.http_protocol import MAX_HEADER_BYTES, LimitedHttpProtocol

GET = b"GET / HTTP/1.1\r\nhost: here\r\n"
CHUNKED = b"POST / HTTP/1.1\r\nhost: here\r\ntransfer-encoding: chunked\r\n\r\n"


async def _length(scope: Scope, receive: Receive, send: Send) -> None:
    body = await Request(scope, receive).body()
    await PlainTextResponse(f"{len(body)} bytes")(scope, receive, send)


@pytest.fixture
async def port() -> AsyncIterator[int]:
    server = uvicorn.Server(uvicorn.Config(_length, port=0, http=LimitedHttpProtocol, lifespan="off", log_config=None))
    serving = asyncio.create_task(server.serve())
    for _ in range(1000):
        if server.started:
            break
        await asyncio.sleep(0.01)
    yield server.servers[0].sockets[0].getsockname()[1]
    server.should_exit = True
    await serving


async def _open(port: int) -> tuple[StreamReader, StreamWriter]:
    return await asyncio.open_connection("127.0.0.1", port)


async def _sent_until_closed(port: int, begin: bytes, more: bytes, most_bytes: int = 40_000_000) -> tuple[int, bytes]:
    """How many bytes the server took before it closed the connection, and what it answered."""
    reader, writer = await _open(port)
    writer.write(begin)
    sent = 0
    try:
        while sent < most_bytes:
            writer.write(more)
            await writer.drain()
            sent += len(more)
    except ConnectionError:
        pass
    try:
        answer = await asyncio.wait_for(reader.read(), 5)
    except (ConnectionError, TimeoutError):
        answer = b""
    writer.close()
    return sent, answer


@pytest.mark.parametrize(
    ("begin", "more"),
    [
        pytest.param(GET, b"a: b\r\n" * 5_000, id="many header lines"),
        pytest.param(GET + b"x: ", b"x" * 30_000, id="a header line without an end"),
        pytest.param(GET, b"x" * 30_000, id="a header name without an end"),
        pytest.param(b"GET /", b"x" * 30_000, id="an address without an end"),
        pytest.param(CHUNKED + b"0\r\n", b"a: b\r\n" * 5_000, id="header lines behind the body"),
        pytest.param(CHUNKED + b"1;", b"x" * 30_000, id="an extension of a chunk without an end"),
    ],
)
async def test_nobody_is_listened_to_without_end(port: int, begin: bytes, more: bytes) -> None:
    sent, _answer = await _sent_until_closed(port, begin, more)
    assert sent < 20_000_000  # most of it was waiting in the sockets' buffers


async def test_who_has_said_too_much_is_told(port: int) -> None:
    reader, writer = await _open(port)
    writer.write((GET + b"a: ").ljust(MAX_HEADER_BYTES + 1, b"b"))  # what is left unread would reset the connection
    assert (await asyncio.wait_for(reader.read(), 5)).startswith(b"HTTP/1.1 431 ")
    writer.close()


async def test_a_long_body_is_not_a_long_head(port: int) -> None:
    body = b"".join(b"%x\r\n%s\r\n" % (size, b"x" * size) for size in [1000] * 900) + b"0\r\n\r\n"
    reader, writer = await _open(port)
    for _ in range(3):  # on one connection
        writer.write(CHUNKED + body)
        assert await asyncio.wait_for(reader.readuntil(b"900000 bytes"), 5)
    writer.close()


@pytest.mark.parametrize(
    "begin",
    [b"", b"\r\n", b"GE", GET, GET + b"content-length: 100\r\n\r\nx", GET + b"\r\n" + GET],
    ids=["nothing", "an empty line", "a word", "no end of the head", "no end of the body", "a second one"],
)
async def test_a_request_that_does_not_come_is_waited_for_only_so_long(
    monkeypatch: pytest.MonkeyPatch, port: int, begin: bytes
) -> None:
    monkeypatch.setattr(http_protocol, "REQUEST_TIMEOUT_S", 0.3)
    reader, writer = await _open(port)
    writer.write(begin)
    await asyncio.wait_for(reader.read(), 4)  # to the end: sooner than a kept connection is closed
    writer.close()


async def test_an_answer_may_take_longer_than_its_question(monkeypatch: pytest.MonkeyPatch, port: int) -> None:
    monkeypatch.setattr(http_protocol, "REQUEST_TIMEOUT_S", 0.3)
    connection = socket.create_connection(("127.0.0.1", port))
    connection.sendall(GET + b"\r\n")  # the server, which runs between the steps of this test, finds both at once
    reader, writer = await asyncio.open_connection(sock=connection)
    assert await asyncio.wait_for(reader.readuntil(b"0 bytes"), 5)
    for _ in range(2):
        await asyncio.sleep(0.4)
        writer.write(GET + b"\r\n")
        assert await asyncio.wait_for(reader.readuntil(b"0 bytes"), 5)
    writer.close()
