"""Saying how a download goes: one line redrawn on a terminal, one line a file in a log, or nothing."""

from __future__ import annotations

import time
from typing import Protocol, TextIO

_REDRAW_S = 0.1
_MB = 1_000_000


class DownloadProgress(Protocol):
    """What a fetch tells while it goes on."""

    def begin(self, file: str, size: int, have: int) -> None:
        """A file of ``size`` bytes is asked for, of which ``have`` are there from an earlier try."""

    def at(self, have: int) -> None:
        """``have`` bytes of the file are there now."""

    def end(self, word: str) -> None:
        """The file is settled: ``verified``, ``already there``, ``failed``."""


class NullProgress:
    """Says nothing."""

    def begin(self, file: str, size: int, have: int) -> None:
        """Nothing."""

    def at(self, have: int) -> None:
        """Nothing."""

    def end(self, word: str) -> None:
        """Nothing."""


class StreamProgress:
    """Writes to ``stream``; redraws in place if that is a terminal."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._redraws = stream.isatty()
        self._file, self._size, self._drawn_s = "", 0, 0.0

    def begin(self, file: str, size: int, have: int) -> None:
        """Name the file; on a terminal, draw it at once."""
        self._file, self._size, self._drawn_s = file, size, 0.0
        self.at(have)

    def at(self, have: int) -> None:
        """Redraw the line, at most ten times a second."""
        now = time.monotonic()
        if self._redraws and now - self._drawn_s >= _REDRAW_S:
            self._drawn_s = now
            share = 100 * have // max(self._size, 1)
            self._stream.write(f"\r\x1b[K{self._file}  {share:3d} %  {have / _MB:.1f} of {self._size / _MB:.1f} MB")
            self._stream.flush()

    def end(self, word: str) -> None:
        """Write the line that stays."""
        start = "\r\x1b[K" if self._redraws else ""
        self._stream.write(f"{start}{self._file}  {self._size / _MB:.1f} MB  {word}\n")
        self._stream.flush()
