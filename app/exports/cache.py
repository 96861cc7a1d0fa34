"""Keeps the newest files made of lessons as their authors wrote them: converting takes seconds, sending nothing."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable

MAX_CACHED_BYTES = 32_000_000
"""In each web process. All exports of the lessons that come with Lockstep fit."""


class ExportCache:
    """Files by what they were made of; those used least recently are dropped."""

    def __init__(self) -> None:
        self._files: OrderedDict[Hashable, bytes] = OrderedDict()
        self._lock = threading.Lock()
        self._size = 0

    def get(self, key: Hashable, make: Callable[[], bytes]) -> bytes:
        """The file with this key, which is made if it is not there."""
        with self._lock:
            if key in self._files:
                self._files.move_to_end(key)
                return self._files[key]
        made = make()
        with self._lock:
            self._size += len(made) - len(self._files.pop(key, b""))
            self._files[key] = made
            while self._size > MAX_CACHED_BYTES:
                _, dropped = self._files.popitem(last=False)
                self._size -= len(dropped)
        return made
