"""Commands that do their work in one transaction on the site's database."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from typing import TypeVar

from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncSession

from app.cli.console import fail, read_settings
from app.cli.db import fail_on_database_error, upgrade_database
from app.db import Database
from app.settings import Settings

T = TypeVar("T")


class CommandRefused(Exception):
    """Why a command was not carried out."""


def run_in_transaction(work: Callable[[AsyncSession], Awaitable[T]], settings: Settings | None = None) -> T:
    """Run ``work`` in one transaction on an up-to-date database; exits with a sentence if that fails."""
    settings = settings or read_settings()
    os.umask(0o077)  # a database created here is as private as one that `serve` creates
    upgrade_database(settings)

    async def act() -> T:
        db = Database(settings.database, pooled=settings.database_transaction_pooling)
        try:
            async with db.writing() as session:
                return await work(session)
        finally:
            await db.close()

    try:
        return asyncio.run(act())
    except CommandRefused as e:
        fail(str(e))
    except (SQLAlchemyError, OSError) as e:
        fail_on_database_error(e, settings)
