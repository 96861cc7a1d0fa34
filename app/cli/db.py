"""``lockstep db``: the database."""

from __future__ import annotations

import asyncio
import os
import shlex
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Annotated, NoReturn, TypeVar

import typer
from sqlalchemy.engine import make_url
from sqlalchemy.exc import SQLAlchemyError

from app import migrate
from app.backup.archive import BackupError
from app.backup.service import copy_database
from app.cli.console import USAGE_ERROR, ending_at_sigterm, fail, print_message, read_settings
from app.cli.row_progress import RowProgress
from app.cli.web_user import leave_root
from app.database_health import classify_database_error, driver_message
from app.database_url import database_url_error
from app.db import Database
from app.errors import DatabaseFull, DatabaseUnavailable
from app.settings import Settings

DATABASE_ERRORS = (BackupError, migrate.UnsupportedRevision, SQLAlchemyError, OSError)
"""What work with a database raises for reasons that an operator can do something about."""
_RETRY_INTERVAL_S = 2.0
T = TypeVar("T")

app = typer.Typer(help="Manage the database.", no_args_is_help=True)


@app.callback()
def _begin() -> None:
    """Manage the database."""
    leave_root()


@app.command()
def upgrade() -> None:
    """Apply pending migrations."""
    print_message(f"The database is at revision {upgrade_database(read_settings())}.")


@app.command()
def downgrade(
    revision: Annotated[
        str | None, typer.Argument(help="The revision to go back to; by default, the one before the database's.")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
) -> None:
    """Take the database back to an earlier revision, for an older version of Lockstep.

    Stop the server and back up first: what only the newer tables and columns hold is deleted.
    """
    settings = read_settings()
    reverted = run_with_database(settings, lambda db: _plan_downgrade(db, revision))
    if not yes:
        print_message(f"This reverts {', '.join(reverted)}, and deletes what only they hold.")
        typer.confirm("Is the server stopped, and do you have a backup?", abort=True, err=True)
    target = revision or migrate.known_revisions()[migrate.known_revisions().index(reverted[-1]) + 1]
    run_with_database(settings, lambda db: migrate.downgrade(db, target))
    print_message(f"The database is at revision {target}. Start the version of Lockstep that it belongs to.")


_URL_FORMS = {
    "sqlite+aiosqlite": "sqlite+aiosqlite",
    "sqlite": "sqlite+aiosqlite",
    "postgresql+asyncpg": "postgresql+asyncpg",
    "postgresql": "postgresql+asyncpg",
    "postgres": "postgresql+asyncpg",
}


@app.command()
def copy(
    source: Annotated[
        str, typer.Argument(metavar="SOURCE_URL", help="The database to read, such as sqlite:////srv/lockstep.db.")
    ],
    target: Annotated[
        str,
        typer.Argument(metavar="TARGET_URL", help="An empty database, such as postgresql://lockstep@host/lockstep."),
    ],
) -> None:
    """Copy all rows to an empty database of another kind: from SQLite to PostgreSQL, or back.

    Stop the server first: what it writes after the copy has begun is not copied. PGPASSWORD or a password file keeps a
    password out of the list of processes.
    """
    there, here = _database_url(source), _database_url(target)
    if there == here:
        fail("Source and target are the same database.", USAGE_ERROR)
    os.umask(0o077)
    try:
        with RowProgress("Copied") as progress:
            rows = asyncio.run(copy_database(there, here, progress))
    except DATABASE_ERRORS as e:
        fail(describe_error(e))
    print_message(
        f"Copied {sum(rows.values()):,} rows of {len(rows)} tables. To use the copy, set:\n{_database_setting(here)}"
    )


def _database_setting(url: str) -> str:
    """A line for a shell or an environment file, without the password: a reminder of that follows."""
    parts = make_url(url)
    line = f"LOCKSTEP_DATABASE_URL={shlex.quote(parts.set(password=None).render_as_string())}"
    return (
        f"{line}\nPut its password into PGPASSWORD, or after a colon behind {parts.username}."
        if parts.password
        else line
    )


def _database_url(text: str) -> str:
    """The URL with the driver that Lockstep uses."""
    kind, _, rest = text.partition("://")
    if kind not in _URL_FORMS or not rest:
        fail("A database URL looks like sqlite:////path or postgresql://user@host/name.", USAGE_ERROR)
    url = f"{_URL_FORMS[kind]}://{rest}"
    if error := database_url_error(url):
        fail(f"The URL of the {kind} database cannot be used: {error}.", USAGE_ERROR)
    return url


async def _plan_downgrade(db: Database, revision: str | None) -> tuple[str, ...]:
    if (file := db.file()) is not None and not file.exists():  # connecting would create it
        fail(f"There is no database {file}.")
    return migrate.reverted_migrations(await migrate.current_revision(db), revision)


def upgrade_database(settings: Settings, *, wait: bool = False) -> str:
    """Apply pending migrations and return the revision; exits with a sentence if the database cannot be upgraded.

    With ``wait``, prints the sentence and tries again until the database can be upgraded.
    """
    if wait:
        with ending_at_sigterm(0):
            return _upgrade_when_possible(settings)
    return run_with_database(settings, _upgrade)


async def _upgrade(db: Database) -> str:
    await migrate.upgrade(db)
    return await migrate.current_revision(db) or "nothing"


def _upgrade_when_possible(settings: Settings) -> str:
    said = ""
    while True:
        try:
            return asyncio.run(_with_database(settings, _upgrade))
        except DATABASE_ERRORS as e:
            sentence = describe_error(e, settings)
        if sentence != said:
            print_message(f"{sentence}\nWaiting: Lockstep starts as soon as it can use the database.")
            said = sentence
        time.sleep(_RETRY_INTERVAL_S)


def run_with_database(settings: Settings, work: Callable[[Database], Awaitable[T]]) -> T:
    """Work with the database; exits with a sentence if that fails."""
    try:
        return asyncio.run(_with_database(settings, work))
    except DATABASE_ERRORS as e:
        fail(describe_error(e, settings))


async def _with_database(settings: Settings, work: Callable[[Database], Awaitable[T]]) -> T:
    db = Database(settings.database, pooled=settings.database_transaction_pooling)
    try:
        return await work(db)
    finally:
        await db.close()


def fail_on_database_error(error: Exception, settings: Settings) -> NoReturn:
    """Print which database cannot be used, why, and what to do, and exit."""
    fail(describe_error(error, settings))


def describe_error(error: Exception, settings: Settings | None = None) -> str:
    """A sentence about one of ``DATABASE_ERRORS``, and what to do if its database is the one of the settings."""
    if isinstance(error, BackupError | migrate.UnsupportedRevision):
        return str(error)
    if isinstance(error, OSError) and error.strerror:
        return f"Cannot use {error.filename}: {error.strerror}." if error.filename else f"{error.strerror}."
    if settings is None:
        return f"The database cannot be used: {driver_message(error)}."
    url = make_url(settings.database)
    file = Path(url.database) if url.get_backend_name() == "sqlite" and url.database else None
    name, reason = file or settings.shown_database, driver_message(error)
    return f"The database {name} cannot be used: {reason}. {_what_to_do(error, file)}".rstrip()


def _what_to_do(error: Exception, file: Path | None) -> str:
    problem = classify_database_error(error)
    if problem is DatabaseFull:
        return "Make room on its disk."
    if file is not None and not os.access(file.parent, os.W_OK):
        return f"User {os.geteuid()} has to be able to write to {file.parent}."
    if file is None and problem is DatabaseUnavailable:
        return "Start PostgreSQL, or change LOCKSTEP_DATABASE_URL."
    return ""
