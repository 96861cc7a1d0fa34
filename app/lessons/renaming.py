"""Moves learners' work from former names to the present ones, after the lessons were read.

Each feature has a ``Renamer`` for its tables. It runs once for each former name, in each process when that process
first reads the name, and when a server starts. So it finds nothing in almost all cases, and it may run again at any
time: also when a process that has not read the new files yet has stored something under the former name meanwhile.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import structlog
from sqlalchemy import ColumnElement, delete, exists, select, update
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import aliased

from app.db import Base, Database, advisory_lock
from app.lessons.catalog import Catalog
from app.lessons.former_names import Rename, renames_of
from app.web.dependencies import AppKey

_log = structlog.get_logger(__name__)
_RETRY_DELAY_S = 10.0

Renamer = Callable[[AsyncSession, Rename], Awaitable[None]]
"""Moves a feature's rows from a former name to the present one. The caller commits."""
RENAMERS = AppKey[Sequence[Renamer]]("renamers")


class RenameFollower:
    """Moves learners' work whenever the catalog has a new former name. One per process."""

    def __init__(self, catalog: Catalog, db: Database, renamers: Sequence[Renamer]) -> None:
        self._catalog = catalog
        self._db = db
        self._renamers = renamers
        self._done: set[Rename] = set()
        self._reloaded = asyncio.Event()
        self._stopping = False

    def note_reload(self, loop: asyncio.AbstractEventLoop) -> None:
        """The catalog was reloaded, in any thread."""
        if not loop.is_closed():
            loop.call_soon_threadsafe(self._reloaded.set)

    async def run(self) -> None:
        """Follow the catalog until it is stopped. Cancelled in a query, it would leave a SQLite thread behind."""
        while not self._stopping:
            self._reloaded.clear()
            wait_s = None
            try:
                await self.follow()
            except (SQLAlchemyError, OSError) as e:
                wait_s = _RETRY_DELAY_S
                _log.warning("rename_failed", error=str(e), again_in_s=wait_s)
            with suppress(TimeoutError):
                async with asyncio.timeout(0 if self._stopping else wait_s):
                    await self._reloaded.wait()

    def stop(self) -> None:
        """End ``run`` once the present rename is followed."""
        self._stopping = True
        self._reloaded.set()

    async def follow(self) -> None:
        """Move the work of all renames that this process has not followed yet."""
        every = list(renames_of(self._catalog.with_drafts.every()))
        for rename in dict.fromkeys(every):
            if rename not in self._done and not self._stopping:
                await self._move(rename)
                self._done.add(rename)
        self._done &= set(every)

    async def _move(self, rename: Rename) -> None:
        async with self._db.writing() as session:
            await advisory_lock(session, "renaming")
            for renamer in self._renamers:
                await renamer(session, rename)
        _log.info("renamed", what=str(rename))


async def move_rows(
    session: AsyncSession,
    table: type[Base],
    before: Mapping[str, str],
    after: Mapping[str, str],
    *,
    beside: Sequence[str] = (),
    first_by: str = "",
    last_by: str = "",
) -> None:
    """Change the columns ``before`` to ``after`` in all rows that have these values.

    If another row may have the new values already, ``beside`` names the rest of the primary key. Then the row with
    the earlier ``first_by``, or with the later ``last_by``, is kept.
    """
    here, there = _matching(table, before), _matching(table, after)
    quiet = {"synchronize_session": False}
    if beside:
        twin = aliased(table)
        same = [getattr(twin, column) == getattr(table, column) for column in beside]
        mine, other = getattr(table, first_by or last_by), getattr(twin, first_by or last_by)
        better = other <= mine if first_by else other >= mine
        loses = exists(select(1).where(*_matching(twin, after), *same, better).correlate(table))
        await session.execute(delete(table).where(*here, loses).execution_options(**quiet))
        replaced = exists(select(1).where(*_matching(twin, before), *same).correlate(table))
        await session.execute(delete(table).where(*there, replaced).execution_options(**quiet))
    await session.execute(update(table).where(*here).values(**after).execution_options(**quiet))


def _matching(table: Any, values: Mapping[str, str]) -> list[ColumnElement[bool]]:
    return [getattr(table, column) == value for column, value in values.items()]
