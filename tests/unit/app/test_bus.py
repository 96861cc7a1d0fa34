"""Events are sent once the change they announce is committed, never earlier and never without it."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import pytest
from sqlalchemy import Connection, event

from app.bus import Bus, publish_on_commit
from app.db import Database, now
from app.progress.models import LearnerTimeZone


async def test_an_event_before_the_wait_is_not_missed() -> None:
    bus = Bus()
    with bus.subscribe("run") as subscription:
        bus.publish("run")
        assert await subscription.wait(600)


async def test_every_subscriber_of_a_topic_is_notified_and_no_other() -> None:
    bus = Bus()
    with bus.subscribe("a") as one, bus.subscribe("a") as two, bus.subscribe("b") as other:
        bus.publish("a")
        assert [await each.wait(0) for each in (one, two, other)] == [True, True, False]


async def test_without_an_event_the_wait_ends_by_itself() -> None:
    bus = Bus()
    with bus.subscribe("a") as subscription:
        assert not await subscription.wait(0.01)


async def test_one_event_ends_one_wait() -> None:
    bus = Bus()
    with bus.subscribe("a") as subscription:
        bus.publish("a")
        assert [await subscription.wait(0) for _ in range(2)] == [True, False]


async def test_closing_notifies_everyone() -> None:
    bus = Bus()
    with bus.subscribe("a") as subscription:
        waiting = asyncio.create_task(subscription.wait(60))
        await asyncio.sleep(0)
        bus.close()
        assert await asyncio.wait_for(waiting, 10)
    assert bus.closed


def test_a_topic_without_subscribers_may_be_published() -> None:
    Bus().publish("nobody")


# --- with the commit of a session -------------------------------------------------------------------------------------


async def test_a_session_publishes_when_it_has_committed_and_not_before(database: Database) -> None:
    with database.bus.subscribe("a") as subscription:
        async with database.session() as session:
            publish_on_commit(session, "a")
            session.add(LearnerTimeZone(learner_id="me", time_zone="UTC", updated_at=now()))
            await session.flush()
            assert not await subscription.wait(0)
            await session.commit()
            assert await subscription.wait(0)
            await session.commit()
            assert not await subscription.wait(0)


async def test_an_event_of_a_transaction_is_sent_once(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[str] = []
    monkeypatch.setattr(database.bus, "publish", sent.append)
    async with database.writing() as session:
        for topic in ("b", "a", "b"):
            publish_on_commit(session, topic)
    assert sent == ["b", "a"]


async def test_what_rolls_back_publishes_nothing(database: Database) -> None:
    with database.bus.subscribe("a") as subscription:
        async with database.session() as session:
            publish_on_commit(session, "a")
            await session.rollback()
            await session.commit()
        with suppress(ZeroDivisionError):
            async with database.writing() as session:
                publish_on_commit(session, "a")
                raise ZeroDivisionError
        async with database.session() as session:
            publish_on_commit(session, "a")
        assert not await subscription.wait(0)


async def test_a_commit_that_fails_publishes_nothing(database: Database) -> None:
    def fail(_connection: Connection) -> None:
        raise OSError("the disk is gone")

    event.listen(database.engine.sync_engine, "commit", fail)
    with database.bus.subscribe("a") as subscription:
        async with database.session() as session:
            session.add(LearnerTimeZone(learner_id="me", time_zone="UTC", updated_at=now()))
            publish_on_commit(session, "a")
            with pytest.raises(OSError, match="the disk is gone"):
                await session.commit()
            event.remove(database.engine.sync_engine, "commit", fail)
            await session.rollback()
            await session.commit()
        assert not await subscription.wait(0)


async def test_a_savepoint_that_rolls_back_drops_its_own_events_only(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[str] = []
    monkeypatch.setattr(database.bus, "publish", sent.append)
    async with database.writing() as session:
        publish_on_commit(session, "outside")
        with suppress(ZeroDivisionError):
            async with session.begin_nested():
                publish_on_commit(session, "dropped")
                async with session.begin_nested():
                    publish_on_commit(session, "dropped with it")
                raise ZeroDivisionError
        async with session.begin_nested():
            publish_on_commit(session, "kept")
            async with session.begin_nested():
                publish_on_commit(session, "kept with it")
            assert sent == []
        assert sent == []
    assert sent == ["outside", "kept", "kept with it"]


async def test_a_savepoint_that_was_released_goes_with_its_transaction(database: Database) -> None:
    with database.bus.subscribe("a") as subscription:
        async with database.session() as session:
            async with session.begin_nested():
                publish_on_commit(session, "a")
            await session.rollback()
            await session.commit()
        assert not await subscription.wait(0)
