"""Downloads of lessons."""

from __future__ import annotations

import asyncio

from fastapi import FastAPI

from app.exports.cache import ExportCache
from app.exports.routes import ARCHIVE_LOCK, EXPORT_CACHE, EXPORT_LOCK, PDF_LOCK, router
from app.feature import Feature


def setup(app: FastAPI) -> None:
    EXPORT_LOCK.set(app, asyncio.Lock())
    PDF_LOCK.set(app, asyncio.Lock())
    ARCHIVE_LOCK.set(app, asyncio.Lock())
    EXPORT_CACHE.set(app, ExportCache())


FEATURE = Feature(
    name="exports",
    routers=(router,),
    setup=setup,
    open_in_maintenance=(r"/\w+/courses/[^/.]+/[^/.]+\.[a-z]+",),  # edits that a page sends are not stored
)
