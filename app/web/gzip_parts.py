"""Responses of which a part is kept compressed. Compressing a long list takes longer than reading it from the database.

The parts become one ordinary gzip stream (RFC 1952): the kept ones end at a byte boundary and refer to nothing before
them, so they can follow whatever was compressed for this response.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from starlette.datastructures import Headers
from starlette.responses import HTMLResponse, Response

_HEADER = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"
_END = b"\x03\x00"
"""The last block of a stream: empty."""
_RAW = -15
"""Deflate with the largest window, without a header."""
_KEPT_LEVEL = 6
_FRESH_LEVEL = 1


@dataclass(frozen=True)
class KeptPart:
    """A part of responses, compressed when it is first needed."""

    body: bytes

    @cached_property
    def deflated(self) -> bytes:
        return _deflate(self.body, _KEPT_LEVEL)

    @property
    def size(self) -> int:
        """Bytes in memory, at most."""
        return 2 * len(self.body)


@dataclass(frozen=True, slots=True)
class Frame:
    """HTML with slots that each response fills: parts, and between them the names of slots."""

    parts: tuple[KeptPart | str, ...]

    @property
    def size(self) -> int:
        """Bytes in memory, at most."""
        return sum(part.size for part in self.parts if isinstance(part, KeptPart))

    def filled(self, **slots: bytes | KeptPart) -> list[bytes | KeptPart]:
        """The parts of a response."""
        return [slots[part] if isinstance(part, str) else part for part in self.parts]


def html_response(parts: Sequence[bytes | KeptPart], asked: Headers, headers: dict[str, str]) -> Response:
    """The parts one after the other, compressed if the browser accepts that."""
    bodies = [part.body if isinstance(part, KeptPart) else part for part in parts]
    if "gzip" not in asked.get("accept-encoding", ""):
        return HTMLResponse(b"".join(bodies), headers=headers)
    vary = ", ".join(filter(None, (headers.get("vary"), "accept-encoding")))
    return HTMLResponse(gzip_parts(parts), headers={**headers, "content-encoding": "gzip", "vary": vary})


def gzip_parts(parts: Sequence[bytes | KeptPart]) -> bytes:
    """One gzip stream of all parts. Pure."""
    checksum = size = 0
    stream = [_HEADER]
    for part in parts:
        body = part.body if isinstance(part, KeptPart) else part
        checksum, size = zlib.crc32(body, checksum), size + len(body)
        stream.append(part.deflated if isinstance(part, KeptPart) else _deflate(part, _FRESH_LEVEL))
    return b"".join((*stream, _END, struct.pack("<II", checksum, size & 0xFFFFFFFF)))


def _deflate(body: bytes, level: int) -> bytes:
    """Compressed without an end, up to a byte boundary."""
    stream = zlib.compressobj(level, zlib.DEFLATED, _RAW)
    return stream.compress(body) + stream.flush(zlib.Z_FULL_FLUSH)
