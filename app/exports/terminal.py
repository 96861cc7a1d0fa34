"""Processes text like a terminal: applies carriage returns and backspaces, keeps colors."""

from __future__ import annotations

import re

_RESET = re.compile("\b+\r")
_ESCAPE = re.compile("\x1b\\[[0-9;?]*[A-Za-z]")


def render_terminal_text(text: str) -> str:
    """The text with every line as a terminal would show it. Linear in the length of the text."""
    if "\r" not in text and "\b" not in text:
        return text
    text = _RESET.sub("\r", text.replace("\r\n", "\n"))
    return "\n".join(map(_render_line, text.split("\n")))


def _render_line(line: str) -> str:
    if "\b" in line:
        line = _apply_backspaces(line)
    if "\r" not in line:
        return line
    segments = [segment for segment in line.split("\r") if segment]
    if any(_ESCAPE.search(segment) for segment in segments):
        return segments[-1]
    shown: list[str] = []
    for segment in segments:
        shown[: len(segment)] = segment
    return "".join(shown)


def _apply_backspaces(line: str) -> str:
    """Apply backspaces: the next character replaces the one before."""
    cells: list[str] = []
    at = 0
    for character in line:
        if character == "\b":
            at -= bool(at and cells[at - 1] != "\r")
        elif character == "\r":
            cells.append(character)
            at = len(cells)
        else:
            cells[at : at + 1] = [character]
            at += 1
    return "".join(cells)
