"""Carries topics from other processes to this one, over PostgreSQL's LISTEN.

Each web process has one connection of its own for it, besides the pool. When that connection is lost, messages are
lost with it: once another one listens, every subscriber is notified and looks again. A pooler in transaction mode
accepts LISTEN but delivers nothing, so the relay sends itself a message through the pool now and then. As long as none
arrives, this process learns of other processes' commits by polling only, and its log says so.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import structlog
from asyncpg.exceptions import InterfaceError, PostgresError
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.ext.asyncio import create_async_engine
from sqlalchemy.pool import NullPool

from app.bus import Bus, Subscription
from app.database_health import first_line
from app.db import WITHOUT_PREPARED_STATEMENTS, Database
from app.topic_messages import CHANNEL, SEND, decode_message, encode_topics

_FIRST_PAUSE_S = 0.1
_LONGEST_PAUSE_S = 5.0
_CHECK_INTERVAL_S = 30.0
"""A connection that the network has cut without a word is found after this time."""
_CONNECT_TIMEOUT_S = 10.0
_ARRIVAL_TIMEOUT_S = 10.0
"""How long our own message may take."""
_UNDELIVERED_PAUSE_S = 60.0
"""Until we try again where nothing is delivered."""
_AT_ONCE = "changes by other web processes arrive at once, by LISTEN"
_NOTHING_ARRIVES = (
    "nothing arrives by LISTEN. Behind a pooler in transaction mode, set LOCKSTEP_DATABASE_LISTEN_URL to an address of "
    "PostgreSQL itself"
)
_TOPIC = "topic relay"
"""Never published: the subscription ends a wait when the bus closes or the connection is lost."""

_log = structlog.get_logger("relay")


class TopicRelay:
    """Listens for the topics of other processes until the bus is closed. Does nothing with SQLite."""

    def __init__(self, db: Database, bus: Bus, listen_url: str = "") -> None:
        """``listen_url`` leads to the database without a pooler; if empty, the database's own URL is used."""
        self._db = db
        self._bus = bus
        self._url = listen_url or db.url
        self._own_message = asyncio.Event()
        self._told: set[str] = set()
        """What the log says of the present: that topics arrive at once, or each reason why they are late."""
        self.delivering = asyncio.Event()
        """Set while messages arrive."""

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Listen inside the block. The bus must be closed when it is left."""
        if self._db.file() is not None:
            yield
            return
        listening = asyncio.create_task(self.run())
        try:
            yield
        finally:
            await listening

    async def run(self) -> None:
        """Listen until the bus is closed, on one connection after another."""
        pause_s = _FIRST_PAUSE_S
        connect_args = WITHOUT_PREPARED_STATEMENTS | {"timeout": _CONNECT_TIMEOUT_S}
        engine = create_async_engine(self._url, poolclass=NullPool, connect_args=connect_args)
        with self._bus.subscribe(_TOPIC) as wake:
            while not self._bus.closed:
                try:
                    async with engine.connect() as connection:
                        driver: Any = (await connection.get_raw_connection()).driver_connection
                        try:
                            pause_s = _FIRST_PAUSE_S if await self._listen(driver, wake) else _UNDELIVERED_PAUSE_S
                        finally:  # a silent server would never confirm the end of the connection
                            await connection.invalidate()
                except (SQLAlchemyError, OSError, PostgresError, InterfaceError) as e:
                    self._tell_late("no connection can LISTEN", first_line(e))
                    pause_s = min(pause_s * 2, _LONGEST_PAUSE_S)
                self.delivering.clear()
                if not self._bus.closed:
                    await wake.wait(pause_s * random.uniform(0.5, 1))  # noqa: S311 - it only spreads the processes

    async def _listen(self, driver: Any, wake: Subscription) -> bool:
        """Listen until the connection ends. False if nothing was ever delivered on it."""
        driver.add_termination_listener(lambda _driver: wake.notify())
        await driver.add_listener(CHANNEL, self._receive)
        while not self._bus.closed and not driver.is_closed():
            if not await self._is_delivering():
                if not (self.delivering.is_set() or driver.is_closed()):
                    self._tell_late(_NOTHING_ARRIVES, "a message of our own did not arrive")
                    return False
                break
            if not self.delivering.is_set():
                self.delivering.set()
                self._tell_delivered()
                self._bus.publish_all()
            await wake.wait(_CHECK_INTERVAL_S)
        return True

    async def _is_delivering(self) -> bool:
        """Whether a message of our own arrives. While all connections are in use, believe that it would."""
        try:
            return await self._hears_itself()
        except PoolTimeout:
            if not self.delivering.is_set():
                raise
            return True

    async def _hears_itself(self) -> bool:
        """Send a message through the pool, and wait for it here."""
        self._own_message.clear()
        async with self._db.session() as session:
            await session.execute(SEND, {"channel": CHANNEL, "messages": list(encode_topics(self._bus.id, ()))})
            await session.commit()
        try:
            async with asyncio.timeout(_ARRIVAL_TIMEOUT_S):
                await self._own_message.wait()
        except TimeoutError:
            return False
        return True

    def _receive(self, _driver: object, _pid: int, _channel: str, content: object) -> None:
        message = decode_message(str(content))
        if message.sender == self._bus.id:  # its topics were published here at once
            self._own_message.set()
            return
        for topic in message.topics:
            self._bus.publish(topic)

    def _tell_delivered(self) -> None:
        if _AT_ONCE not in self._told:
            self._told = {_AT_ONCE}
            _log.info(_AT_ONCE)

    def _tell_late(self, why: str, reason: str) -> None:
        if why not in self._told:
            self._told = self._told - {_AT_ONCE} | {why}
            _log.warning(f"changes by other web processes arrive late, by polling: {why}", reason=reason)
