"""What instructors need while they write lessons: open pages follow the files."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI

from app.authoring.changes import LESSON_CHANGES, LessonChanges
from app.authoring.routes import router
from app.feature import Feature
from app.lessons.dependencies import CATALOG
from app.web.dependencies import BUS


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    """Tell open pages when the catalog was reloaded."""
    changes = LESSON_CHANGES.set(app, LessonChanges(CATALOG.get(app), BUS.get(app)))
    loop = asyncio.get_running_loop()
    CATALOG.get(app).after_reload(lambda: changes.note_reload(loop))
    yield


FEATURE = Feature(name="authoring", routers=(router,), lifespan=lifespan)
