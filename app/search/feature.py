"""Searching lessons."""

from __future__ import annotations

from fastapi import FastAPI

from app.feature import Feature
from app.search.index import LessonIndexes
from app.search.routes import INDEXES, router


def _setup(app: FastAPI) -> None:
    INDEXES.set(app, LessonIndexes())


FEATURE = Feature(name="search", routers=(router,), setup=_setup)
