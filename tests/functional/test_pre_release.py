"""A database from before the first version keeps its rows; on PostgreSQL, the long tests see to that.

``tests/golden/pre_release`` holds one, as each database dumped it, and its rows after the upgrade.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import Connection, inspect, text
from typer.testing import CliRunner

from app import migrate, pre_release
from app.cli.db import app
from app.db import Base, Database
from tests.factories.databases import mainly_on
from tests.factories.filled_database import DUMPS, all_rows, load_pre_release
from tests.golden.golden_file import assert_golden

NEW_REVISION = "made_by_a_newer_version"


@pytest.fixture
async def empty(empty_database_url: str) -> AsyncIterator[Database]:
    db = Database(empty_database_url)
    if (file := db.file()) is not None:
        file.parent.mkdir()
    yield db
    await db.close()


@pytest.fixture
async def old(empty: Database) -> Database:
    """A database as the last commit before the first version left it."""
    await load_pre_release(empty)
    return empty


async def schema(db: Database) -> dict[str, Any]:
    """Columns, keys, constraints, and indexes with their names. The order of columns does not matter."""
    async with db.engine.connect() as connection:
        return await connection.run_sync(_schema)


def _schema(connection: Connection) -> dict[str, Any]:
    inspector = inspect(connection)
    return {
        table: {
            "columns": sorted((c["name"], str(c["type"]), c["nullable"]) for c in inspector.get_columns(table)),
            "primary key": inspector.get_pk_constraint(table),
            **{
                what: sorted(str({**constraint, "dialect_options": _options(constraint)}) for constraint in constraints)
                for what, constraints in (
                    ("foreign keys", inspector.get_foreign_keys(table)),
                    ("unique", inspector.get_unique_constraints(table)),
                    ("checks", inspector.get_check_constraints(table)),
                    ("indexes", inspector.get_indexes(table)),
                )
            },
        }
        for table in inspector.get_table_names()
    }


def _options(constraint: Any) -> dict[str, str]:
    """Options of an index that one database has, such as ``WHERE``, as text."""
    return {name: str(value) for name, value in constraint.get("dialect_options", {}).items()}


def plain(value: object) -> str:
    return value.isoformat() if isinstance(value, datetime) else bytes(value).hex()  # type: ignore[call-overload]


@mainly_on("sqlite", "empty_database_url")
async def test_every_row_moves_into_the_tables_of_the_first_version(old: Database) -> None:
    await migrate.upgrade(old)

    assert await migrate.current_revision(old) == migrate.HEAD_REVISION
    assert_golden("pre_release/rows.json", json.dumps(await all_rows(old), ensure_ascii=False, indent=1, default=plain))


@mainly_on("sqlite", "empty_database_url")
async def test_an_upgraded_database_has_the_schema_of_a_new_one(empty: Database) -> None:
    await migrate.upgrade(empty)
    new = await schema(empty)
    await migrate.downgrade(empty, "base")
    async with empty.engine.begin() as connection:
        await connection.execute(text("DROP TABLE alembic_version"))
    await load_pre_release(empty)
    before = await schema(empty)

    await migrate.upgrade(empty)

    assert before != new
    assert await schema(empty) == new
    async with empty.engine.connect() as connection:
        assert await connection.run_sync(lambda c: compare_metadata(MigrationContext.configure(c), Base.metadata)) == []
        if empty.file() is not None:
            assert (await connection.exec_driver_sql("PRAGMA foreign_key_check")).all() == []


@mainly_on("sqlite", "empty_database_url")
async def test_an_upgrade_that_fails_halfway_leaves_every_row_where_it_was(
    old: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = await schema(old)

    def fail(connection: Connection) -> None:
        raise RuntimeError("the disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(pre_release, "copy_rows", fail)
        with pytest.raises(RuntimeError):
            await migrate.upgrade(old)

    assert await schema(old) == before
    assert await migrate.current_revision(old) == pre_release.LAST_REVISION
    await migrate.upgrade(old)
    assert await migrate.current_revision(old) == migrate.HEAD_REVISION


@mainly_on("sqlite", "empty_database_url")
@pytest.mark.parametrize("revision", ["create_runs", "add_comment_renderer_index", NEW_REVISION])
async def test_a_revision_that_cannot_be_upgraded_is_refused_with_what_to_do(old: Database, revision: str) -> None:
    async with old.engine.begin() as connection:
        await connection.execute(text("UPDATE alembic_version SET version_num = :revision"), {"revision": revision})
    before = await schema(old)

    with pytest.raises(migrate.UnsupportedRevision) as refused:
        await migrate.upgrade(old)

    sentence = str(refused.value)
    assert revision in sentence
    assert ("newer version" if revision == NEW_REVISION else pre_release.LAST_COMMIT) in sentence
    assert await schema(old) == before


def test_the_command_says_what_to_do_with_a_database_that_is_too_old(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "lockstep.db"
    with closing(sqlite3.connect(file)) as connection:
        connection.executescript((DUMPS / "sqlite.sql").read_text(encoding="utf-8"))
        connection.execute("UPDATE alembic_version SET version_num = 'create_feedback'")
        connection.commit()
    monkeypatch.setenv("LOCKSTEP_DATA_DIR", str(tmp_path))

    result = CliRunner().invoke(app, ["upgrade"])

    assert result.exit_code == 1
    assert "create_feedback" in result.stderr
    assert f"commit {pre_release.LAST_COMMIT}" in result.stderr
    assert "Traceback" not in result.output
