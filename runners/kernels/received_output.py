"""Compares what a kernel printed with what the supervisor received, and recovers the rest after a crash."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from runners.kernels.messages import sanitize_text
from runners.wire import journal
from runners.wire.replica_tags import TagSplitter, lane_name
from runners.wire.reports import position_from_metadata

_NONCE = re.compile("[0-9a-f]{8}")


class StreamText(NamedTuple):
    stream: str
    text: str
    lane: str | None


class ReceivedOutput:
    """How far the messages of one kernel have delivered each of its streams."""

    def __init__(self) -> None:
        self._positions = dict.fromkeys(journal.STREAMS, 0)

    def note(self, message: Mapping[str, Any]) -> None:
        """Note a message. Whatever it claims affects only its own stream."""
        content, position = message.get("content"), position_from_metadata(message.get("metadata"))
        if message.get("msg_type") == "stream" and isinstance(content, Mapping) and position is not None:
            name = content.get("name")
            if isinstance(name, str) and name in self._positions:
                self._positions[name] = max(self._positions[name], position)

    def rest(self, memory: int, task: str | None) -> list[StreamText]:
        """The rest of the journals, with lanes of the process of ``task``; call it after the kernel has ended."""
        texts: list[StreamText] = []
        for name, stream in journal.open_streams(memory).items():
            data, lost = stream.after(self._positions[name])
            if lost:
                texts.append(StreamText(name, f"\n… {lost:,} bytes were lost in the crash …\n", task))
            text = data.decode("utf-8", "replace")
            nonce = stream.nonce
            pieces = TagSplitter(nonce).feed(text, final=True) if _NONCE.fullmatch(nonce) else [(None, text)]
            texts += [
                StreamText(name, sanitize_text(piece), lane_name(task, replica)) for replica, piece in pieces if piece
            ]
        return texts
