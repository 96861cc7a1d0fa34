"""Migrates a database to this version's schema, or back to an older one, on the application's engine.

Uses Alembic, without an ini file.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from alembic import command
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, text

from app import pre_release
from app.db import Database
from app.settings import project_folder
from app.version import lockstep_version

MIGRATIONS_DIR = project_folder("migrations")
_ADVISORY_LOCK_KEY = 0x10C_57E9
"""Key of PostgreSQL's advisory lock: servers that start at the same time upgrade one after the other."""


class UnsupportedRevision(Exception):
    """This version cannot migrate the database. ``str()`` says why, and what to do."""


class NewerDatabase(UnsupportedRevision):
    """A newer version has migrated the database to a revision that this one does not know."""

    def __init__(self, revision: str) -> None:
        super().__init__(
            f"The database is at revision {revision}, from a newer version of Lockstep than this one "
            f"({lockstep_version()}). Start the newer version, or take the database back with its "
            f"'lockstep db downgrade {HEAD_REVISION}', or restore a backup from before the upgrade."
        )


def alembic_config() -> Config:
    """Alembic's configuration; files of versions are named ``YYYY-MM-DD_verb_noun.py``."""
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS_DIR))
    config.set_main_option("file_template", "%%(year)d-%%(month).2d-%%(day).2d_%%(slug)s")
    config.set_main_option("path_separator", "os")
    return config


@cache
def known_revisions() -> tuple[str, ...]:
    """Every revision that this version can migrate to, the newest first."""
    scripts = ScriptDirectory.from_config(alembic_config())
    return tuple(script.revision for script in scripts.walk_revisions())


HEAD_REVISION = known_revisions()[0]


async def upgrade(db: Database, revision: str = "head") -> None:
    """Apply missing migrations. Creates the folder of an SQLite file.

    Raises:
        UnsupportedRevision: nothing was changed.
    """
    await _run(db, lambda connection: upgrade_connection(connection, revision))


def upgrade_connection(connection: Connection, revision: str = "head") -> None:
    """Apply missing migrations in the connection's transaction, see ``begin``.

    Raises:
        UnsupportedRevision: nothing was changed.
    """
    current = revision_of(connection)
    check_revision(current)
    config = _config_for(connection)
    if current == pre_release.LAST_REVISION:
        pre_release.set_tables_aside(connection)
        connection.execute(text("DELETE FROM alembic_version"))
        command.upgrade(config, pre_release.FIRST_REVISION)
        pre_release.copy_rows(connection)
    command.upgrade(config, revision)


async def downgrade(db: Database, revision: str) -> None:
    """Revert migrations down to a revision or ``base``."""
    await _run(db, lambda connection: command.downgrade(_config_for(connection), revision))


def reverted_migrations(current: str | None, revision: str | None) -> tuple[str, ...]:
    """The migrations between a database's revision and an earlier one, newest first. None: the one before. Pure.

    Raises:
        UnsupportedRevision: the database cannot be taken back to that revision.
    """
    known = known_revisions()
    check_revision(current)
    if current not in known:
        raise UnsupportedRevision("The database has no tables of this version. Run 'lockstep db upgrade' first.")
    earlier = known[known.index(current) + 1 :]
    if not earlier:
        raise UnsupportedRevision(f"The database is at revision {current}, the first one.")
    if revision is not None and revision not in earlier:
        raise UnsupportedRevision(
            f"The database is at revision {current} and cannot go back to {revision!r}. "
            f"Choose an earlier revision: {', '.join(earlier)}."
        )
    return known[known.index(current) : known.index(revision or earlier[0])]


def check_revision(current: str | None) -> None:
    """Check that this version can migrate a database at that revision. Pure.

    Raises:
        UnsupportedRevision: it cannot.
    """
    if current in pre_release.UNSUPPORTED_REVISIONS:
        raise UnsupportedRevision(
            f"The database is at revision {current}, from before the first version. Run 'lockstep db upgrade' of "
            f"commit {pre_release.LAST_COMMIT}, then of this version."
        )
    if current not in {None, pre_release.LAST_REVISION, *known_revisions()}:
        raise NewerDatabase(str(current))


async def current_revision(db: Database) -> str | None:
    """The database's revision; None if it is empty."""
    async with db.engine.connect() as connection:
        return await connection.run_sync(revision_of)


def revision_of(connection: Connection) -> str | None:
    """The revision of the database of a connection; None if it is empty."""
    return MigrationContext.configure(connection).get_current_revision()


def begin(connection: Connection) -> None:
    """Begin a transaction that no other migration can run beside, on a connection that SQLAlchemy has begun."""
    if connection.dialect.name == "postgresql":
        connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _ADVISORY_LOCK_KEY})
    else:
        connection.exec_driver_sql("BEGIN IMMEDIATE")  # SQLite's driver would begin only before the first INSERT


def _config_for(connection: Connection) -> Config:
    config = alembic_config()
    config.attributes["connection"] = connection
    return config


async def _run(db: Database, act: Callable[[Connection], None]) -> None:
    def run(connection: Connection) -> None:
        begin(connection)
        act(connection)

    if (file := db.file()) is not None:
        file.parent.mkdir(parents=True, exist_ok=True)
    async with db.engine.begin() as connection:
        await connection.run_sync(run)
