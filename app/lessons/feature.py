"""Lessons, course maps and the home page."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from fastapi import FastAPI

from app.feature import Feature
from app.lessons.api_routes import router as api_router
from app.lessons.catalog import Catalog
from app.lessons.dependencies import CATALOG
from app.lessons.errors import LessonMoved
from app.lessons.navigation import course_links, course_outlines
from app.lessons.renaming import RENAMERS, RenameFollower
from app.lessons.routes import redirect_to_moved_lesson, router
from app.lessons.search_engine_routes import router as search_engine_router
from app.web.dependencies import DATABASE, SETTINGS

_ENDING_S = 5.0
"""How long the move of learners' work to new names may take when the server shuts down."""


def setup(app: FastAPI) -> None:
    settings = SETTINGS.get(app)
    added, kept = settings.added_courses_dir, settings.last_good_courses
    CATALOG.set(app, Catalog(settings.lessons_dir, added=added, kept=kept))


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    """Load the lessons, then follow changes to their files, and move learners' work to names that have changed."""
    catalog = CATALOG.get(app)
    await asyncio.to_thread(catalog.reload)
    follower = RenameFollower(catalog, DATABASE.get(app), RENAMERS.get(app))
    loop = asyncio.get_running_loop()
    catalog.after_reload(lambda: follower.note_reload(loop))
    watcher, following = asyncio.create_task(catalog.watch()), asyncio.create_task(follower.run())
    try:
        yield
    finally:
        follower.stop()
        await asyncio.wait([following], timeout=_ENDING_S)
        for task in (watcher, following):
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task


FEATURE = Feature(
    name="lessons",
    routers=(router, search_engine_router, api_router),
    setup=setup,
    lifespan=lifespan,
    exception_handlers={LessonMoved: redirect_to_moved_lesson},
    navigation=course_links,
    error_context=course_outlines,
)
