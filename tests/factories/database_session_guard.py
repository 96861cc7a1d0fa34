"""One database session for each task at a time, checked while a test runs.

A task that opens a second session while it holds one takes two connections of a bounded pool. Enough such tasks at once
take every connection and wait for each other until the pool's time-out, which no test with a handful of requests shows.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import pytest
from sqlalchemy.ext.asyncio import AsyncSession

from app.db import Database

Opener = Callable[[Database], AbstractAsyncContextManager[AsyncSession]]


class SecondSession(AssertionError):
    """A task has opened a second session while it holds one."""


def allow_one_session_per_task(monkeypatch: pytest.MonkeyPatch) -> list[SecondSession]:
    """Make every second session of a task an error. Returns the errors, because the application may catch them."""
    holders: set[asyncio.Task[Any] | None] = set()
    errors: list[SecondSession] = []

    def guarded(opened: Opener) -> Opener:
        @asynccontextmanager
        async def open_session(self: Database) -> AsyncIterator[AsyncSession]:
            task = asyncio.current_task()
            if task in holders:
                errors.append(SecondSession(f"{task} opens a database session while it holds another"))
                raise errors[-1]
            holders.add(task)
            try:
                async with opened(self) as session:
                    yield session
            finally:
                holders.discard(task)

        return open_session

    for name in ("session", "writing"):
        monkeypatch.setattr(Database, name, guarded(getattr(Database, name)))
    return errors
