"""The first page of threads about a lesson or a cell as HTML, kept as long as SQL returns the same facts.

Rendering a list costs ten times as much as reading its facts, and few of them change between two readers. The facts
say what the viewer may see and what of it is theirs (``list_facts``): whoever gets the same facts may see the same.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from datetime import datetime
from typing import Annotated

from fastapi import Depends

from app.comments import queries
from app.comments.list_facts import load_facts
from app.comments.permissions import Viewer
from app.comments.views import ThreadView, thread_views
from app.db import Database, now
from app.i18n import current_language
from app.web.dependencies import AppKey
from app.web.gzip_parts import Frame, KeptPart
from app.web.part_cache import PartCache

RenderThreads = Callable[[Sequence[ThreadView], str | None], str]
"""Renders threads, and the link to the page before that cursor, in the current language."""
_MAX_LIFETIME_S, _MIN_LIFETIME_S = 60.0, 1.0
_AGE_PER_LIFETIME = 10
"""Lists say how long ago a comment was written. What they say is out by a tenth at most."""


class ThreadLists:
    """Lists of threads, rendered once for everyone who sees the same. One per process."""

    def __init__(self, most_bytes: int) -> None:
        self._threads = PartCache[KeptPart](most_bytes)
        self._frames = PartCache[Frame](most_bytes // 4)

    async def load(
        self, db: Database, viewer: Viewer, lesson: str, cell: str, render: RenderThreads
    ) -> tuple[KeptPart, Mapping[str, int]]:
        """The HTML of the threads, and the number of comments by cell of the lesson."""
        facts = await load_facts(db, viewer, lesson, cell)
        kind = (viewer.account_id is not None, viewer.instructor)
        key = (lesson, cell, current_language(), *kind, facts.comments)
        if (part := self._threads.find(key)) is None:
            async with db.session() as session:
                threads, before = await queries.list_threads(session, viewer, lesson, cell)
                views = await thread_views(session, viewer, threads)
            part = KeptPart(render(views, before).encode())
            if (await load_facts(db, viewer, lesson, cell)).comments == facts.comments:
                self._threads.keep(key, part, lifetime_s(views, now()))
        return part, facts.counts

    def frame(self, key: Hashable, render: Callable[[], Frame]) -> Frame:
        """What surrounds the threads. ``key`` is all that it depends on, besides the current language."""
        key = (current_language(), key)
        if (frame := self._frames.find(key)) is None:
            frame = render()
            self._frames.keep(key, frame)
        return frame


def lifetime_s(threads: Sequence[ThreadView], at: datetime) -> float:
    """How long a list can be kept that was rendered at that time. Pure."""
    written = [view.comment.created_at for thread in threads for view in (thread.root, *thread.replies)]
    if not written:
        return _MAX_LIFETIME_S
    age_s = (at - max(written)).total_seconds()
    return min(_MAX_LIFETIME_S, max(_MIN_LIFETIME_S, age_s / _AGE_PER_LIFETIME))


THREAD_LISTS = AppKey[ThreadLists]("thread_lists")
ThreadListsDep = Annotated[ThreadLists, Depends(THREAD_LISTS.from_request)]
