"""``lockstep db``: the database."""

from __future__ import annotations

import asyncio
import re
from typing import NoReturn

import typer
from sqlalchemy.exc import SQLAlchemyError

from app import migrate
from app.cli.console import fail, print_message, read_settings
from app.cli.web_user import leave_root
from app.db import Database
from app.settings import Settings

_EXCEPTION_CLASS = re.compile(r"^\([\w.]+\) (<class '[\w.]+'>: )?")
"""The prefix that SQLAlchemy adds to a message: the class of the error."""

app = typer.Typer(help="Manage the database.", no_args_is_help=True)


@app.callback()
def _begin() -> None:
    """Manage the database."""
    leave_root()


@app.command()
def upgrade() -> None:
    """Apply pending migrations."""
    print_message(f"The database is at revision {upgrade_database(read_settings())}.")


def upgrade_database(settings: Settings) -> str:
    """Apply pending migrations and return the revision; exits with a sentence if the database cannot be upgraded."""

    async def work() -> str:
        db = Database(settings.database)
        try:
            await migrate.upgrade(db)
            return await migrate.current_revision(db) or "nothing"
        finally:
            await db.close()

    try:
        return asyncio.run(work())
    except migrate.UnsupportedRevision as e:
        fail(str(e))
    except (SQLAlchemyError, OSError) as e:
        fail_on_database_error(e)


def fail_on_database_error(error: Exception) -> NoReturn:
    """Print the database's own error message and exit."""
    words, *_ = str(error).splitlines() or [type(error).__name__]
    fail(f"The database cannot be used: {_EXCEPTION_CLASS.sub('', words)[:300]}")
