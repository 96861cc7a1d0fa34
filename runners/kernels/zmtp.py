"""ZMTP 3, the protocol of ZeroMQ sockets, as far as a Jupyter client needs it. Pure: bytes in, messages out.

libzmq bounds the size of a frame but not the number of frames, so an endless message would make the supervisor grow
without limit. Here everything that a peer can send has a bound, which is checked when a frame is announced, before its
bytes are accepted. See https://rfc.zeromq.org/spec/23/ (NULL mechanism).

We announce version 3.0, so a peer with 3.1 uses 3.0, too: a subscription is a message. Greeting and READY are sent at
once, before anything arrives from the peer. Messages have to wait for the peer's READY, because libzmq accepts none
before it has sent its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

_MORE, _LONG, _COMMAND = 1, 2, 4
_SIGNATURE = b"\xff" + bytes(8) + b"\x7f"
_MECHANISM = b"NULL".ljust(20, b"\0")
_GREETING = _SIGNATURE + b"\x03\x00" + _MECHANISM + bytes(32)
_SUBSCRIBE_ALL = b"\x01"
_SHORT_HEADER, _LONG_HEADER = 2, 9
_LONGEST_SHORT = 255
_LONGEST_CONTEXT = 16
_TTL_BYTES = 2

SocketType = Literal["DEALER", "SUB"]
_PEERS = {"DEALER": (b"ROUTER", b"REP", b"DEALER"), "SUB": (b"XPUB", b"PUB")}


class ZmtpError(Exception):
    """The peer broke the protocol or a limit: nothing more can be read from it."""


class InvalidZmtp(ZmtpError):
    """Bytes that violate the protocol."""


class MessageTooLarge(ZmtpError):
    """One message has more bytes than the limit."""


class TooManyFrames(ZmtpError):
    """One message has more frames than the limit."""


class TooManyCommands(ZmtpError):
    """More consecutive commands than the limit, or a command that is too long."""


@dataclass(frozen=True, slots=True)
class ZmtpLimits:
    """What a peer may send."""

    message_bytes: int
    """Bytes of one message, all frames together."""
    frames: int = 256
    """Frames of one message. Jupyter's have six or seven, plus one for each buffer of a widget."""
    command_bytes: int = 1024
    commands: int = 10_000
    """Commands between two messages. A kernel sends one after the greeting, and none later."""


