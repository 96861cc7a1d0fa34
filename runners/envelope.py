"""Jupyter's messages as frames: what goes out is signed, what comes in is verified, bounded and read. Pure.

A signature shows that a message comes out of this kernel's session and not out of the one before it: each kernel has a
key of its own. It does not show who in the session wrote it, for the session knows its key. A message sent twice is
therefore no worse than one that is made up, and no list of signatures is kept.
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
_MOST_CONTAINERS = 100_000
_MOST_VALUES = 200_000
"""Bounds of one JSON text: a small dictionary takes thirty times the bytes that it has as JSON."""
_DEEPEST = 100
_NO_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))


class Malformed(ValueError):
    """A message that is none."""


class Envelopes:
    """Writes and reads the messages between the supervisor and one kernel."""

    def __init__(self, key: bytes) -> None:
        self._hmac = hmac.new(key, digestmod=hashlib.sha256)
        self._session = secrets.token_hex(16)
        self._sent = 0

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
            Malformed: it is not what the protocol says, or not signed with the key.
        """
        if _DELIMITER not in frames:
            raise Malformed("no delimiter")
        parts = frames[frames.index(_DELIMITER) + 1 :][:_PARTS]
        if len(parts) < _PARTS or not hmac.compare_digest(parts[0], self._sign(parts[1:])):
            raise Malformed("not signed with this kernel's key")
        header, parent, metadata, content = map(_read, parts[1:_PARTS])
        if not all(isinstance(part, dict) for part in (header, parent, metadata, content)):
            raise Malformed("a part is no object")
        name, kind = header.get("msg_id"), header.get("msg_type")
        if not isinstance(name, str) or not isinstance(kind, str):
            raise Malformed("no id or no type")
        message = {"msg_id": name, "msg_type": kind, "header": header, "parent_header": parent}
        return message | {"metadata": metadata, "content": content}

    def _sign(self, parts: Sequence[bytes]) -> bytes:
        signature = self._hmac.copy()
        for part in parts:
            signature.update(part)
        return signature.hexdigest().encode()


def _read(text: bytes) -> Any:
    """Read JSON that takes no more memory than a few times its size, and is not so deep that others stumble over it."""
    _weigh(text)
    try:
        return json.loads(text.decode(), parse_constant=_refuse)
    except (ValueError, RecursionError) as e:
        raise Malformed(f"not JSON: {e}") from e


def _refuse(constant: str) -> None:
    raise Malformed(f"{constant} is not JSON")


def _weigh(text: bytes) -> None:
    """Count the values of a JSON text before they are made. Most texts are settled by their punctuation alone.

    All that is done to the text is linear in its size.
    """
    if text.count(b"[") + text.count(b"{") <= _DEEPEST and text.count(b",") <= _MOST_VALUES:
        return
    unescaped = text.replace(b"\\\\", b"").replace(b'\\"', b"")
    if unescaped.count(b'"') > 4 * _MOST_VALUES:
        raise Malformed("too many strings")
    outside = b"".join(unescaped.split(b'"')[::2])
    brackets = outside.translate(None, _NO_BRACKETS)
    if len(brackets) > 2 * _MOST_CONTAINERS or outside.count(b",") > _MOST_VALUES:
        raise Malformed("too many values")
    depth = 0
    for bracket in brackets:
        depth += 1 if bracket in b"[{" else -1
        if depth > _DEEPEST:
            raise Malformed("too deep")
