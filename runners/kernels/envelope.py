"""Jupyter's messages as frames: signs outgoing ones; verifies, bounds and parses incoming ones. Pure.

A signature shows that a message comes from this kernel's session and not from an earlier kernel, because each has its
own key. It does not show which program of the session wrote it, because the whole session knows the key. A replayed
message is therefore no worse than a forged one, and no list of signatures is kept.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

_DELIMITER = b"<IDS|MSG>"
_PARTS = 5
"""Signature, header, parent's header, metadata, content."""
_CONTAINER_BYTES, _VALUE_BYTES = 256, 32
"""What a JSON object or list, and a value in one, counts in addition to its bytes. Parsing ``{}`` takes as long as 256
bytes of text, and thirty times the memory."""
_MOST_EXTRA = 4 << 20
"""The limit of one message in such bytes: 16,384 objects and lists, or 131,072 values, parsed in about 20 ms."""
_FEW_CONTAINERS, _FEW_VALUES = 100, 1000
"""Up to this many of each are not counted."""
_DEEPEST = 100
_LONGEST_KEPT = 2048
_NO_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))


class MalformedMessage(ValueError):
    """Invalid message."""


class TooManyValues(MalformedMessage):
    """A message that would take too long to parse; ``size`` is what it counts, in bytes."""

    def __init__(self, size: int) -> None:
        super().__init__(f"its values count {size:,} bytes")
        self.size = size


class MessageCodec:
    """Encodes and decodes the messages between the supervisor and one kernel."""

    def __init__(self, key: bytes) -> None:
        self._hmac = hmac.new(key, digestmod=hashlib.sha256)
        self._session = secrets.token_hex(16)
        self._sent = 0
        self._last_parent = b"{}", dict[str, Any]()
        """The last parent's header and its text: a run's messages have the same one."""
        self.extra_bytes = 0
        """What the values of the last opened message count in addition to its bytes; 0 if they were not parsed."""

    def seal(self, kind: str, content: dict[str, Any]) -> tuple[str, list[bytes]]:
        """A new request; returns its id and its frames."""
        self._sent += 1
        name = f"{self._session}_{self._sent}"
        header = {
            "msg_id": name,
            "msg_type": kind,
            "session": self._session,
            "username": "lockstep",
            "date": datetime.now(UTC).isoformat(),
            "version": "5.3",
        }
        parts = [json.dumps(part).encode() for part in (header, {}, {}, content)]
        return name, [_DELIMITER, self._sign(parts), *parts]

    def open(self, frames: Sequence[bytes]) -> dict[str, Any]:
        """Read a message: ``msg_id``, ``msg_type``, ``header``, ``parent_header`` and ``content``. The first two are
        text, the others are what the session wrote.

        Raises:
            TooManyValues: it has more objects, lists and values than a message may have; it was not parsed.
            MalformedMessage: it does not follow the protocol, or is not signed with the key.
        """
        self.extra_bytes = 0
        if _DELIMITER not in frames:
            raise MalformedMessage("no delimiter")
        extra = sum(map(extra_bytes, _json_parts(frames)))
        if extra > _MOST_EXTRA:
            raise TooManyValues(sum(map(len, frames)) + extra)
        self.extra_bytes = extra
        parts = frames[frames.index(_DELIMITER) + 1 :][:_PARTS]
        if len(parts) < _PARTS or not hmac.compare_digest(parts[0], self._sign(parts[1:])):
            raise MalformedMessage("not signed with this kernel's key")
        header, parent, metadata, content = (
            _read(parts[1]),
            self._read_parent(parts[2]),
            _read(parts[3]),
            _read(parts[4]),
        )
        if not all(isinstance(part, dict) for part in (header, parent, metadata, content)):
            raise MalformedMessage("a part is not an object")
        name, kind = header.get("msg_id"), header.get("msg_type")
        if not isinstance(name, str) or not isinstance(kind, str):
            raise MalformedMessage("no id or no type")
        message = {"msg_id": name, "msg_type": kind, "header": header, "parent_header": parent}
        return message | {"metadata": metadata, "content": content}

    def _read_parent(self, text: bytes) -> Any:
        last, parent = self._last_parent
        if text != last:
            parent = _read(text)
            self._last_parent = (text, parent) if len(text) <= _LONGEST_KEPT else (b"{}", {})
        return parent

    def _sign(self, parts: Sequence[bytes]) -> bytes:
        signature = self._hmac.copy()
        for part in parts:
            signature.update(part)
        return signature.hexdigest().encode()


def extra_bytes(text: bytes) -> int:
    """What the objects, lists and values of a JSON text count in addition to its bytes. Does not parse it.

    Most texts have few or none. The work is linear in the size of the text, and done in C.
    """
    if len(text) <= _FEW_CONTAINERS:
        return 0
    if text.count(b"[") + text.count(b"{") <= _FEW_CONTAINERS and text.count(b",") <= _FEW_VALUES:
        return 0
    unescaped = text.replace(b"\\\\", b"").replace(b'\\"', b"")
    strings = unescaped.count(b'"') // 2
    if strings * _VALUE_BYTES > _MOST_EXTRA:
        return strings * _VALUE_BYTES
    outside = _outside_strings(unescaped)
    brackets = len(outside.translate(None, _NO_BRACKETS))  # in JSON, two for each object and list
    return brackets * _CONTAINER_BYTES // 2 + outside.count(b",") * _VALUE_BYTES


def _json_parts(frames: Sequence[bytes]) -> Sequence[bytes]:
    """Header, parent header, metadata and content; the other frames are never read."""
    first = frames.index(_DELIMITER) + 2
    return frames[first : first + _PARTS - 1]


def _outside_strings(unescaped: bytes) -> bytes:
    return b"".join(unescaped.split(b'"')[::2])


def _read(text: bytes) -> Any:
    """Parse JSON unless it is nested too deeply for other readers. Its values have been counted before."""
    _measure_depth(text)
    try:
        return _JSON.decode(text.decode())
    except (ValueError, RecursionError) as e:
        raise MalformedMessage(f"not JSON: {e}") from e


def _refuse(constant: str) -> None:
    raise MalformedMessage(f"{constant} is not JSON")


_JSON = json.JSONDecoder(parse_constant=_refuse)


def _measure_depth(text: bytes) -> None:
    if len(text) <= _DEEPEST or text.count(b"[") + text.count(b"{") <= _DEEPEST:
        return
    brackets = _outside_strings(text.replace(b"\\\\", b"").replace(b'\\"', b"")).translate(None, _NO_BRACKETS)
    depth = 0
    for bracket in brackets:
        depth += 1 if bracket in b"[{" else -1
        if depth > _DEEPEST:
            raise MalformedMessage("too deep")
