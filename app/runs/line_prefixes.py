"""Lanes where there is one column only: each line of a worker or a replica begins with its name. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator

MAX_LINE_LENGTH = 8_000
"""Characters. A longer line is cut, so that what never ends a line is shown, too."""

LaneStream = tuple[str, str]
"""A lane and a stream: each has a line that it is in the midst of."""


def prefix_lines(lane: str | None, text: str) -> str:
    """Put the lane's name before each line; text of no lane stays as it is."""
    return text if lane is None else "\n".join(f"[{lane}] {line}" for line in text.split("\n"))


class LaneLineBuffer:
    """Gathers what lanes write until a line is whole, so that one never stands in the midst of another's line.

    Args:
        settle: what becomes of a whole line, as carriage returns are carried out.
    """

    def __init__(self, settle: Callable[[str], str]) -> None:
        self._settle = settle
        self._begun: dict[LaneStream, str] = {}

    def feed(self, lane: str, stream: str, text: str) -> str:
        """Take a piece; return the lines that are whole with it."""
        whole, newline, rest = (self._begun.pop((lane, stream), "") + text).rpartition("\n")
        if len(rest) > MAX_LINE_LENGTH:
            whole, newline, rest = f"{whole}{newline}{rest}", "\n", ""
        if rest:
            self._begun[lane, stream] = rest
        return self._named(lane, whole) if newline else ""

    def rest(self, lane: str | None = None) -> Iterator[tuple[str, str, str]]:
        """Yield lane, stream and line of what was never ended, of one lane or of all, and forget it."""
        for key in [key for key in self._begun if lane in (None, key[0])]:
            yield (*key, self._named(key[0], self._begun.pop(key)))

    def _named(self, lane: str, lines: str) -> str:
        return prefix_lines(lane, self._settle(lines)) + "\n"
