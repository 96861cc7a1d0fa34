"""A site with an exercise that is reviewed, and a classroom."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import pytest
from fastapi import FastAPI

from app.main import create_app
from app.settings import Settings
from tests.factories.classroom import Classroom
from tests.factories.judged_lesson import add_exercise


@pytest.fixture
async def app(settings: Settings) -> AsyncIterator[FastAPI]:
    app = create_app(settings)
    add_exercise(app, reviewed=True)
    async with app.router.lifespan_context(app):
        yield app


@pytest.fixture
async def room(app: FastAPI) -> AsyncIterator[Classroom]:
    async with AsyncExitStack() as running:
        yield await Classroom(app, running).open()
