"""``lockstep db``: the database."""

from __future__ import annotations

import asyncio
import re
import signal
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Annotated, NoReturn, TypeVar

import typer
from sqlalchemy.exc import SQLAlchemyError

from app import migrate
from app.cli.console import fail, print_message, read_settings
from app.cli.web_user import leave_root
from app.db import Database
from app.settings import Settings

_EXCEPTION_CLASS = re.compile(r"^\([\w.]+\) (<class '[\w.]+'>: )?")
"""The prefix that SQLAlchemy adds to a message: the class of the error."""

_DATABASE_ERRORS = (migrate.UnsupportedRevision, SQLAlchemyError, OSError)
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
    reverted = _run(settings, lambda db: _plan_downgrade(db, revision))
    if not yes:
        print_message(f"This reverts {', '.join(reverted)}, and deletes what only they hold.")
        typer.confirm("Is the server stopped, and do you have a backup?", abort=True, err=True)
    target = revision or migrate.known_revisions()[migrate.known_revisions().index(reverted[-1]) + 1]
    _run(settings, lambda db: migrate.downgrade(db, target))
    print_message(f"The database is at revision {target}. Start the version of Lockstep that it belongs to.")


async def _plan_downgrade(db: Database, revision: str | None) -> tuple[str, ...]:
    if (file := db.file()) is not None and not file.exists():  # connecting would create it
        fail(f"There is no database {file}.")
    return migrate.reverted_migrations(await migrate.current_revision(db), revision)


def upgrade_database(settings: Settings, *, wait: bool = False) -> str:
    """Apply pending migrations and return the revision; exits with a sentence if the database cannot be upgraded.

    With ``wait``, prints the sentence and tries again until the database can be upgraded.
    """
    if wait:
        with _ending_at_sigterm():
            return _upgrade_when_possible(settings)
    return _run(settings, _upgrade)


async def _upgrade(db: Database) -> str:
    await migrate.upgrade(db)
    return await migrate.current_revision(db) or "nothing"


def _upgrade_when_possible(settings: Settings) -> str:
    said = ""
    while True:
        try:
            return asyncio.run(_with_database(settings, _upgrade))
        except _DATABASE_ERRORS as e:
            sentence = _describe(e)
        if sentence != said:
            print_message(f"{sentence}\nWaiting: Lockstep starts as soon as it can use the database.")
            said = sentence
        time.sleep(_RETRY_INTERVAL_S)


@contextmanager
def _ending_at_sigterm() -> Iterator[None]:
    """End at SIGTERM, which the first process of a container would otherwise ignore."""
    before = signal.signal(signal.SIGTERM, lambda _signum, _frame: sys.exit(0))
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _run(settings: Settings, work: Callable[[Database], Awaitable[T]]) -> T:
    """Work with the database; exits with a sentence if that fails."""
    try:
        return asyncio.run(_with_database(settings, work))
    except _DATABASE_ERRORS as e:
        fail(_describe(e))


async def _with_database(settings: Settings, work: Callable[[Database], Awaitable[T]]) -> T:
    db = Database(settings.database)
    try:
        return await work(db)
    finally:
        await db.close()


def fail_on_database_error(error: Exception) -> NoReturn:
    """Print the database's own error message and exit."""
    fail(_describe(error))


def _describe(error: Exception) -> str:
    if isinstance(error, migrate.UnsupportedRevision):
        return str(error)
    words, *_ = str(error).splitlines() or [type(error).__name__]
    return f"The database cannot be used: {_EXCEPTION_CLASS.sub('', words)[:300]}"
