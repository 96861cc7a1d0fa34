"""Migrates a database to this version's schema, with Alembic but without an ini file, on the application's engine."""

from __future__ import annotations

from collections.abc import Callable

from alembic import command
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, text

from app import pre_release
from app.db import Database
from app.settings import project_folder

MIGRATIONS_DIR = project_folder("migrations")
_ADVISORY_LOCK_KEY = 0x10C_57E9
"""Key of PostgreSQL's advisory lock: servers that start at the same time upgrade one after the other."""


class UnsupportedRevision(Exception):
    """This version cannot upgrade the database. ``str()`` says what to do."""


def alembic_config() -> Config:
    """Alembic's configuration; files of versions are named ``YYYY-MM-DD_verb_noun.py``."""
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS_DIR))
    config.set_main_option("file_template", "%%(year)d-%%(month).2d-%%(day).2d_%%(slug)s")
    config.set_main_option("path_separator", "os")
    return config


HEAD_REVISION = ScriptDirectory.from_config(alembic_config()).get_current_head()


async def upgrade(db: Database, revision: str = "head") -> None:
    """Apply missing migrations. Creates the folder of an SQLite file.

    Raises:
        UnsupportedRevision: nothing was changed.
    """
    await _run_alembic(db, lambda config: _upgrade(config, revision))


async def downgrade(db: Database, revision: str) -> None:
    """Revert migrations down to a revision or ``base``."""
    await _run_alembic(db, lambda config: command.downgrade(config, revision))


async def current_revision(db: Database) -> str | None:
    """The database's revision; None if it is empty."""

    def look(connection: Connection) -> str | None:
        return MigrationContext.configure(connection).get_current_revision()

    async with db.engine.connect() as connection:
        return await connection.run_sync(look)


def _upgrade(config: Config, revision: str) -> None:
    connection: Connection = config.attributes["connection"]
    current = MigrationContext.configure(connection).get_current_revision()
    if current == pre_release.LAST_REVISION:
        pre_release.set_tables_aside(connection)
        connection.execute(text("DELETE FROM alembic_version"))
        command.upgrade(config, pre_release.FIRST_REVISION)
        pre_release.copy_rows(connection)
    elif current in pre_release.UNSUPPORTED_REVISIONS:
        raise UnsupportedRevision(
            f"The database is at revision {current}, from before the first version. Run 'lockstep db upgrade' of "
            f"commit {pre_release.LAST_COMMIT}, then of this version."
        )
    elif current not in {None, *(each.revision for each in ScriptDirectory.from_config(config).walk_revisions())}:
        raise UnsupportedRevision(
            f"The database is at revision {current} of a newer version. Run that version, or restore a backup "
            "from before its upgrade."
        )
    command.upgrade(config, revision)


async def _run_alembic(db: Database, act: Callable[[Config], None]) -> None:
    def run(connection: Connection) -> None:
        if connection.dialect.name == "postgresql":
            connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _ADVISORY_LOCK_KEY})
        else:
            connection.exec_driver_sql("BEGIN IMMEDIATE")  # SQLite's driver would begin only before the first INSERT
        config = alembic_config()
        config.attributes["connection"] = connection
        act(config)

    if (file := db.file()) is not None:
        file.parent.mkdir(parents=True, exist_ok=True)
    async with db.engine.begin() as connection:
        await connection.run_sync(run)
