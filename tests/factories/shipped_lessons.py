"""The lessons of this repository, read once per process: that takes a second."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from app.lessons.catalog import Catalog

LESSONS = Path(__file__).parents[2] / "lessons"


@cache
def shipped_catalog() -> Catalog:
    """The catalog of the lessons. Do not reload or change it: all tests of this process have it."""
    catalog = Catalog(LESSONS, quiet=True)
    catalog.reload()
    return catalog
