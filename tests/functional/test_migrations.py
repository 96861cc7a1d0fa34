"""Migrations: up, down, and equal to the models, on both databases."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, inspect

from app import migrate
from app.db import Base, Database
from app.tables import TABLES


@pytest.fixture
async def empty(empty_database_url: str) -> AsyncIterator[Database]:
    db = Database(empty_database_url)
    yield db
    await db.close()


async def test_what_migrations_make_is_what_the_models_say(empty: Database) -> None:
    await migrate.upgrade(empty)

    def differences(connection: Connection) -> list[Any]:
        return list(compare_metadata(MigrationContext.configure(connection), Base.metadata))

    async with empty.engine.connect() as connection:
        assert await connection.run_sync(differences) == []
        names = await connection.run_sync(lambda c: set(inspect(c).get_table_names()))
    assert names == {"alembic_version", *(table.name for table in TABLES)}
    assert await migrate.current_revision(empty) == migrate.HEAD_REVISION


async def test_migrations_can_be_taken_back_and_applied_again(empty: Database) -> None:
    await migrate.upgrade(empty)
    await migrate.downgrade(empty, "base")

    async with empty.engine.connect() as connection:
        assert await connection.run_sync(lambda c: inspect(c).get_table_names()) == ["alembic_version"]
    assert await migrate.current_revision(empty) is None

    await migrate.upgrade(empty)
    assert await migrate.current_revision(empty) == migrate.HEAD_REVISION


async def test_upgrading_twice_changes_nothing(empty: Database) -> None:
    await migrate.upgrade(empty)
    await migrate.upgrade(empty)

    assert await migrate.current_revision(empty) == migrate.HEAD_REVISION


async def test_servers_that_start_at_the_same_time_upgrade_one_after_the_other(empty_database_url: str) -> None:
    servers = [Database(empty_database_url, wait_s=60.0) for _ in range(4)]
    await asyncio.gather(*(migrate.upgrade(db) for db in servers))
    assert await migrate.current_revision(servers[0]) == migrate.HEAD_REVISION
    for db in servers:
        await db.close()


async def test_a_migration_that_fails_leaves_the_database_as_it_was(
    empty: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    upgrade = command.upgrade

    def fail_at_the_end(*arguments: Any) -> None:
        upgrade(*arguments)
        raise RuntimeError("the disk is full")

    monkeypatch.setattr(command, "upgrade", fail_at_the_end)
    with pytest.raises(RuntimeError):
        await migrate.upgrade(empty)
    async with empty.engine.connect() as connection:
        assert await connection.run_sync(lambda c: inspect(c).get_table_names()) == []


def test_files_of_migrations_are_named_by_day_and_verb() -> None:
    scripts = ScriptDirectory.from_config(migrate.alembic_config())
    for script in scripts.walk_revisions():
        assert Path(script.path).name.split("_", 1)[1] == f"{script.revision}.py"
        assert len(script.revision) <= 32


async def test_sqlite_is_set_up_for_many_readers_and_one_writer(tmp_path: Path) -> None:
    db = Database(f"sqlite+aiosqlite:///{tmp_path / 'lockstep.db'}")
    await migrate.upgrade(db)

    async with db.engine.connect() as connection:
        values = {
            name: (await connection.exec_driver_sql(f"PRAGMA {name}")).scalar_one()
            for name in ("journal_mode", "foreign_keys", "synchronous", "busy_timeout")
        }
    await db.close()

    assert values == {"journal_mode": "wal", "foreign_keys": 1, "synchronous": 1, "busy_timeout": 10_000}
