"""How long a request body may be, whatever its header says."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from starlette.types import Message, Receive, Scope, Send

from app.errors import HttpStatusError, RequestTooLarge
from app.web.body_limit import BodyLimit


async def _sent(body: Iterable[bytes], *headers: tuple[bytes, bytes]) -> tuple[bytes, int]:
    """What the application receives of a body of at most ten bytes, and how many messages were left unread."""
    parts = list(body)
    waiting = [
        {"type": "http.request", "body": part, "more_body": place < len(parts)} for place, part in enumerate(parts, 1)
    ]
    got = b""

    async def receive() -> Message:
        return waiting.pop(0)

    async def send(_: Message) -> None:
        raise AssertionError("nothing is answered here")

    async def app(_: Scope, receive: Receive, __: Send) -> None:
        nonlocal got
        more = True
        while more:
            message = await receive()
            got += message["body"]
            more = message["more_body"]

    await BodyLimit(app, most_bytes=10)({"type": "http", "headers": list(headers)}, receive, send)
    return got, len(waiting)


@pytest.mark.parametrize("length", [b"", b"+5", b"-1", b"5 ", b"0x5", b"5,5", b"\xb2", b"0" * 15 + b"5", b"9" * 400])
async def test_a_length_that_is_not_a_few_digits_is_refused(length: bytes) -> None:
    with pytest.raises(HttpStatusError) as refused:
        await _sent([b"12345"], (b"content-length", length))

    assert refused.value.status == 400


@pytest.mark.parametrize("length", [b"11", b"000000000000011", b"999999999999999"])
async def test_a_length_over_the_limit_is_refused_unread(length: bytes) -> None:
    with pytest.raises(RequestTooLarge):
        await _sent([], (b"content-length", length))


@pytest.mark.parametrize(
    "headers", [(), ((b"content-length", b"5"),), ((b"content-length", b"0"),), ((b"transfer-encoding", b"chunked"),)]
)
async def test_the_bytes_that_come_are_counted_whatever_was_said(headers: tuple[tuple[bytes, bytes], ...]) -> None:
    with pytest.raises(RequestTooLarge):
        await _sent([b"123456", b"123456"], *headers)


async def test_of_two_lengths_both_must_be_good() -> None:
    with pytest.raises(RequestTooLarge):
        await _sent([b"1"], (b"content-length", b"1"), (b"content-length", b"150000000"))


async def test_a_body_of_just_the_limit_arrives_whole() -> None:
    assert await _sent([b"12345", b"67890"], (b"content-length", b"10")) == (b"1234567890", 0)
