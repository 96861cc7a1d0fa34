"""Converts Jupyter messages to the fields of events. Pure; every message is treated as hostile input.

A message that does not follow the Jupyter protocol yields None: it is dropped and counted, never used in part.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from runners.wire.protocol import TracebackFrame
from runners.wire.reports import PICTURE, is_report, lane_from_metadata, parse_report

MIME_TYPES = frozenset(
    {
        "text/plain",
        "text/html",
        "text/markdown",
        "text/latex",
        "image/png",
        "image/jpeg",
        "image/gif",
        "image/webp",
        "image/svg+xml",
        "application/json",
        "application/vnd.plotly.v1+json",
        "application/vnd.vegalite.v5+json",
        "application/vnd.vegalite.v6+json",
        PICTURE,
    }
)
"""What a display may consist of. Scripts and widgets can never be added."""
_ALTAIR = re.compile(r"(application/vnd\.vegalite\.v[56])\.json")
"""How Altair writes the type of a plot."""
_MOST_TYPES, _LONGEST_TYPE = 5, 60
_MOST_FRAMES = 60
_LONGEST_NAME = 200
_LONGEST_VALUE = 20_000
_LONGEST_FRAME = 20_000
_NO_TYPE_CHARACTER = re.compile(r"[^a-zA-Z0-9.+/_-]")
_ANSI = re.compile(r"\x1b\[[0-9;]*m")
_RAISE = re.compile(r"^-+> \d+ (.*;)?\s*raise\b", re.MULTILINE)
_OWN = re.compile(
    r"\s*(Cell In\s?\[|File /(home/learner|tmp)/(?!.*/site-packages/)|\S*Error|\S*Exception|KeyboardInterrupt)"
)
"""Libraries may be below /tmp as well, if the whole checkout is."""

Fields = tuple[str, dict[str, Any]]


def sanitize_text(text: str) -> str:
    """Make text safe for any database and any JSON reader: no NUL, no lone surrogates."""
    if not text.isascii():
        text = text.encode("utf-8", "replace").decode("utf-8")
    return text.replace("\0", "␀")


def to_event_fields(message: Mapping[str, Any]) -> Fields | None:
    """Parse one message of the output channel.

    Returns:
        The kind of event and its fields, or None for a message that becomes no event. A display without any allowed
        type becomes an event of the kind ``unshown``, with its ``types`` and its ``size`` in characters.
    """
    content = message.get("content")
    if not isinstance(content, Mapping):
        return None
    fields = _fields(message.get("msg_type"), content)
    if fields is not None and (lane := lane_from_metadata(message.get("metadata"))) and fields[0] != "unshown":
        fields[1]["lane"] = lane
    return fields


def _fields(kind: Any, content: Mapping[str, Any]) -> Fields | None:
    match kind:
        case "stream":
            return _text(content)
        case "display_data" | "update_display_data" | "execute_result":
            return _display(content, kind)
        case "error":
            return _error(content)
        case "clear_output":
            return "clear", {"wait": content.get("wait") is True}
        case _:
            return None


def reply_error(message: Mapping[str, Any], request: str) -> tuple[bool, tuple[str, str] | None]:
    """Parse a reply on the shell channel.

    Returns:
        Whether it answers ``request``, and the name and value of the error that ended the code, if any. IPython does
        not show every error on the output channel: it omits exception groups and unknown magics.
    """
    content, parent = message.get("content"), message.get("parent_header")
    if not isinstance(content, Mapping) or not isinstance(parent, Mapping) or parent.get("msg_id") != request:
        return False, None
    if content.get("status") != "error":
        return True, None
    name, value = content.get("ename"), content.get("evalue")
    name = sanitize_text(name)[:_LONGEST_NAME] if isinstance(name, str) else "Error"
    return True, (name, shorten(sanitize_text(value), _LONGEST_VALUE) if isinstance(value, str) else "")


def is_idle(message: Mapping[str, Any], request: str) -> bool:
    """Whether this says that the kernel is done with ``request``."""
    content, parent = message.get("content"), message.get("parent_header")
    if message.get("msg_type") != "status" or not isinstance(content, Mapping) or not isinstance(parent, Mapping):
        return False
    return content.get("execution_state") == "idle" and parent.get("msg_id") == request


def _text(content: Mapping[str, Any]) -> Fields | None:
    text, stream = content.get("text"), content.get("name")
    if not isinstance(text, str) or stream not in ("stdout", "stderr") or not text:
        return None
    return "text", {"stream": stream, "text": sanitize_text(text)}


def _display(content: Mapping[str, Any], kind: str) -> Fields | None:
    data, transient = content.get("data"), content.get("transient")
    if not isinstance(data, Mapping):
        return None
    if is_report(data):
        return parse_report(data)
    data = {_ALTAIR.sub(r"\1+json", mime) if isinstance(mime, str) else mime: value for mime, value in data.items()}
    kept = {mime: _clean_data(mime, value) for mime, value in data.items() if mime in MIME_TYPES}
    kept = {mime: value for mime, value in kept.items() if value is not None}
    if not kept:
        others = [mime for mime in data if isinstance(mime, str) and mime not in MIME_TYPES]
        types = [_NO_TYPE_CHARACTER.sub("?", mime[:_LONGEST_TYPE]) for mime in others[:_MOST_TYPES]]
        size = sum(len(value) for value in data.values() if isinstance(value, str))
        return ("unshown", {"types": types, "size": size}) if types else None
    display_id = transient.get("display_id") if isinstance(transient, Mapping) else None
    return "display", {
        "data": kept,
        "display_id": sanitize_text(display_id)[:_LONGEST_NAME] if isinstance(display_id, str) else None,
        "update": kind == "update_display_data",
        "result": kind == "execute_result",
    }


def _clean_data(mime: str, value: Any) -> Any:
    if mime == "application/json" or mime.endswith("+json"):
        return _clean_json(value, depth=20)
    if isinstance(value, list) and all(isinstance(part, str) for part in value):
        value = "".join(value)
    return sanitize_text(value) if isinstance(value, str) else None


_PLAIN = (int, float, bool, type(None))


def _clean_json(value: Any, depth: int) -> Any:
    if depth == 0:
        return None
    if isinstance(value, str):
        return sanitize_text(value)
    if isinstance(value, dict):
        return {sanitize_text(k): v if type(v) in _PLAIN else _clean_json(v, depth - 1) for k, v in value.items()}
    if isinstance(value, list):
        return [v if type(v) in _PLAIN else _clean_json(v, depth - 1) for v in value]
    return value if type(value) in _PLAIN else None


def _error(content: Mapping[str, Any]) -> Fields | None:
    name, value, traceback = (content.get(k) for k in ("ename", "evalue", "traceback"))
    if not isinstance(name, str) or not isinstance(value, str) or not isinstance(traceback, list):
        return None
    frames = [sanitize_text(part) for part in traceback if isinstance(part, str)]
    return "error", {
        "name": sanitize_text(name)[:_LONGEST_NAME],
        "value": shorten(sanitize_text(value), _LONGEST_VALUE),
        "frames": split_traceback(frames),
    }


def split_traceback(traceback: list[str]) -> list[TracebackFrame]:
    """Split IPython's traceback into frames, and tell the learner's own from those of libraries.

    The last part (the error itself) always counts as own. The middle of a very long traceback is omitted.
    """
    if traceback and not _ANSI.sub("", traceback[0]).strip("- \n"):
        traceback = traceback[1:]  # the ruler above the first line
    if len(traceback) > _MOST_FRAMES:
        half = _MOST_FRAMES // 2
        left_out = len(traceback) - 2 * half
        traceback = [*traceback[:half], f"… {left_out} frames left out …", *traceback[-half:]]
    last = len(traceback) - 1
    return [
        TracebackFrame(
            text=shorten(part, _LONGEST_FRAME), own=n == last or bool(_OWN.match(_ANSI.sub("", part).lstrip("-\n ")))
        )
        for n, part in enumerate(traceback)
    ]


def ends_in_own_raise(frames: list[TracebackFrame]) -> bool:
    """Whether a traceback ends in a ``raise`` in the learner's own code, not in a call that failed."""
    if len(frames) < 2 or not frames[-2].own:
        return False
    return bool(_RAISE.search(_ANSI.sub("", frames[-2].text)))


def shorten(text: str, most: int) -> str:
    """Keep the beginning and the end of a text of more than ``most`` characters."""
    if len(text) <= most:
        return text
    half = most // 2
    return f"{text[:half]}\n… {len(text) - 2 * half:,} characters left out …\n{text[-half:]}"
