"""The text that a run printed, as lines without colors. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable

from runners.wire.protocol import DisplayEvent, ErrorEvent, Event, NoticeEvent, TextEvent

PRINTED_KINDS = ("text", "display", "notice", "error")
"""The kinds of events that ``printed_lines`` reads."""
_CONTROL_SEQUENCE = re.compile(r"\x1b\[[0-9;]*m|[\x00-\x08\x0b-\x1f\x7f-\x9f]")
"""ANSI sequences, and any other control characters that affect a terminal."""


def printed_lines(events: Iterable[Event]) -> tuple[str, ...]:
    """The lines that a reader of these events sees: text, plain displays, notices and the errors' last lines. Pure."""
    streams: dict[tuple[str, str | None], str] = {}
    whole: list[str] = []
    for event in events:
        match event:
            case TextEvent(stream=stream, lane=lane, text=text):
                streams[stream, lane] = streams.get((stream, lane), "") + text
            case DisplayEvent(data={"text/plain": str(text)}):
                whole.append(text)
            case NoticeEvent(text=text):
                whole.append(text)
            case ErrorEvent(name=name, value=value):
                whole.append(f"{name}: {value}")
    together = "\n".join((*streams.values(), *whole))
    return tuple(strip_control(line).rstrip() for line in re.split(r"[\r\n]+", together))


def strip_control(text: str) -> str:
    """The text without colors and whatever else a terminal might obey."""
    return _CONTROL_SEQUENCE.sub("", text)
