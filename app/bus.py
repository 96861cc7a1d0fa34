"""Domain events inside one process: a writer publishes a topic, and its subscribers look for what has changed.

A change in the database publishes with ``publish_on_commit``: its topic goes out once the transaction is committed, and
never if it rolls back. An event carries nothing but its topic, and stays in the process: what another web process has
committed, and whatever else was missed, subscribers find at their next poll.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sqlalchemy import event
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import Session, SessionTransaction, sessionmaker

_PENDING = "topics to publish"
"""The key in ``Session.info``."""


class Subscription:
    """What a subscriber waits on."""

    def __init__(self) -> None:
        self._notified = asyncio.Event()

    def notify(self) -> None:
        """Wake the subscriber, now or at its next wait."""
        self._notified.set()

    async def wait(self, at_most_s: float) -> bool:
        """Return True when notified since the last wait, or False after ``at_most_s`` seconds."""
        try:
            async with asyncio.timeout(at_most_s):
                await self._notified.wait()
        except TimeoutError:
            return False
        self._notified.clear()
        return True


class Bus:
    """Topics and their subscribers."""

    def __init__(self) -> None:
        self._subscriptions: dict[str, set[Subscription]] = {}
        self.closed = False
        """True once the server is shutting down: subscribers stop."""

    def publish(self, topic: str) -> None:
        """Notify every subscriber of the topic now. For a change in the database, use ``publish_on_commit``."""
        for subscription in self._subscriptions.get(topic, ()):
            subscription.notify()

    def close(self) -> None:
        """Notify every subscriber that the server is shutting down."""
        self.closed = True
        for topic in self._subscriptions:
            self.publish(topic)

    @contextmanager
    def subscribe(self, topic: str) -> Iterator[Subscription]:
        """Receive the topic, and the end of the bus, while the block lasts."""
        subscription = Subscription()
        self._subscriptions.setdefault(topic, set()).add(subscription)
        try:
            yield subscription
        finally:
            subscriptions = self._subscriptions[topic]
            subscriptions.discard(subscription)
            if not subscriptions:
                del self._subscriptions[topic]


def publish_on_commit(session: AsyncSession, topic: str) -> None:
    """Publish a topic once the session's transaction is committed; a rollback, also to a savepoint, drops it.

    Published several times in one transaction, a topic goes out once.
    """
    if not session.in_transaction():
        session.sync_session.begin()  # as its first statement would
    savepoint = session.sync_session.get_nested_transaction()
    _pending(session.info).setdefault(savepoint, {})[topic] = None


def publish_commits(sessions: sessionmaker[Session], bus: Bus) -> None:
    """Have the sessions that ``sessions`` makes publish to ``bus``."""

    @event.listens_for(sessions, "after_commit")
    def _publish(session: Session) -> None:
        pending = _pending(session.info)
        savepoint = session.get_nested_transaction()
        topics = pending.pop(savepoint, {})
        if savepoint is not None:  # it is released; the transaction around it may still roll back
            pending.setdefault(_enclosing_savepoint(savepoint), {}).update(topics)
            return
        for topic in topics:
            bus.publish(topic)

    @event.listens_for(sessions, "after_transaction_end")
    def _drop(session: Session, transaction: SessionTransaction) -> None:
        """What is still pending when a transaction ends was not committed."""
        if transaction.nested:
            _pending(session.info).pop(transaction, None)
        elif transaction.parent is None:  # a flush has a transaction too, inside that of the session
            _pending(session.info).clear()


_Pending = dict[SessionTransaction | None, dict[str, None]]


def _pending(info: dict[Any, Any]) -> _Pending:
    """The topics of a session, in order, by the savepoint in which they were published; by None outside of any."""
    pending: _Pending = info.setdefault(_PENDING, {})
    return pending


def _enclosing_savepoint(savepoint: SessionTransaction) -> SessionTransaction | None:
    outer = savepoint.parent
    while outer is not None and not outer.nested:
        outer = outer.parent
    return outer
