"""One connection to a socket, with libzmq and with hand-written peers."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import zmq
import zmq.asyncio

from runners.kernels.channel import Channel, PeerClosed, open_channel
from runners.kernels.fair_share import BURST_S, SHARE, FairShare
from runners.kernels.zmtp import InvalidZmtp, MessageTooLarge, TooManyCommands, ZmtpError, ZmtpLimits, encode

LIMITS = ZmtpLimits(message_bytes=1_000_000)
READY = b"\x05READY\x0bSocket-Type\x00\x00\x00\x06ROUTER"
HELLO = b"\xff" + bytes(8) + b"\x7f\x03\x00" + b"NULL".ljust(20, b"\0") + bytes(32) + bytes([4, len(READY)]) + READY


class Stranger:
    """A peer that accepted the connection and writes bytes by hand."""

    def __init__(self, path: Path) -> None:
        self._listening = socket.socket(socket.AF_UNIX)
        self._listening.bind(str(path))
        self._listening.listen()
        self.broken: list[ZmtpError] = []
        self.share = FairShare(time.monotonic())
        self.channel = Channel("DEALER", LIMITS, self.broken.append, self.share)
        self.path = path

    async def meet(self) -> None:
        await open_channel(self.path, self.channel)
        self.connection, _ = self._listening.accept()
        self.connection.setblocking(False)
        self._listening.close()

    async def write(self, data: bytes) -> None:
        await asyncio.get_running_loop().sock_sendall(self.connection, data)

    def close(self) -> None:
        self.channel.close()
        self.connection.close()


@pytest.fixture
async def stranger(tmp_path: Path) -> AsyncIterator[Stranger]:
    stranger = Stranger(tmp_path / "s")
    await stranger.meet()
    yield stranger
    stranger.close()
    await asyncio.sleep(0)


async def test_it_speaks_with_a_router_that_comes_later(tmp_path: Path) -> None:
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(str(tmp_path / "s"))
    listening.listen()
    listening.setblocking(False)
    channel = Channel("DEALER", LIMITS, lambda cause: None, FairShare(time.monotonic()))
    await open_channel(tmp_path / "s", channel)
    channel.send([b"asked", b"before"])
    context = zmq.asyncio.Context()
    router = context.socket(zmq.ROUTER)
    router.setsockopt(zmq.USE_FD, listening.detach())  # libzmq closes it
    router.bind("ipc:///late")
    try:
        _, *frames = message = await router.recv_multipart()
        assert frames == [b"asked", b"before"]
        await router.send_multipart(message)
        assert await channel.receive() == [b"asked", b"before"]
    finally:
        channel.close()
        context.destroy(linger=0)


async def test_what_nobody_takes_waits_with_the_sender(stranger: Stranger) -> None:
    await stranger.write(HELLO)
    flood = asyncio.create_task(stranger.write(encode([b"x" * 500_000]) * 100))
    await asyncio.wait({flood}, timeout=0.3)
    assert not flood.done()
    assert stranger.channel._peer.held < 1_000_000

    for _ in range(100):
        assert await stranger.channel.receive() == [b"x" * 500_000]
    await flood


async def test_a_canceled_receive_loses_no_message(stranger: Stranger) -> None:
    await stranger.write(HELLO)
    for n in range(20):
        waiting = asyncio.create_task(stranger.channel.receive())
        await asyncio.sleep(0)
        await stranger.write(encode([b"%d" % n]))
        waiting.cancel()
        assert await stranger.channel.receive() == [b"%d" % n]


async def test_what_was_sent_before_the_end_is_read_before_the_end(stranger: Stranger) -> None:
    await stranger.write(HELLO + encode([b"1"]) + encode([b"2"]))
    stranger.connection.close()

    assert await stranger.channel.receive() == [b"1"]
    assert await stranger.channel.receive() == [b"2"]
    with pytest.raises(PeerClosed):
        await stranger.channel.receive()
    assert [type(cause) for cause in stranger.broken] == [PeerClosed]


@pytest.mark.parametrize(
    ("sent", "error"),
    [
        pytest.param(b"SSH-2.0-OpenSSH\r\n", InvalidZmtp, id="garbage"),
        pytest.param(HELLO + b"\x02" + b"\x7f" * 8, MessageTooLarge, id="too large"),
        pytest.param(HELLO + b"\x04\x07\x04PING\x00\x00" * 11_000, TooManyCommands, id="commands without end"),
    ],
)
async def test_it_breaks_with_the_reason_and_without_waiting_for_more(
    stranger: Stranger, sent: bytes, error: type[ZmtpError]
) -> None:
    await stranger.write(sent)

    with pytest.raises(error):
        await stranger.channel.receive()
    with pytest.raises(error):
        await stranger.channel.receive()
    assert [type(cause) for cause in stranger.broken] == [error]


async def test_answers_that_nobody_reads_do_not_pile_up(stranger: Stranger) -> None:
    ping = b"\x04\x17\x04PING\x00\x00" + b"c" * 16
    await stranger.write(HELLO)
    for _ in range(30):
        await stranger.write(ping * 1000 + encode([b"message"]))
        assert await stranger.channel.receive() == [b"message"]
    assert stranger.channel._transport
    assert stranger.channel._transport.get_write_buffer_size() < 200_000


async def test_closing_it_wakes_the_receiver_and_does_not_count_as_a_break(stranger: Stranger) -> None:
    waiting = asyncio.create_task(stranger.channel.receive())
    await asyncio.sleep(0)
    stranger.channel.close()

    with pytest.raises(PeerClosed):
        await waiting
    await asyncio.sleep(0.01)
    assert stranger.broken == []


async def test_nobody_listening_is_an_error_of_the_system(tmp_path: Path) -> None:
    with pytest.raises(OSError):
        await open_channel(tmp_path / "none", Channel("SUB", LIMITS, lambda cause: None, FairShare(time.monotonic())))


async def test_a_sender_that_has_used_up_its_share_is_read_later_in_whatever_pieces(stranger: Stranger) -> None:
    await stranger.write(HELLO)
    whole = encode([b"x" * 2000])
    receiving = asyncio.create_task(stranger.channel.receive())
    await stranger.write(whole[:1000])
    await asyncio.sleep(0.02)
    began = time.monotonic()
    stranger.share.pause_s(began)
    stranger.share.spend(BURST_S + 0.2 * SHARE)
    await stranger.write(whole[1000:1500])
    await asyncio.sleep(0.02)
    await stranger.write(whole[1500:])

    assert await asyncio.wait_for(receiving, 5) == [b"x" * 2000]
    assert time.monotonic() - began >= 0.2


async def test_a_channel_closed_in_a_pause_leaves_no_timer(stranger: Stranger) -> None:
    await stranger.write(HELLO)
    stranger.share.spend(BURST_S + 60 * SHARE)
    await stranger.write(encode([b"x" * 2000])[:1000])
    await asyncio.sleep(0.02)
    stranger.channel.close()

    with pytest.raises(PeerClosed):
        await asyncio.wait_for(stranger.channel.receive(), 5)
    assert not [handle for handle in getattr(asyncio.get_running_loop(), "_scheduled", []) if not handle.cancelled()]
