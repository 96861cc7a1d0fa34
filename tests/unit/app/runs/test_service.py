"""Starting runs while another web process does so, too."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack

import pytest

from app.db import Database
from app.lessons.catalog import Catalog
from app.runs.errors import TooManyRuns
from app.runs.machines import lesson_machines
from app.runs.service import start_run
from app.settings import Settings

VISITOR = "v" * 64


@pytest.fixture
def catalog(settings: Settings) -> Catalog:
    catalog = Catalog(settings.lessons_dir)
    catalog.reload()
    return catalog


async def test_two_web_processes_do_not_both_take_the_last_run(database: Database, catalog: Catalog) -> None:
    lesson = catalog.lesson("small", "first", "en")

    async def start(db: Database) -> bool:
        try:
            async with db.writing() as session:
                await start_run(session, VISITOR, lesson, lesson.cells[0], lesson_machines(lesson)[0], "1", 3)
                await asyncio.sleep(0.1)  # so that all are at it before the first has committed
        except TooManyRuns:
            return False
        return True

    async with AsyncExitStack() as stack:
        processes = [Database(database.url, wait_s=60.0) for _ in range(6)]
        for db in processes:
            stack.push_async_callback(db.close)
        taken = await asyncio.gather(*(start(db) for db in processes))

    assert sum(taken) == 3
