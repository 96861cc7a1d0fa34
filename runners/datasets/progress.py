"""Saying how a download goes: one line redrawn on a terminal, one line a file in a log, or nothing."""

from __future__ import annotations

import io
import time
from typing import TextIO

_REDRAW_S = 0.1
_MB = 1_000_000


class DownloadProgress:
    """Writes to ``stream``, or nowhere; redraws in place if that is a terminal."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream or io.StringIO()
        self._redraws = self._stream.isatty()
        self._file, self._size, self._drawn_s = "", 0, 0.0

    def begin(self, file: str, size: int) -> None:
        """Name the file, of so many bytes; on a terminal, draw it at once."""
        self._file, self._size, self._drawn_s = file, size, 0.0
        self.at(0)

    def at(self, have: int) -> None:
        """So many bytes are there: redraw the line, at most ten times a second."""
        now = time.monotonic()
        if self._redraws and now - self._drawn_s >= _REDRAW_S:
            self._drawn_s = now
            share = 100 * have // max(self._size, 1)
            self._stream.write(f"\r\x1b[K{self._file}  {share:3d} %  {have / _MB:.1f} of {self._size / _MB:.1f} MB")
            self._stream.flush()

    def end(self, word: str) -> None:
        """Write the line that stays; ``word`` says how it ended."""
        start = "\r\x1b[K" if self._redraws else ""
        self._stream.write(f"{start}{self._file}  {self._size / _MB:.1f} MB  {word}\n")
        self._stream.flush()
