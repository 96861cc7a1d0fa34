"""Lanes in a single column: each line of a worker or replica starts with its name. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator

MAX_LINE_LENGTH = 8_000
"""In characters. Longer lines are split, so that output without line breaks is shown too."""

LaneStream = tuple[str, str]
"""A lane and a stream; each may have an unfinished line."""


def prefix_lines(lane: str | None, text: str) -> str:
    """Put the lane's name before each line; text without a lane is unchanged."""
    return text if lane is None else "\n".join(f"[{lane}] {line}" for line in text.split("\n"))


class LaneLineBuffer:
    """Buffers the text of lanes until a line is complete, so that lanes do not interrupt each other's lines.

    Args:
        settle: applied to complete lines, for instance to resolve carriage returns.
    """

    def __init__(self, settle: Callable[[str], str]) -> None:
        self._settle = settle
        self._begun: dict[LaneStream, str] = {}

    def feed(self, lane: str, stream: str, text: str) -> str:
        """Add text. Returns the lines that are now complete."""
        whole, newline, rest = (self._begun.pop((lane, stream), "") + text).rpartition("\n")
        if len(rest) > MAX_LINE_LENGTH:
            whole, newline, rest = f"{whole}{newline}{rest}", "\n", ""
        if rest:
            self._begun[lane, stream] = rest
        return self._named(lane, whole) if newline else ""

    def rest(self, lane: str | None = None) -> Iterator[tuple[str, str, str]]:
        """Yield and remove the unfinished lines of one lane or all lanes, as (lane, stream, line)."""
        for key in [key for key in self._begun if lane in (None, key[0])]:
            yield (*key, self._named(key[0], self._begun.pop(key)))

    def _named(self, lane: str, lines: str) -> str:
        return prefix_lines(lane, self._settle(lines)) + "\n"
