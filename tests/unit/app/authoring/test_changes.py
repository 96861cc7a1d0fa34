"""Open pages of instructors hear of every change to lesson files, and of the errors in them."""

from __future__ import annotations

import asyncio
import json
from contextlib import aclosing
from pathlib import Path

import pytest

from app.authoring.changes import MAX_STREAMS, LessonChanges
from app.bus import Bus
from app.errors import TooManyRequests
from app.lessons.catalog import Catalog
from tests.factories.course import LESSON, write_course


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    catalog = Catalog(write_course(tmp_path), quiet=True)
    catalog.reload()
    return catalog


async def test_a_change_and_a_mistake_are_heard_of_and_nothing_else(catalog: Catalog, tmp_path: Path) -> None:
    bus = Bus()
    changes = LessonChanges(catalog, bus)
    loop = asyncio.get_running_loop()
    catalog.after_reload(lambda: changes.note_reload(loop))
    lesson = tmp_path / LESSON / "lesson.md"
    seen = []
    async with asyncio.timeout(60), aclosing(changes.events("ada")) as stream:
        seen += await anext(stream)
        await asyncio.to_thread(catalog.reload)  # no file has changed
        lesson.write_text(lesson.read_text().replace("Some prose.", "Other prose."))
        waiting = asyncio.ensure_future(anext(stream))
        await asyncio.to_thread(catalog.reload)
        seen += await waiting
        lesson.write_text(lesson.read_text().replace("Other prose.", "<b>"))
        waiting = asyncio.ensure_future(anext(stream))
        await asyncio.to_thread(catalog.reload)
        seen += await waiting

    assert [event.event for event in seen] == ["lessons"] * 3
    told = [json.loads(event.data) for event in seen]
    assert [one["changed"] for one in told] == [[], [LESSON], [LESSON]]
    assert len({one["edition"] for one in told}) == 3


async def test_an_account_has_a_few_streams_at_most(catalog: Catalog) -> None:
    changes = LessonChanges(catalog, Bus())
    streams = [changes.events("ada") for _ in range(MAX_STREAMS)]
    for stream in streams:
        await anext(stream)
    with pytest.raises(TooManyRequests):
        changes.events("ada")
    await anext(changes.events("bob"))
    for stream in streams:
        await stream.aclose()
