"""Keeps the output of a kernel in memory that outlives it, so that a crash loses no text.

Text leaves a kernel in messages, a moment after it was printed, through threads that end with the process. So the
kernel first writes it here, and each message says how far into this journal its text reaches. After a crash the
supervisor reads the text that no message delivered.

The supervisor creates the memory; PID 1 of the sandbox and the kernel map it. The learner's program can write anything
into it, but that can only forge the program's own output: whatever the memory holds, a reader gets a bounded number of
bytes. Its size is sealed, so that reading it cannot fail.
"""

from __future__ import annotations

import contextlib
import fcntl
import mmap
import os
import struct
from dataclasses import dataclass

STREAMS = ("stdout", "stderr")
KEPT_BYTES = 1 << 20
"""Bytes kept of each stream: more than a kernel prints while its messages are in transit."""

_READ_BYTES = 1 << 16
_HEADER = struct.Struct("<qqq16s")
_END, _TAKEN, _NONCE = 0, 8, 24
"""Their offset in the header."""
_HEADER_BYTES = 4096
_PART_BYTES = _HEADER_BYTES + _READ_BYTES + KEPT_BYTES
_LARGEST = 2**62


def create() -> int:
    """Create the memory for one sandbox; returns its descriptor."""
    descriptor = os.memfd_create("printed", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    os.ftruncate(descriptor, _PART_BYTES * len(STREAMS))
    fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL)
    return descriptor


def open_streams(descriptor: int) -> dict[str, StreamJournal]:
    """Map the memory; returns the journal of each stream by name."""
    memory = memoryview(mmap.mmap(descriptor, _PART_BYTES * len(STREAMS)))
    return {
        stream: StreamJournal(memory[number * _PART_BYTES : (number + 1) * _PART_BYTES])
        for number, stream in enumerate(STREAMS)
    }


@dataclass(frozen=True, slots=True)
class OutputStream:
    """A kernel's standard output or error: its journal, and the pipe behind its descriptor."""

    journal: StreamJournal
    read_end: int
    write_end: int


class StreamJournal:
    """The journal of one stream. Positions count bytes from the kernel's start; only the latest bytes are kept.

    One thread appends at a time, and one stages. The header holds the position of the end, the bytes taken from
    pipes, and, plus one, how many of those there were when bytes were last staged (0: never).
    """

    def __init__(self, memory: memoryview) -> None:
        self._header = memory[:_HEADER_BYTES]
        self._staged = memory[_HEADER_BYTES : _HEADER_BYTES + _READ_BYTES]
        self._kept = memory[_HEADER_BYTES + _READ_BYTES :]

    @property
    def end(self) -> int:
        """The number of bytes written so far."""
        return self._read_header()[0]

    @property
    def nonce(self) -> str:
        """The nonce in the tags of this stream (see ``runners.wire.replica_tags``); may be any text."""
        nonce: bytes = _HEADER.unpack_from(self._header)[3]
        return nonce.rstrip(b"\0").decode("ascii", "replace")

    @nonce.setter
    def nonce(self, nonce: str) -> None:
        struct.pack_into("16s", self._header, _NONCE, nonce.encode("ascii"))

    def begin(self) -> None:
        """Forget everything, because another kernel is about to start."""
        if self._read_header()[2]:
            self._clear_staged()
        _HEADER.pack_into(self._header, 0, 0, 0, 0, b"")

    def append(self, data: bytes, taken: int = 0) -> None:
        """Write ``data``, which replaces the last ``taken`` bytes that ``stage`` returned."""
        end, before, _ = self._read_header()
        latest = data[-KEPT_BYTES:]
        start = (end + len(data) - len(latest)) % KEPT_BYTES
        first = min(len(latest), KEPT_BYTES - start)
        self._kept[start : start + first] = latest[:first]
        self._kept[: len(latest) - first] = latest[first:]
        if taken:
            struct.pack_into("<qq", self._header, _END, end + len(data), before + taken)
        else:
            struct.pack_into("<q", self._header, _END, end + len(data))

    def stage(self, pipe: int) -> bytes:
        """Read from a pipe directly into this memory. Then ``append`` the text, with the returned length as ``taken``.

        The reading thread may never run again after the bytes have left the pipe: the program can end, or keep the
        interpreter busy until it is killed.
        """
        _, taken, staged_at = self._read_header()
        if staged_at:
            self._clear_staged()
        struct.pack_into("<qq", self._header, _TAKEN, taken, taken + 1)
        return bytes(self._staged[: os.readv(pipe, [self._staged])])

    def after(self, position: int) -> tuple[bytes, int]:
        """The bytes written after ``position``, and how many of them are no longer kept."""
        end, taken, staged_at = self._read_header()
        written = max(0, end - position)
        kept = min(written, KEPT_BYTES)
        start = (end - kept) % KEPT_BYTES
        data = bytes(self._kept[start : start + kept])
        data += bytes(self._kept[: kept - len(data)])
        if staged_at == taken + 1:
            data += bytes(self._staged).rstrip(b"\0")
        return data, written - kept

    def settle(self, pipe: int) -> None:
        """Write staged bytes and the rest of the pipe, after every process that had the pipe has ended."""
        _, taken, staged_at = self._read_header()
        if staged_at == taken + 1:
            self.append(bytes(self._staged).rstrip(b"\0"), taken=1)
        os.set_blocking(pipe, False)
        with contextlib.suppress(BlockingIOError):
            while data := os.read(pipe, _READ_BYTES):
                self.append(data)

    def _clear_staged(self) -> None:
        self._staged[:] = bytes(_READ_BYTES)

    def _read_header(self) -> tuple[int, int, int]:
        end, taken, staged_at, _ = _HEADER.unpack_from(self._header)
        return end % _LARGEST, taken % _LARGEST, staged_at % _LARGEST
