"""Output for Jupyter clients that do not know Lockstep: lane names before each line, notices as text.

Lockstep's page separates lanes by the metadata of messages, and understands reports (``runners.wire.reports``). A
notebook shows text in order of arrival, and ignores what it does not know.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any

from runners.wire.error_hints import Need
from runners.wire.reports import NEEDS, is_report, lane_from_metadata, parse_report

Publish = Callable[[str, dict[str, Any], str | None], None]
"""Sends a message on the output channel: its type, content and lane."""

_PLAIN = "text/plain"
_ADVICE: dict[Need, str] = {
    "keras-2": "Change to a kernel with Keras 2, such as lockstep-gpu-4-keras-2.",
    "tpu": "Change to a kernel with a TPU, such as lockstep-tpu-8.",
    "servers": "Change to a kernel with parameter servers, such as lockstep-ps-2-1.",
}
"""How to get a session that has what this one has not."""


class LaneLabels:
    """Labels the lines of one stream of a cell with their lanes; text without a lane stays unchanged."""

    def __init__(self) -> None:
        self._cell: object = None
        self._unfinished: str | None = None
        """The lane whose line has not ended; empty for text without a lane."""

    def put(self, text: str, lane: str | None, cell: object) -> str:
        """Label ``text``, which may be part of a line; a line never mixes two lanes."""
        if cell != self._cell:
            self._cell, self._unfinished = cell, None
        name, before = lane or "", ""
        if self._unfinished is not None and self._unfinished != name:
            self._unfinished, before = None, "\n"
        if not text:
            return before
        goes_on = self._unfinished is not None
        self._unfinished = None if text.endswith("\n") else name
        if not name:
            return before + text
        *lines, last = text.split("\n")
        pieces = [*(f"{line}\n" for line in lines), *([last] if last else [])]
        label = f"{name} | "
        pieces = [piece.replace("\r", f"\r{label}") for piece in pieces]
        return before + "".join(p if goes_on and i == 0 else label + p for i, p in enumerate(pieces))


def label_lanes(session: Any) -> None:
    """Make all output that a Jupyter session sends name its lane in its text."""
    send = session.send
    streams: dict[str, LaneLabels] = {}
    lock = threading.Lock()

    def send_labelled(stream: Any, msg_or_type: Any, content: Any = None, *args: Any, **kwargs: Any) -> Any:
        message = msg_or_type if isinstance(msg_or_type, dict) else None
        kind = message["msg_type"] if message else msg_or_type
        lane = lane_from_metadata((message or kwargs).get("metadata") or {})
        what = message["content"] if message else content
        if kind == "stream":
            parent = (message["parent_header"] if message else (kwargs.get("parent") or {}).get("header")) or {}
            with lock:
                labels = streams.setdefault(what["name"], LaneLabels())
                what = what | {"text": labels.put(what["text"], lane, parent.get("msg_id"))}
        elif lane:
            what = label_output(kind, what, lane)
        if message:
            return send(stream, message | {"content": what}, content, *args, **kwargs)
        return send(stream, msg_or_type, what, *args, **kwargs)

    session.send = send_labelled


def label_output(kind: str, content: dict[str, Any], lane: str) -> dict[str, Any]:
    """Name the lane in the text of a display, a result or an error; a picture stays unchanged."""
    if kind == "error":
        return content | {"traceback": [f"{lane} |", *content.get("traceback", [])]}
    data = content.get("data")
    if isinstance(data, Mapping) and isinstance(data.get(_PLAIN), str):
        lines = data[_PLAIN].split("\n")
        return content | {"data": {**data, _PLAIN: "\n".join(f"{lane} | {line}" for line in lines)}}
    return content


def notices_as_text(publish: Publish) -> Publish:
    """Publish notices as text on standard error, drop metrics for charts, and pass on everything else."""

    def publish_in_words(kind: str, content: dict[str, Any], lane: str | None) -> None:
        data = content.get("data")
        if not isinstance(data, Mapping) or not is_report(data):
            publish(kind, content, lane)
            return
        found = parse_report(data)
        if found and found[0] == "notice":
            advice = f" {_ADVICE[need]}" if (need := NEEDS.get(found[1]["code"])) else ""
            publish("stream", {"name": "stderr", "text": f"{found[1]['text']}{advice}\n"}, lane)

    return publish_in_words
