"""Streams that tell the open pages of instructors which lessons have changed."""

from __future__ import annotations

import asyncio
import hashlib
import json
import time
from collections import defaultdict
from collections.abc import AsyncGenerator, Mapping
from typing import Annotated

from fastapi import Depends

from app.bus import Bus
from app.errors import TooManyRequests
from app.lessons.catalog import Catalog, CatalogView
from app.lessons.errors import LessonFileError
from app.lessons.snapshot import Snapshot
from app.web.dependencies import AppKey
from app.web.sse import ConnectionLimiter, ServerSentEvent

MAX_STREAMS = 8
"""Per account and web process."""
_TOPIC = "lessons reloaded"
_POLL_INTERVAL_S = 10.0
_LONGEST_S = 900.0
"""The browser then asks again, and is refused if the account is no longer an instructor's."""


class LessonChanges:
    """The streams of this process, which follows the files by itself."""

    def __init__(self, catalog: Catalog, bus: Bus) -> None:
        self._catalog = catalog
        self._bus = bus
        self._streams = ConnectionLimiter(MAX_STREAMS)
        self._known: tuple[Snapshot, Mapping[str, str]] | None = None

    def note_reload(self, loop: asyncio.AbstractEventLoop) -> None:
        """The catalog was reloaded, in any thread."""
        if not loop.is_closed():
            loop.call_soon_threadsafe(self._bus.publish, _TOPIC)

    def events(self, account_id: str) -> AsyncGenerator[list[ServerSentEvent], None]:
        """``lessons`` with the edition of the files, now and whenever it changes, and with what has changed since.

        Raises:
            TooManyRequests: the account has too many streams.
        """
        if self._streams.full(account_id):
            raise TooManyRequests
        return self._frames(account_id)

    async def _frames(self, account_id: str) -> AsyncGenerator[list[ServerSentEvent], None]:
        ends_at = time.monotonic() + _LONGEST_S
        with self._streams.taken(account_id) as admitted, self._bus.subscribe(_TOPIC) as reloads:
            sent: Mapping[str, str] | None = None
            while admitted and not self._bus.closed and time.monotonic() < ends_at:
                present = self._fingerprints()
                if present != sent:
                    before = present if sent is None else sent
                    changed = sorted(key for key, _ in set(before.items()) ^ set(present.items()))
                    edition = _digest(sorted(present.items()))
                    data = {"edition": edition, "changed": list(dict.fromkeys(changed))}
                    yield [ServerSentEvent("lessons", json.dumps(data))]
                sent = present
                await reloads.wait(_POLL_INTERVAL_S)

    def _fingerprints(self) -> Mapping[str, str]:
        """The fingerprints of the present files, which all streams share."""
        catalog = self._catalog.with_drafts
        if self._known is None or self._known[0] is not catalog.snapshot:
            self._known = catalog.snapshot, _fingerprints(catalog)
        return self._known[1]


def _fingerprints(catalog: CatalogView) -> Mapping[str, str]:
    """What an instructor sees of each course and of each lesson (``course/slug``), the errors in the files included."""
    snapshot, mistakes = catalog.snapshot, _mistakes_by_place(catalog)
    found = {course.slug: _digest(course, mistakes[course.slug, ""]) for course in snapshot.courses.values()}
    for (course, slug), lessons in snapshot.lessons.items():
        shown = [(language, lesson.digest, lesson.status) for language, lesson in sorted(lessons.items())]
        found[f"{course}/{slug}"] = _digest(shown, mistakes[course, slug], mistakes[course, ""])
    return found


def _mistakes_by_place(catalog: CatalogView) -> Mapping[tuple[str, str], list[LessonFileError]]:
    """The errors by course and lesson; those in a course's own file have no lesson."""
    found: defaultdict[tuple[str, str], list[LessonFileError]] = defaultdict(list)
    for mistake in catalog.snapshot.mistakes:
        course, slug, *_ = (*mistake.path.relative_to(catalog.root_of(mistake.path)).parts[:-1], "", "")
        found[course, slug].append(mistake)
    return found


def _digest(*parts: object) -> str:
    return hashlib.sha256(repr(parts).encode("utf-8", "surrogatepass")).hexdigest()[:16]


LESSON_CHANGES = AppKey[LessonChanges]("lesson_changes")
LessonChangesDep = Annotated[LessonChanges, Depends(LESSON_CHANGES.from_request)]
