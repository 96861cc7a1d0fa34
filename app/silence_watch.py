"""Notices that PostgreSQL is silent: its machine is frozen, or the network drops what goes between.

Such a server refuses nothing, so that each statement would last until its limit of a minute. Whoever has held a session
for long therefore makes this process ask the server on a connection of its own. As long as that gets no answer, no
connection of the pool is worth waiting for: all are closed, and every use of the database fails at once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from weakref import WeakSet

from sqlalchemy import text
from sqlalchemy.exc import OperationalError, SQLAlchemyError
from sqlalchemy.ext.asyncio import create_async_engine
from sqlalchemy.pool import NullPool

PATIENCE_S = 5.0
"""How long a session may last before the server is asked."""
ANSWER_TIMEOUT_S = 5.0
"""How long the server may take to accept a connection and answer. A busy one needs far less than a second."""
_PAUSE_S = 1.0
"""Between two questions to a silent server."""
_NO_ANSWER = f"the server has not answered for {PATIENCE_S + ANSWER_TIMEOUT_S:g} s"


class SilenceWatch:
    """Watches the server of one ``Database``."""

    def __init__(self, url: str) -> None:
        limits = {"timeout": ANSWER_TIMEOUT_S, "command_timeout": ANSWER_TIMEOUT_S}
        self._engine = create_async_engine(url, poolclass=NullPool, connect_args=limits)
        self._connections: WeakSet[Any] = WeakSet()
        self._asking: asyncio.Task[None] | None = None
        self._silent = False

    def add(self, connection: Any) -> None:
        """Close this connection of asyncpg when the server is silent."""
        self._connections.add(connection)

    def check(self) -> None:
        """Raise an ``OperationalError`` while the server is silent."""
        if self._silent:
            raise OperationalError(None, None, ConnectionError(_NO_ANSWER))

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Use the database inside the block. If that takes long, the server is asked."""
        self.check()
        timer = asyncio.get_running_loop().call_later(PATIENCE_S, self._ask)
        try:
            yield
        finally:
            timer.cancel()

    async def close(self) -> None:
        """Stop asking."""
        if self._asking is not None:
            self._asking.cancel()
            await asyncio.wait([self._asking])

    def _ask(self) -> None:
        if self._asking is None or self._asking.done():
            self._asking = asyncio.create_task(self._ask_until_answered())

    async def _ask_until_answered(self) -> None:
        try:
            while not await self._answers():
                self._silent = True
                for connection in list(self._connections):
                    connection.terminate()
                await asyncio.sleep(_PAUSE_S)
        finally:
            self._silent = False

    async def _answers(self) -> bool:
        """Whether the server answers. That it refuses is an answer, too."""
        try:
            async with asyncio.timeout(ANSWER_TIMEOUT_S), self._engine.connect() as connection:
                await connection.execute(text("SELECT 1"))
        except OSError:  # no connection, or the time is over
            return False
        except SQLAlchemyError as e:
            return not isinstance(getattr(e, "orig", None), OSError)
        return True
