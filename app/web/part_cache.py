"""Parts of responses, kept under everything that they were made of: the key is all that a cached part depends on.

A key holds what SQL returned for this viewer, so a change needs no announcement and may come from any process.
"""

from __future__ import annotations

import math
import time
from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, Protocol, TypeVar

from app.settings import Settings

MAX_PART_BYTES = 32 * 1024 * 1024
"""Per cache and process."""
_RENEWAL_S = 5.0
"""How long an old part is given to others while one request renders it again."""


class _Sized(Protocol):
    @property
    def size(self) -> int: ...


S = TypeVar("S", bound=_Sized)


class PartCache(Generic[S]):
    """Parts, or frames of them, by key. Beyond ``most_bytes``, the least recently used are dropped."""

    def __init__(self, most_bytes: int = MAX_PART_BYTES) -> None:
        self._most_bytes = most_bytes
        self._bytes = 0
        self._parts: OrderedDict[Hashable, tuple[S, float]] = OrderedDict()

    def find(self, key: Hashable) -> S | None:
        """The part. When its time is over, whoever asks first renders it, and others get the old one meanwhile."""
        kept = self._parts.get(key)
        if kept is None:
            return None
        part, ends_at = kept
        if time.monotonic() >= ends_at:
            self._parts[key] = part, time.monotonic() + _RENEWAL_S
            return None
        self._parts.move_to_end(key)
        return part

    def keep(self, key: Hashable, part: S, lasts_s: float = math.inf) -> None:
        """Keep a part, for so many seconds."""
        self._drop(key)
        if part.size > self._most_bytes:
            return
        self._parts[key] = part, time.monotonic() + lasts_s
        self._bytes += part.size
        while self._bytes > self._most_bytes:
            self._drop(next(iter(self._parts)))

    def _drop(self, key: Hashable) -> None:
        if (kept := self._parts.pop(key, None)) is not None:
            self._bytes -= kept[0].size


def part_cache_bytes(settings: Settings) -> int:
    """The size of a cache. In development it keeps nothing, because templates change."""
    return 0 if settings.environment == "development" else MAX_PART_BYTES
