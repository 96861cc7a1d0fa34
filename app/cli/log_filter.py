"""Copies logs to a terminal: their colors pass, and everything else that a terminal would obey is escaped.

Root's terminal shows what the web application writes. An attacker who controls it could otherwise fill root's
clipboard, rename the window, or make the terminal type an answer into the shell.
"""

from __future__ import annotations

import codecs
import os
import re
from contextlib import suppress
from typing import IO

from app.cli.ansi_filter import RESET
from runners.wire.log_text import escape_controls

_COLOR = re.compile(r"(\x1b\[[0-9;:]{0,40}m)")
_UNFINISHED_COLOR = re.compile(r"\x1b(?:\[[0-9;:]{0,40})?\Z")
_PIECE_BYTES = 65_536


class LogFilter:
    """Filters one stream of text on its way to a terminal."""

    def __init__(self) -> None:
        self._pending = ""
        """The beginning of a color whose rest has not arrived yet."""
        self._has_color = False

    def filter(self, text: str) -> str:
        """Filter the next piece of text."""
        text = self._pending + text
        unfinished = _UNFINISHED_COLOR.search(text)
        self._pending = unfinished[0] if unfinished else ""
        return self._escape(text[: len(text) - len(self._pending)])

    def end(self) -> str:
        """What is left to show, and the end of the last color."""
        text, self._pending = self._pending, ""
        return self._escape(text) + RESET * self._has_color

    def _escape(self, text: str) -> str:
        parts = _COLOR.split(text)  # text, color, text, …, text
        self._has_color = self._has_color or len(parts) > 1
        return "".join(part if n % 2 else escape_controls(part, keep="\n\t") for n, part in enumerate(parts))


def copy_to_terminal(source: IO[bytes], terminal: int) -> None:
    """Copy until the end of ``source``, a pipe without a buffer. It is read on even if the terminal has gone."""
    decode = codecs.getincrementaldecoder("utf-8")("backslashreplace").decode
    shown = LogFilter()
    while data := source.read(_PIECE_BYTES):
        _write(terminal, shown.filter(decode(data)))
    _write(terminal, shown.filter(decode(b"", final=True)) + shown.end())


def _write(terminal: int, text: str) -> None:
    data = text.encode("utf-8", "backslashreplace")
    with suppress(OSError):
        while data:
            data = data[os.write(terminal, data) :]
