"""Progress of work on many rows: one line on a terminal, otherwise a line from time to time."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Self

_TERMINAL_INTERVAL_S, _LOG_INTERVAL_S = 0.2, 10.0


class RowProgress:
    """Call it with the number of rows done, and of all rows. Work of a moment prints nothing."""

    def __init__(self, done_word: str) -> None:
        self._done_word = done_word
        self._on_terminal = sys.stderr.isatty()
        self._interval_s = _TERMINAL_INTERVAL_S if self._on_terminal else _LOG_INTERVAL_S
        self._printed_at = time.monotonic()
        self._width = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        if self._width:
            sys.stderr.write("\r" + " " * self._width + "\r")
            sys.stderr.flush()

    def __call__(self, done: int, total: int) -> None:
        now = time.monotonic()
        if now - self._printed_at < self._interval_s:
            return
        self._printed_at = now
        line = f"{self._done_word} {done:,} of {total:,} rows ({done / max(total, 1):.0%})"
        if self._on_terminal:
            sys.stderr.write(f"\r{line.ljust(self._width)}")
            self._width = len(line)
        else:
            sys.stderr.write(f"{line}\n")
        sys.stderr.flush()
