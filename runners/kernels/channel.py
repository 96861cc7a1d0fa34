"""One connection to a kernel's socket. At most one of its messages waits here; later ones wait at the sender.

A flood therefore fills only the memory of the session that sends it. There are no threads: the event loop says when
there are bytes, and nothing is read until the waiting message is taken, nor while the sender has used up its share of
the supervisor's time (``fair_share.py``).
"""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from runners.kernels.fair_share import FairShare
from runners.kernels.zmtp import SocketType, ZmtpError, ZmtpLimits, ZmtpPeer

_MOST_UNSENT = 65_536
"""Bytes that may wait for a peer that does not read; beyond that, its commands get no answer."""
_READ_S = 60e-6
"""CPU time that the event loop takes to notice that there is something to read."""
_WAKE_S = 60e-6
"""CPU time that it takes to wake who waits for a message."""


class PeerClosed(ZmtpError):
    """The other side closed the connection."""


_received = bytearray(65_536)
"""What is being received; each channel takes its bytes out at once."""


class Channel(asyncio.BufferedProtocol):
    """Made by ``open_channel``. ``broke`` is called once, with the reason, when no more messages can come.

    What reading and parsing cost is charged to ``share``. Reading bytes that were sent one by one costs the kernel a
    hundred times as much as reading them in one piece.
    """

    def __init__(
        self, kind: SocketType, limits: ZmtpLimits, broke: Callable[[ZmtpError], None], share: FairShare
    ) -> None:
        self._peer = ZmtpPeer(kind, limits)
        self._broke = broke
        self._share = share
        self._paused: asyncio.TimerHandle | None = None
        self._reads_since_s = 0.0
        self._transport: asyncio.Transport | None = None
        self._message: list[bytes] | None = None
        self._cause: ZmtpError | None = None
        self._waiter: asyncio.Future[None] | None = None

    def send(self, frames: Sequence[bytes]) -> None:
        """Send a message as soon as the peer is there and reads. On a broken channel, it is dropped."""
        self._peer.send(frames)
        self._flush()

    async def receive(self) -> list[bytes]:
        """Wait for the next message's frames. One caller at a time; canceling it loses nothing.

        Raises:
            ZmtpError: no more messages can come.
        """
        while self._message is None:
            if self._cause:
                raise self._cause
            self._waiter = asyncio.get_running_loop().create_future()
            await self._waiter
            self._share.spend(_WAKE_S)
        message, self._message = self._message, None
        self._look()
        return message

    def close(self) -> None:
        """Close the connection without calling ``broke``."""
        self._cause = self._cause or PeerClosed("closed here")
        self._wake()
        self._resume_now()
        if self._transport:
            self._transport.abort()

    # --- called by the event loop -------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Send the greeting at once; the peer may read it later."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        if self._cause:  # closed meanwhile
            transport.abort()
            return
        self._flush()

    def get_buffer(self, sizehint: int) -> bytearray:
        """Called before bytes are read."""
        self._reads_since_s = time.thread_time()
        return _received

    def buffer_updated(self, nbytes: int) -> None:
        """Feed the parser, and check for a complete message."""
        self._peer.feed(bytes(memoryview(_received)[:nbytes]))
        self._share.spend(_READ_S + time.thread_time() - self._reads_since_s)
        self._look()

    def connection_lost(self, exc: Exception | None) -> None:
        """The peer closed the connection, or ``_fail`` did."""
        self._fail(PeerClosed(str(exc or "the other side closed the connection")))

    def _look(self) -> None:
        """Take one message from the parser; keep reading only if there is none."""
        assert self._transport
        if self._message is None:
            begun = time.thread_time()
            try:
                self._message = self._peer.take()
            except ZmtpError as e:
                self._fail(e)
                return
            finally:
                self._share.spend(time.thread_time() - begun)
            answers = self._peer.to_send()
            if answers and self._transport.get_write_buffer_size() < _MOST_UNSENT:
                self._transport.write(answers)
        if self._transport.is_closing():
            self._wake()
        elif self._message is not None:
            self._transport.pause_reading()
            self._wake()
        elif self._paused is None:
            self._read_in_turn(self._transport)

    def _read_in_turn(self, transport: asyncio.Transport) -> None:
        """Read on, now or once the share allows it: a message may come in any number of pieces."""
        pause_s = self._share.pause_s(time.monotonic())
        if not pause_s:
            transport.resume_reading()
            return
        transport.pause_reading()
        self._paused = asyncio.get_running_loop().call_later(pause_s, self._resume)

    def _resume(self) -> None:
        self._paused = None
        if self._message is None and self._transport and not self._transport.is_closing():
            self._read_in_turn(self._transport)

    def _resume_now(self) -> None:
        """Forget a pause, because nothing will be read again."""
        if self._paused:
            self._paused.cancel()
            self._paused = None

    def _flush(self) -> None:
        data = self._peer.to_send()
        if data and self._transport:
            self._transport.write(data)

    def _fail(self, cause: ZmtpError) -> None:
        if self._cause is None:
            self._cause = cause
            self._broke(cause)
        self._resume_now()
        if self._transport:
            self._transport.abort()
        self._wake()

    def _wake(self) -> None:
        if self._waiter and not self._waiter.done():
            self._waiter.set_result(None)


async def open_channel(path: Path, channel: Channel) -> None:
    """Connect to a listening socket. Sent data waits until the connection is accepted.

    Raises:
        OSError: nobody listens, or too many connections wait to be accepted.
    """
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connection.setblocking(False)
        connection.connect(str(path))
        await asyncio.get_running_loop().create_unix_connection(lambda: channel, sock=connection)
    except BaseException:
        connection.close()
        raise
