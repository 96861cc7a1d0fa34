"""Filters a program's output for a terminal: passes text, colors, and the cursor movements of a progress bar.

A terminal executes control sequences. Those that learner code prints could fill the user's clipboard, rename the
window, or make the terminal type an answer into the shell. They are removed, even if they arrive in pieces.
"""

from __future__ import annotations

import re

from app.runs.printed_lines import strip_control
from app.web.user_text import escape_bidi_controls

RESET = "\x1b[0m"
_STRING_BODY = "[^\x07\x1b\n\x9c]*"
_SEQUENCE = re.compile(
    r"\x1b\[[\x30-\x3f]*[\x20-\x2f]*[\x40-\x7e]"  # control sequences: colors, movements, queries
    rf"|\x1b[\]PX^_]{_STRING_BODY}(?:\x07|\x1b\\|\x9c)?"  # strings for the terminal itself: title, clipboard, macros
    r"|\x1b[\x20-\x2f]*[\x30-\x7e]?"
    r"|[\x00-\x07\x0b\x0c\x0e-\x1f\x7f-\x9f]"  # all control characters but \b \t \n \r
)
_HARMLESS = re.compile(r"\x1b\[(?:[0-9;:]*m|[0-9]*[A-DGK])")
"""Colors; moving the cursor up, down, right, left, or to a column; erasing in the line."""
_UNFINISHED = re.compile(rf"\x1b(?:\[[\x20-\x3f]*|[\]PX^_]{_STRING_BODY}\x1b?|[\x20-\x2f]*)?\Z")
_MAX_UNFINISHED = 4096
_CURSOR_MOVE = re.compile(r"\x1b\[[0-9]*[A-DGK]")


class AnsiFilter:
    """Filters one stream of text on its way to a terminal."""

    def __init__(self) -> None:
        self._pending = ""
        """The beginning of a sequence whose rest has not arrived yet."""

    def filter(self, text: str) -> str:
        """Filter the next piece of text."""
        text = self._pending + text
        unfinished = _UNFINISHED.search(text)
        self._pending = unfinished[0] if unfinished and len(unfinished[0]) <= _MAX_UNFINISHED else ""
        return _SEQUENCE.sub(_keep_if_harmless, text[: len(text) - len(self._pending)])


def strip_cursor_moves(line: str) -> str:
    """Remove sequences that would move the cursor out of the line."""
    return _CURSOR_MOVE.sub("", line)


def plain_text(text: str) -> str:
    """The text without colors and whatever else a terminal obeys; controls that reorder a line are made visible."""
    return escape_bidi_controls(strip_control(text))


def _keep_if_harmless(sequence: re.Match[str]) -> str:
    return sequence[0] if _HARMLESS.fullmatch(sequence[0]) else ""
