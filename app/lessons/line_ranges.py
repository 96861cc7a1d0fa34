"""The lines of a file that ``{literalinclude}`` shows. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

MAX_RANGES = 100
_RANGE = re.compile(r"(?P<first>\d*)(?P<to>-)?(?P<last>\d*)")


class InvalidLines(Exception):
    """The options select nothing. ``str()`` is the reason."""


def select_lines(text: str, options: Mapping[str, str]) -> str:
    """The lines of ``text`` that ``lines``, ``start-after``, ``start-at``, ``end-before`` and ``end-at`` select.

    Raises:
        InvalidLines: a text does not occur, or the lines are not numbers.
    """
    lines = text.removesuffix("\n").split("\n")
    if "lines" in options:
        wanted = _wanted(options["lines"])
        lines = [line for number, line in enumerate(lines, 1) if wanted(number)]
    for key, skipped in (("start-after", 1), ("start-at", 0)):
        if options.get(key):
            lines = lines[_find(lines, key, options[key]) + skipped :]
    for key, kept in (("end-before", 0), ("end-at", 1)):
        if options.get(key):
            lines = lines[: _find(lines, key, options[key]) + kept]
    return "\n".join(lines)


def _find(lines: list[str], key: str, text: str) -> int:
    at = next((number for number, line in enumerate(lines) if text in line), None)
    if at is None:
        raise InvalidLines(f"no line contains the {text[:60]!r} of '{key}'")
    return at


def _wanted(written: str) -> Callable[[int], bool]:
    ranges = []
    parts = written.split(",")
    if len(parts) > MAX_RANGES:
        raise InvalidLines(f"'lines' has {len(parts):,} parts, and the limit is {MAX_RANGES}")
    for part in parts:
        match = _RANGE.fullmatch(part.strip())
        if match is None or not (match["first"] or match["last"]) or len(part) > 20:
            raise InvalidLines(f"'lines' cannot be {written[:40]!r}; write 1-4,7")
        first = int(match["first"] or 1)
        last = int(match["last"]) if match["last"] else None if match["to"] else first
        ranges.append((first, last))
    return lambda number: any(first <= number and (last is None or number <= last) for first, last in ranges)
