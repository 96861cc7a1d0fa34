"""Lessons, course maps and the home page."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from fastapi import FastAPI

from app.feature import Feature
from app.lessons.catalog import Catalog
from app.lessons.dependencies import CATALOG
from app.lessons.navigation import course_links, course_outlines
from app.lessons.routes import router
from app.lessons.search_engine_routes import router as search_engine_router
from app.web.dependencies import SETTINGS


def setup(app: FastAPI) -> None:
    settings = SETTINGS.get(app)
    CATALOG.set(app, Catalog(settings.lessons_dir, kept=settings.last_good_courses))


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    """Load the lessons, then follow changes to their files."""
    catalog = CATALOG.get(app)
    await asyncio.to_thread(catalog.reload)
    watcher = asyncio.create_task(catalog.watch())
    try:
        yield
    finally:
        watcher.cancel()
        with suppress(asyncio.CancelledError):
            await watcher


FEATURE = Feature(
    name="lessons",
    routers=(router, search_engine_router),
    setup=setup,
    lifespan=lifespan,
    navigation=course_links,
    error_context=course_outlines,
)