class ZmtpPeer:
    """The other end of a connection: feed in received bytes, and take out complete messages one by one.

    It cannot be used after a ZmtpError. It holds at most one message within ``limits``, plus the bytes fed last.
    """

    def __init__(self, ours: SocketType, limits: ZmtpLimits) -> None:
        self.ready = False
        """Whether the handshake is complete."""
        self._ours = ours
        self._limits = limits
        self._greeted = False
        self._buffer = bytearray()
        self._frames: list[bytes] = []
        self._bytes = 0
        self._commands = 0
        socket_type = ours.encode()
        ready = b"\x05READY\x0bSocket-Type" + len(socket_type).to_bytes(4, "big") + socket_type
        self._to_send = bytearray(_GREETING + _frame(_COMMAND, ready))
        self._waiting = bytearray(encode([_SUBSCRIBE_ALL]) if ours == "SUB" else b"")

    @property
    def held(self) -> int:
        """Bytes in memory that do not make a complete message yet."""
        return len(self._buffer) + self._bytes

    def feed(self, data: bytes) -> None:
        """Add received bytes. Call ``take`` until it returns None before feeding more."""
        self._buffer += data

    def take(self) -> list[bytes] | None:
        """The frames of the next message, or None until more is fed.

        Raises:
            InvalidZmtp, MessageTooLarge, TooManyFrames, TooManyCommands.
        """
        if not self._greeted and not self._take_greeting():
            return None
        for flags, body in self._take_frames():
            if flags & _COMMAND:
                self._obey(body)
                continue
            self._frames.append(body)
            self._bytes += len(body)
            if not flags & _MORE:
                message, self._frames = self._frames, []
                self._bytes = self._commands = 0
                return message
        return None

    def send(self, frames: Sequence[bytes]) -> None:
        """Queue a message for after the handshake. ``to_send`` returns the bytes."""
        (self._to_send if self.ready else self._waiting).extend(encode(frames))

    def to_send(self) -> bytes:
        """Take the bytes to send now: greeting, messages, answers to commands. Each is returned once."""
        data, self._to_send = bytes(self._to_send), bytearray()
        return data

    def _take_greeting(self) -> bool:
        first, last = 0, len(_SIGNATURE) - 1  # what is between them has no meaning
        if len(self._buffer) > last and (self._buffer[first], self._buffer[last]) != (_SIGNATURE[0], _SIGNATURE[-1]):
            raise InvalidZmtp("the greeting is not that of ZMTP")
        if len(self._buffer) < len(_GREETING):
            return False
        if self._buffer[10] < 3 or self._buffer[12:32] != _MECHANISM:
            raise InvalidZmtp("the greeting is not for version 3 without encryption")
        del self._buffer[: len(_GREETING)]
        self._greeted = True
        return True

    def _take_frames(self) -> Iterator[tuple[int, bytes]]:
        buffer = self._buffer
        while len(buffer) >= _SHORT_HEADER:
            flags, size, start = buffer[0], buffer[1], _SHORT_HEADER
            if flags & _LONG:
                if len(buffer) < _LONG_HEADER:
                    return
                size, start = int.from_bytes(buffer[1:_LONG_HEADER], "big"), _LONG_HEADER
            self._check(flags, size)
            end = start + size
            if len(buffer) < end:
                return
            with memoryview(buffer) as view:
                body = bytes(view[start:end])
            del buffer[:end]
            yield flags, body

    def _check(self, flags: int, size: int) -> None:
        """Check whether an announced frame is allowed."""
        limits = self._limits
        if flags & ~(_MORE | _LONG | _COMMAND) or (flags & _COMMAND and flags & _MORE):
            raise InvalidZmtp(f"no frame has the flags {flags:#x}")
        if flags & _COMMAND:
            if size > limits.command_bytes or self._commands >= limits.commands:
                raise TooManyCommands(f"{self._commands + 1} consecutive commands, the last of {size} bytes")
        elif not self.ready:
            raise InvalidZmtp("a message before the handshake")
        elif self._bytes + size > limits.message_bytes:
            raise MessageTooLarge(f"a message of more than {limits.message_bytes} bytes")
        elif len(self._frames) >= limits.frames:
            raise TooManyFrames(f"a message of more than {limits.frames} frames")

    def _obey(self, command: bytes) -> None:
        self._commands += 1
        length = command[0] if command else 0
        name, rest = command[1 : 1 + length], command[1 + length :]
        if not name or len(name) < length:
            raise InvalidZmtp("a command without a name")
        if not self.ready:
            if name != b"READY" or _properties(rest).get(b"socket-type") not in _PEERS[self._ours]:
                raise InvalidZmtp(f"not a peer for {self._ours}")
            self.ready = True
            self._to_send += self._waiting
            self._waiting = bytearray()
        elif name == b"PING":
            if not _TTL_BYTES <= len(rest) <= _TTL_BYTES + _LONGEST_CONTEXT:
                raise InvalidZmtp("a PING of the wrong length")
            self._to_send += _frame(_COMMAND, b"\x04PONG" + rest[_TTL_BYTES:])


def encode(frames: Sequence[bytes]) -> bytes:
    """Encode a message as it is sent."""
    last = len(frames) - 1
    return b"".join(_frame(_MORE if n < last else 0, body) for n, body in enumerate(frames))


def _frame(flags: int, body: bytes) -> bytes:
    if len(body) <= _LONGEST_SHORT:
        return bytes((flags, len(body))) + body
    return bytes((flags | _LONG,)) + len(body).to_bytes(8, "big") + body


def _properties(data: bytes) -> dict[bytes, bytes]:
    """The properties of a READY command; names do not depend on case."""
    found = {}
    while data:
        name, rest = data[1 : 1 + data[0]], data[1 + data[0] :]
        size = int.from_bytes(rest[:4], "big")
        if not name or len(rest) < 4 + size:
            raise InvalidZmtp("a truncated property")
        found[name.lower()], data = rest[4 : 4 + size], rest[4 + size :]
    return found
