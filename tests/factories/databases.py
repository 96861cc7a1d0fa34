"""Databases for tests: SQLite always, PostgreSQL where ``LOCKSTEP_TEST_POSTGRES_URL`` names one that may be emptied."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from sqlalchemy import text

from app.db import Database

KINDS = ("sqlite", "postgresql")
POSTGRES = "LOCKSTEP_TEST_POSTGRES_URL"


async def empty_database(kind: str, folder: Path) -> Database:
    """A database without a table. Skips the test where there is none of that kind."""
    if kind == "sqlite":
        return Database(f"sqlite+aiosqlite:///{folder / 'empty' / 'lockstep.db'}")
    url = os.environ.get(POSTGRES, "")
    if not url:
        pytest.skip(f"{POSTGRES} is not set")
    db = Database(url)
    async with db.engine.begin() as connection:
        await connection.execute(text("DROP SCHEMA public CASCADE"))
        await connection.execute(text("CREATE SCHEMA public"))
    return db
