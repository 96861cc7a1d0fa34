"""Domain events: a writer publishes a topic, and its subscribers look up what has changed.

Changes to the database use ``publish_on_commit``: the topic is published once the transaction is committed, and not at
all if it rolls back. An event consists only of its topic. With PostgreSQL, ``app.topic_relay`` carries the topics of
commits to the other web processes. Subscribers also poll, to find what they missed.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from sqlalchemy import event
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import Session, SessionTransaction, sessionmaker

_PENDING = "topics to publish"
"""The key in ``Session.info``."""


class Subscription:
    """Lets a subscriber wait for its topic."""

    def __init__(self) -> None:
        self._notified = asyncio.Event()
        self.notified_at = 0.0
        """When it was first notified since the last wait, by the monotonic clock."""

    def notify(self) -> None:
        """Wake the subscriber, now or at its next wait."""
        if not self._notified.is_set():
            self.notified_at = time.monotonic()
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
        self.id = secrets.token_hex(6)
        """Tells the topics of this bus from those of other processes."""
        self._subscriptions: dict[str, set[Subscription]] = {}
        self.closed = False
        """True once the server is shutting down: subscribers stop."""

    def publish(self, topic: str) -> None:
        """Notify every subscriber of the topic now. For a change in the database, use ``publish_on_commit``."""
        for subscription in self._subscriptions.get(topic, ()):
            subscription.notify()

    def publish_all(self) -> None:
        """Notify every subscriber: any topic may have been missed."""
        for topic in self._subscriptions:
            self.publish(topic)

    def close(self) -> None:
        """Notify every subscriber that the server is shutting down."""
        self.closed = True
        self.publish_all()

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
    """Publish a topic once the session's transaction is committed; a rollback, even to a savepoint, drops it.

    Each topic is published once per transaction.
    """
    if not session.in_transaction():
        session.sync_session.begin()  # as its first statement would do
    savepoint = session.sync_session.get_nested_transaction()
    _pending(session.info).setdefault(savepoint, {})[topic] = None


SendTopics = Callable[[Session, Sequence[str]], None]
"""Sends topics to other processes in a session's transaction, so that they arrive if it is committed."""


def publish_commits(sessions: sessionmaker[Session], bus: Bus, send: SendTopics | None = None) -> None:
    """Make the sessions from ``sessions`` publish to ``bus`` and, with ``send``, to other processes."""
    if send is not None:

        @event.listens_for(sessions, "before_commit")
        def _send(session: Session) -> None:
            if session.get_nested_transaction() is None and (topics := _pending(session.info).get(None)):
                send(session, tuple(topics))

    @event.listens_for(sessions, "after_commit")
    def _publish(session: Session) -> None:
        pending = _pending(session.info)
        savepoint = session.get_nested_transaction()
        topics = pending.pop(savepoint, {})
        if savepoint is not None:  # the savepoint was released; the transaction around it may still roll back
            pending.setdefault(_enclosing_savepoint(savepoint), {}).update(topics)
            return
        for topic in topics:
            bus.publish(topic)

    @event.listens_for(sessions, "after_transaction_end")
    def _drop(session: Session, transaction: SessionTransaction) -> None:
        """Drop what is still pending when a transaction ends: it was not committed."""
        if transaction.nested:
            _pending(session.info).pop(transaction, None)
        elif transaction.parent is None:  # a flush has a nested transaction, too
            _pending(session.info).clear()


_Pending = dict[SessionTransaction | None, dict[str, None]]


def _pending(info: dict[Any, Any]) -> _Pending:
    """The pending topics of a session, in order, by the savepoint in which they were published, or None."""
    pending: _Pending = info.setdefault(_PENDING, {})
    return pending


def _enclosing_savepoint(savepoint: SessionTransaction) -> SessionTransaction | None:
    outer = savepoint.parent
    while outer is not None and not outer.nested:
        outer = outer.parent
    return outer
