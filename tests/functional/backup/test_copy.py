"""``lockstep db copy``: every row of every table, from one kind of database to the other."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
from sqlalchemy import text

from app import migrate
from app.backup.archive import BackupError
from app.backup.service import copy_database
from app.db import Database
from app.settings import Settings
from app.tables import TABLES
from tests.factories.backups import deferrable_constraints, rows_of, silent
from tests.factories.cli_process import lockstep
from tests.factories.filled_database import add_runs, all_rows


async def test_a_database_moves_from_sqlite_to_postgresql_and_back(
    site: Settings, db: Database, tmp_path: Path, postgresql: str
) -> None:
    sqlite, back = site.database, f"sqlite+aiosqlite:///{tmp_path / 'back' / 'lockstep.db'}"
    await add_runs(db, 0, 1500)
    expected = await all_rows(db)
    await db.close()
    for source, target in ((sqlite, postgresql), (postgresql, back)):
        plain = [url.replace("+aiosqlite", "").replace("+asyncpg", "") for url in (source, target)]
        copied = await lockstep("db", "copy", *plain, data_dir=tmp_path / "elsewhere")
        assert copied.status == 0, copied.err
        assert copied.err.startswith(f"Copied {sum(map(len, expected.values())):,} rows of {len(TABLES)} tables.")
        printed = next(line for line in copied.err.splitlines() if line.startswith("LOCKSTEP_DATABASE_URL="))
        assert await rows_of(shlex.split(printed)[0].partition("=")[2]) == expected
        assert await rows_of(target) == expected
    again = await lockstep("db", "copy", sqlite, postgresql, data_dir=tmp_path / "elsewhere")
    assert again.status == 1
    assert again.err.startswith("The database is not empty: ")
    assert await deferrable_constraints(postgresql) == 0


async def test_a_text_that_postgresql_cannot_hold_is_named_and_nothing_is_copied(db: Database, postgresql: str) -> None:
    async with db.engine.begin() as connection:
        await connection.execute(text("UPDATE comments SET source = 'a' || char(0)"))
    await db.close()
    with pytest.raises(BackupError, match="The database refuses a row of the table comments"):
        await copy_database(db.url, postgresql, silent)
    new = Database(postgresql)
    assert await migrate.current_revision(new) is None
    await new.close()


@pytest.mark.parametrize(
    ("source", "target", "sentence"),
    [
        ("lockstep.db", "sqlite:////x", "A database URL looks like"),
        ("mysql://x", "sqlite:////x", "A database URL looks like"),
        ("sqlite:////x", "sqlite+aiosqlite:////x", "Source and target are the same database."),
        (
            "sqlite:////x",
            "postgresql://me@host:x/y",
            "The URL of the postgresql database cannot be used: its port must",
        ),
        ("sqlite:////x", "postgres://me@host/y?sslmode=require", "The URL of the postgres database cannot be used: in"),
        ("sqlite:////nowhere/x", "sqlite:////y", "There is no database /nowhere/x."),
    ],
)
async def test_urls_that_cannot_be_copied_are_refused(tmp_path: Path, source: str, target: str, sentence: str) -> None:
    refused = await lockstep("db", "copy", source, target, data_dir=tmp_path)
    assert refused.status in (1, 2)
    assert refused.err.startswith(sentence)
