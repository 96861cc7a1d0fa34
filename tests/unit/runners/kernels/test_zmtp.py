"""ZMTP compared with libzmq, and with peers that may send anything."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
import zmq
from hypothesis import given, settings
from hypothesis import strategies as st

from runners.kernels.zmtp import (
    InvalidZmtp,
    MessageTooLarge,
    TooManyCommands,
    TooManyFrames,
    ZmtpError,
    ZmtpLimits,
    ZmtpPeer,
    encode,
)

LIMITS = ZmtpLimits(message_bytes=2000, frames=8, command_bytes=200, commands=20)
ROOMY = ZmtpLimits(message_bytes=1_000_000)
GREETING = b"\xff" + bytes(8) + b"\x7f\x03\x00" + b"NULL".ljust(20, b"\0") + bytes(32)
READY = b"\x05READY\x0bSocket-Type\x00\x00\x00\x06ROUTER"
HELLO = GREETING + bytes([4, len(READY)]) + READY
PING = b"\x04\x07\x04PING\x00\x00"

_MESSAGES = st.lists(st.lists(st.binary(max_size=300), min_size=1, max_size=6), max_size=6)
_CUTS = st.lists(st.integers(1, 80), max_size=30)


def pieces(data: bytes, cuts: list[int]) -> Iterator[bytes]:
    """``data`` cut into pieces of these sizes, and the rest."""
    for size in cuts:
        yield data[:size]
        data = data[size:]
    yield data


def read(peer: ZmtpPeer, parts: Iterator[bytes], most_held: int) -> tuple[list[list[bytes]], type[ZmtpError] | None]:
    """All messages, and the kind of error that ended them, if any; memory is checked on the way."""
    messages = []
    try:
        for part in parts:
            peer.feed(part)
            while (message := peer.take()) is not None:
                messages.append(message)
            assert peer.held <= most_held
    except ZmtpError as e:
        return messages, type(e)
    return messages, None


@given(_MESSAGES, _CUTS)
def test_messages_come_out_as_they_went_in_however_they_are_cut(messages: list[list[bytes]], cuts: list[int]) -> None:
    data = HELLO + b"".join(map(encode, messages))

    assert read(ZmtpPeer("DEALER", ROOMY), pieces(data, cuts), len(data)) == (messages, None)


@settings(max_examples=500, deadline=None)
@given(
    st.sampled_from([b"", GREETING, HELLO]),
    st.lists(
        st.binary(max_size=400)
        | st.lists(st.binary(max_size=900), min_size=1, max_size=10).map(encode)
        | st.sampled_from([PING, b"\x01\x00", b"\x02" + bytes(8), b"\x06\xff", b"\x02\x7f" + b"\xff" * 7]),
        max_size=30,
    ),
    _CUTS,
)
def test_any_bytes_make_messages_or_a_typed_error_whatever_the_cuts(
    start: bytes, parts: list[bytes], cuts: list[int]
) -> None:
    data = start + b"".join(parts)
    most_held = LIMITS.message_bytes + LIMITS.command_bytes + 9 + max([*cuts, 0])
    cut = read(ZmtpPeer("DEALER", LIMITS), pieces(data, [*cuts, *([50] * (len(data) // 50))]), max(most_held, 2300))
    whole = read(ZmtpPeer("DEALER", LIMITS), iter([data]), len(data) + LIMITS.message_bytes)

    assert cut == whole
    for message in cut[0]:
        assert len(message) <= LIMITS.frames
        assert sum(map(len, message)) <= LIMITS.message_bytes


@pytest.mark.parametrize(
    ("sent", "error"),
    [
        pytest.param(b"HTTP/1.1 400 Bad Request", InvalidZmtp, id="another protocol"),
        pytest.param(GREETING[:10] + b"\x01" + GREETING[11:], InvalidZmtp, id="an old version"),
        pytest.param(GREETING.replace(b"NULL", b"CURV"), InvalidZmtp, id="another mechanism"),
        pytest.param(GREETING + b"\x00\x01x", InvalidZmtp, id="a message before READY"),
        pytest.param(GREETING + PING, InvalidZmtp, id="another command before READY"),
        pytest.param(GREETING + b"\x04\x06\x05READY", InvalidZmtp, id="READY of no type"),
        pytest.param(GREETING + b"\x04\x08\x05READY\x0bS", InvalidZmtp, id="READY cut short"),
        pytest.param(HELLO.replace(b"ROUTER", b"PUBLIC"), InvalidZmtp, id="a peer of another type"),
        pytest.param(HELLO + b"\x08\x00", InvalidZmtp, id="unknown flags"),
        pytest.param(HELLO + b"\x05\x07\x04PING\x00\x00", InvalidZmtp, id="a command with more to come"),
        pytest.param(HELLO + b"\x04\x00", InvalidZmtp, id="a command without a name"),
        pytest.param(HELLO + b"\x04\x05\x04PING", InvalidZmtp, id="a PING without its time"),
        pytest.param(HELLO + b"\x02" + (2001).to_bytes(8, "big"), MessageTooLarge, id="a large frame, announced"),
        pytest.param(HELLO + b"\x02" + b"\xff" * 8, MessageTooLarge, id="a frame of 2**64 - 1 bytes"),
        pytest.param(HELLO + (b"\x01\xff" + bytes(255)) * 8, MessageTooLarge, id="many frames that are large together"),
        pytest.param(HELLO + b"\x01\x00" * 1_000_000, TooManyFrames, id="a million empty frames"),
        pytest.param(HELLO + PING * 1_000_000, TooManyCommands, id="a million PINGs"),
        pytest.param(HELLO + b"\x06" + (201).to_bytes(8, "big"), TooManyCommands, id="a long command"),
    ],
)
def test_what_breaks_the_protocol_or_a_limit_is_a_typed_error(sent: bytes, error: type[ZmtpError]) -> None:
    peer = ZmtpPeer("DEALER", LIMITS)
    peer.feed(sent)

    with pytest.raises(error):
        peer.take()


def test_commands_between_the_frames_of_a_message_are_answered_and_leave_it_whole() -> None:
    peer = ZmtpPeer("DEALER", LIMITS)
    peer.feed(HELLO + b"\x01\x01a" + b"\x04\x0a\x04PING\x00\x00abc" + b"\x00\x01b")
    peer.to_send()

    assert peer.take() == [b"a", b"b"]
    assert peer.to_send() == b"\x04\x08\x04PONGabc"
    assert peer.to_send() == b""


def test_messages_wait_until_the_peer_has_introduced_itself() -> None:
    peer = ZmtpPeer("DEALER", LIMITS)
    peer.send([b"early"])
    introduction = peer.to_send()
    peer.feed(HELLO)

    assert peer.take() is None
    assert introduction.startswith(GREETING)
    assert b"early" not in introduction
    assert peer.to_send() == encode([b"early"])


class Libzmq:
    """A socket of libzmq that listens, and a plain connection to it."""

    def __init__(self, path: Path, kind: int) -> None:
        self.context = zmq.Context()
        self.socket = self.context.socket(kind)
        self.socket.setsockopt(zmq.LINGER, 0)
        self.socket.setsockopt(zmq.RCVTIMEO, 10_000)
        self.socket.bind(f"ipc://{path}")
        self.wire = socket.socket(socket.AF_UNIX)
        self.wire.settimeout(10)
        self.wire.connect(str(path))

    def exchange(self, peer: ZmtpPeer) -> list[bytes]:
        """Send what there is to send, and read until there is a message."""
        while True:
            self.wire.sendall(peer.to_send())
            if (message := peer.take()) is not None:
                return message
            received = self.wire.recv(65_536)
            assert received, "libzmq closed the connection"
            peer.feed(received)

    def close(self) -> None:
        self.wire.close()
        self.context.destroy(linger=0)


@pytest.fixture
def libzmq(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Libzmq]:
    """A real peer of the kind the test names."""
    peer = Libzmq(tmp_path / "s", request.param)
    yield peer
    peer.close()


_PARTS = [b"", b"a", b"b" * 255, b"c" * 256, b"d" * 100_000]


@pytest.mark.parametrize("libzmq", [zmq.ROUTER, zmq.DEALER], indirect=True, ids=["ROUTER", "DEALER"])
def test_it_talks_to_a_socket_of_libzmq_that_answers(libzmq: Libzmq) -> None:
    peer = ZmtpPeer("DEALER", ROOMY)
    peer.send(_PARTS)
    libzmq.wire.sendall(peer.to_send())
    peer.feed(libzmq.wire.recv(65_536))
    while not peer.ready:
        peer.take()
        libzmq.wire.sendall(peer.to_send())
        if not peer.ready:
            peer.feed(libzmq.wire.recv(65_536))
    asked = libzmq.socket.recv_multipart()
    libzmq.socket.send_multipart(asked)

    assert asked[-len(_PARTS) :] == _PARTS
    assert libzmq.exchange(peer) == _PARTS


@pytest.mark.parametrize("libzmq", [zmq.XPUB], indirect=True, ids=["XPUB"])
def test_it_subscribes_to_all_that_libzmq_publishes(libzmq: Libzmq) -> None:
    peer = ZmtpPeer("SUB", ROOMY)
    subscribed = 0
    while not subscribed:
        libzmq.wire.sendall(peer.to_send())
        if not peer.ready:
            peer.feed(libzmq.wire.recv(65_536))
            assert peer.take() is None
            continue
        assert libzmq.socket.recv() == b"\x01"
        subscribed += 1
    libzmq.socket.send_multipart(_PARTS)

    assert libzmq.exchange(peer) == _PARTS


@pytest.mark.parametrize("libzmq", [zmq.PUB], indirect=True, ids=["PUB"])
def test_a_plain_publisher_reaches_it_too(libzmq: Libzmq) -> None:
    peer = ZmtpPeer("SUB", ROOMY)
    libzmq.wire.settimeout(0.05)
    for _ in range(200):  # nobody says when the subscription has arrived
        libzmq.wire.sendall(peer.to_send())
        libzmq.socket.send_multipart([b"topic", b"body"])
        try:
            peer.feed(libzmq.wire.recv(65_536))
        except TimeoutError:
            continue
        if message := peer.take():
            assert message == [b"topic", b"body"]
            return
    pytest.fail("nothing was published")
