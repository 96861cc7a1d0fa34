"""The tags in printed text that name its replica. Pure; ``lanes`` adds them and removes them."""

from __future__ import annotations

import re

_BEGIN, _END = "\x1e", "\x1f"
_MOST_DIGITS = 3


def replica_tag(nonce: str, replica: int | None) -> str:
    """The tag that starts text of a replica; None: text of the process itself."""
    return f"{_BEGIN}{nonce}:{'' if replica is None else replica}{_END}"


def lane_name(task: str | None, replica: int | None) -> str | None:
    """The name of the lane of a replica of a task; a part that is None is omitted."""
    parts = [task, None if replica is None else f"replica {replica}"]
    return " · ".join(part for part in parts if part) or None


class TagSplitter:
    """Removes the tags of a session from a stream of text that arrives in pieces."""

    def __init__(self, nonce: str) -> None:
        self._before = f"{_BEGIN}{nonce}:"
        self._mark = re.compile(re.escape(self._before) + rf"(\d{{0,{_MOST_DIGITS}}}){_END}")
        self._held = ""
        self._replica: int | None = None

    @property
    def held(self) -> int:
        """The number of waiting characters, all ASCII, which may be part of a tag."""
        return len(self._held)

    def feed(self, text: str, final: bool = False) -> list[tuple[int | None, str]]:
        """Split text into pieces, each with its replica; an end that may be part of a tag waits, unless ``final``."""
        text, self._held = self._held + text, ""
        if not final:
            text = self._hold(text)
        pieces: list[tuple[int | None, str]] = []
        rest = 0
        for found in self._mark.finditer(text):
            self._take(pieces, text[rest : found.start()])
            self._replica = int(found[1]) if found[1] else None
            rest = found.end()
        self._take(pieces, text[rest:])
        return pieces

    def _take(self, pieces: list[tuple[int | None, str]], text: str) -> None:
        if not text:
            return
        if pieces and pieces[-1][0] == self._replica:
            text = pieces.pop()[1] + text
        pieces.append((self._replica, text))

    def _hold(self, text: str) -> str:
        """Hold back an end that may be the beginning of a tag."""
        longest = len(self._before) + _MOST_DIGITS
        start = text.rfind(_BEGIN, max(0, len(text) - longest))
        if start < 0 or not self._may_begin(text[start:]):
            return text
        self._held = text[start:]
        return text[:start]

    def _may_begin(self, tail: str) -> bool:
        if len(tail) <= len(self._before):
            return self._before.startswith(tail)
        return tail.startswith(self._before) and tail[len(self._before) :].isdigit()
