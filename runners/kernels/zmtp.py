"""ZMTP 3, the protocol between ZeroMQ sockets, as far as a client of a Jupyter kernel needs it. Pure: bytes in,
messages out.

libzmq bounds a frame, but not the frames of a message, and a message without end would make the supervisor grow
without end. Here everything a peer can send has a bound that is checked when a frame is announced, before its bytes are
taken. See https://rfc.zeromq.org/spec/23/ (NULL mechanism).

We say that we speak 3.0, and a peer that speaks 3.1 then does so too: a subscription is a message. Greeting and READY
are sent at once, before the peer has said a word. Messages have to wait for its READY: libzmq takes none before it has
sent its own.
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
    """Bytes that are not what the protocol says."""


class MessageTooLarge(ZmtpError):
    """More bytes in one message than the limit."""


class TooManyFrames(ZmtpError):
    """More frames in one message than the limit."""


class TooManyCommands(ZmtpError):
    """More commands in a row than the limit, or a longer one."""


@dataclass(frozen=True, slots=True)
class ZmtpLimits:
    """What a peer may send."""

    message_bytes: int
    """Of one message, all frames together."""
    frames: int = 256
    """Of one message. Jupyter's have six or seven, and one for each buffer of a widget."""
    command_bytes: int = 1024
    commands: int = 10_000
    """Between two messages. A kernel sends one when it is greeted, and none later."""


class ZmtpPeer:
    """The other end of a connection: what it sends is fed in, whole messages are taken out one by one.

    It cannot be used after a ZmtpError. It holds no more than one message of ``limits`` beside what was fed at once.
    """

    def __init__(self, ours: SocketType, limits: ZmtpLimits) -> None:
        self.ready = False
        """Whether it has introduced itself."""
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
        """Bytes in memory that make no whole message yet."""
        return len(self._buffer) + self._bytes

    def feed(self, data: bytes) -> None:
        """Take what was received. Call ``take`` until it returns None before more is fed."""
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
        """Have a message sent, after the peer has introduced itself. What is to go out, ``to_send`` has."""
        (self._to_send if self.ready else self._waiting).extend(encode(frames))

    def to_send(self) -> bytes:
        """What is to be sent now: introduction, messages, answers to commands. Empty the second time."""
        data, self._to_send = bytes(self._to_send), bytearray()
        return data

    def _take_greeting(self) -> bool:
        first, last = 0, len(_SIGNATURE) - 1  # what is between them has no meaning
        if len(self._buffer) > last and (self._buffer[first], self._buffer[last]) != (_SIGNATURE[0], _SIGNATURE[-1]):
            raise InvalidZmtp("the greeting is not ZMTP's")
        if len(self._buffer) < len(_GREETING):
            return False
        if self._buffer[10] < 3 or self._buffer[12:32] != _MECHANISM:
            raise InvalidZmtp("the greeting is not of version 3 without encryption")
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
        """Whether a frame that was announced may come."""
        limits = self._limits
        if flags & ~(_MORE | _LONG | _COMMAND) or (flags & _COMMAND and flags & _MORE):
            raise InvalidZmtp(f"no frame has the flags {flags:#x}")
        if flags & _COMMAND:
            if size > limits.command_bytes or self._commands >= limits.commands:
                raise TooManyCommands(f"{self._commands + 1} commands in a row, the last of {size} bytes")
        elif not self.ready:
            raise InvalidZmtp("a message before the peer introduced itself")
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
                raise InvalidZmtp("a PING of another length")
            self._to_send += _frame(_COMMAND, b"\x04PONG" + rest[_TTL_BYTES:])


def encode(frames: Sequence[bytes]) -> bytes:
    """A message as it is sent."""
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
            raise InvalidZmtp("a property that is cut short")
        found[name.lower()], data = rest[4 : 4 + size], rest[4 + size :]
    return found
