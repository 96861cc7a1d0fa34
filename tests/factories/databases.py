"""Databases for tests: SQLite always, PostgreSQL where ``LOCKSTEP_TEST_POSTGRES_URL`` names one that may be emptied.

Where tests run side by side, each process has a database of its own beside that one.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from sqlalchemy import make_url, text

from app.db import Database

KINDS = ("sqlite", "postgresql")


async def empty_database(kind: str, folder: Path) -> Database:
    """A database without a table. Skips the test where there is none of that kind."""
    if kind == "sqlite":
        return Database(f"sqlite+aiosqlite:///{folder / 'empty' / 'lockstep.db'}")
    url = os.environ.get("LOCKSTEP_TEST_POSTGRES_URL", "")
    if not url:
        pytest.skip("LOCKSTEP_TEST_POSTGRES_URL is not set")
    db = Database(await _of_this_process(url))
    async with db.engine.begin() as connection:
        await connection.execute(text("DROP SCHEMA public CASCADE"))
        await connection.execute(text("CREATE SCHEMA public"))
    return db


async def _of_this_process(url: str) -> str:
    name = os.environ.get("PYTEST_XDIST_WORKER")
    if name is None:
        return url
    db = Database(url)
    async with db.engine.connect() as connection:
        await connection.execution_options(isolation_level="AUTOCOMMIT")  # a database is not made in a transaction
        there = await connection.scalar(text("SELECT count(*) FROM pg_database WHERE datname = :name"), {"name": name})
        if not there:
            await connection.execute(text(f'CREATE DATABASE "{name}"'))
    await db.close()
    return make_url(url).set(database=name).render_as_string(hide_password=False)
