"""What one process commits reaches the subscribers of another at once, and is never missed for good."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import pytest
import structlog
from sqlalchemy import make_url, text
from sqlalchemy.exc import TimeoutError as PoolTimeout

from app.bus import Bus, publish_on_commit
from app.db import Database
from app.topic_relay import TopicRelay
from tests.factories.databases import server_url

_PATIENCE_S = 20.0


@pytest.fixture
async def here(migrated_postgresql: str) -> AsyncIterator[Database]:
    """The database as this process uses it."""
    db = Database(migrated_postgresql, connections=2)
    yield db
    await db.close()


@pytest.fixture
async def elsewhere(migrated_postgresql: str) -> AsyncIterator[Database]:
    """The same database as another process uses it."""
    db = Database(migrated_postgresql, connections=2)
    yield db
    await db.close()


@asynccontextmanager
async def relayed(db: Database, listen_url: str = "") -> AsyncIterator[TopicRelay]:
    relay = TopicRelay(db, db.bus, listen_url)
    async with relay.running():
        try:
            yield relay
        finally:
            db.bus.close()


async def commit(db: Database, *topics: str) -> None:
    async with db.session() as session:
        for topic in topics:
            publish_on_commit(session, topic)
        await session.commit()


async def test_a_topic_arrives_in_another_process_when_it_is_committed(here: Database, elsewhere: Database) -> None:
    async with relayed(here) as relay:
        await asyncio.wait_for(relay.delivering.wait(), _PATIENCE_S)
        with here.bus.subscribe("run 1") as run, here.bus.subscribe("run 2") as other:
            await commit(elsewhere, "run 1", "bell")
            assert await run.wait(_PATIENCE_S)
            assert not await other.wait(0)


async def test_a_topic_that_rolls_back_does_not_arrive(here: Database, elsewhere: Database) -> None:
    async with relayed(here) as relay:
        await asyncio.wait_for(relay.delivering.wait(), _PATIENCE_S)
        with here.bus.subscribe("dropped") as dropped, here.bus.subscribe("kept") as kept:
            with suppress(ZeroDivisionError):
                async with elsewhere.writing() as session:
                    publish_on_commit(session, "dropped")
                    raise ZeroDivisionError
            async with elsewhere.writing() as session:
                with suppress(ZeroDivisionError):
                    async with session.begin_nested():
                        publish_on_commit(session, "dropped")
                        raise ZeroDivisionError
                async with session.begin_nested():
                    publish_on_commit(session, "kept")
            assert await kept.wait(_PATIENCE_S)
            assert not await dropped.wait(0)


async def test_our_own_topics_are_published_once(here: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    async with relayed(here) as relay:
        await asyncio.wait_for(relay.delivering.wait(), _PATIENCE_S)
        published: list[str] = []
        monkeypatch.setattr(here.bus, "publish", published.append)
        await commit(here, "run 1")
        assert await relay._hears_itself()  # so the earlier message has arrived, too
        monkeypatch.undo()

    assert published == ["run 1"]


async def test_more_topics_than_fit_into_a_message_arrive(here: Database, elsewhere: Database) -> None:
    topics = [f"notifications {number:032}" for number in range(500)]
    async with relayed(here) as relay:
        await asyncio.wait_for(relay.delivering.wait(), _PATIENCE_S)
        with here.bus.subscribe(topics[0]) as first, here.bus.subscribe(topics[-1]) as last:
            await commit(elsewhere, *topics)
            assert await first.wait(_PATIENCE_S)
            assert await last.wait(_PATIENCE_S)


async def test_after_a_lost_connection_everyone_looks_again_and_topics_arrive(
    here: Database, elsewhere: Database
) -> None:
    async with relayed(here) as relay:
        await asyncio.wait_for(relay.delivering.wait(), _PATIENCE_S)
        with here.bus.subscribe("missed") as missed, here.bus.subscribe("next") as following:
            async with elsewhere.session() as session:
                ended = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE query LIKE 'LISTEN%'"
                assert await session.scalar(text(f"{ended} AND datname = current_database()")) == 1
            assert await missed.wait(_PATIENCE_S)
            assert await following.wait(_PATIENCE_S)
            await commit(elsewhere, "next")
            assert await following.wait(_PATIENCE_S)


async def test_a_connection_that_went_silent_is_replaced_at_once(
    here: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.topic_relay._CHECK_INTERVAL_S", 0.02)
    heard = iter([True, True, False])
    hears_itself = TopicRelay._hears_itself

    async def hear(relay: TopicRelay) -> bool:
        return next(heard, True) and await hears_itself(relay)

    monkeypatch.setattr(TopicRelay, "_hears_itself", hear)
    with structlog.testing.capture_logs() as logs:
        async with relayed(here) as relay:
            await asyncio.wait_for(relay.delivering.wait(), _PATIENCE_S)
            with here.bus.subscribe("missed") as missed:
                assert await missed.wait(_PATIENCE_S)
            await asyncio.wait_for(relay.delivering.wait(), _PATIENCE_S)

    assert [line["log_level"] for line in logs] == ["info"]


async def test_with_every_connection_in_use_it_goes_on_listening(
    here: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.topic_relay._CHECK_INTERVAL_S", 0.02)
    asked = asyncio.Semaphore(0)
    hears_itself = TopicRelay._hears_itself

    async def hear(relay: TopicRelay) -> bool:
        if not relay.delivering.is_set():
            return await hears_itself(relay)
        asked.release()
        raise PoolTimeout

    monkeypatch.setattr(TopicRelay, "_hears_itself", hear)
    with structlog.testing.capture_logs() as logs:
        async with relayed(here) as relay:
            for _ in range(3):
                await asyncio.wait_for(asked.acquire(), _PATIENCE_S)
            assert relay.delivering.is_set()

    assert [line["log_level"] for line in logs] == ["info"]


async def test_where_nothing_is_delivered_the_log_says_once_that_changes_arrive_late(
    here: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.topic_relay._ARRIVAL_TIMEOUT_S", 0.05)
    monkeypatch.setattr("app.topic_relay._UNDELIVERED_PAUSE_S", 0.01)
    another = server_url().render_as_string(hide_password=False)
    assert make_url(another).database != make_url(here.url).database, "messages stay within a database"
    attempts = asyncio.Semaphore(0)
    hears_itself = TopicRelay._hears_itself

    async def count(relay: TopicRelay) -> bool:
        attempts.release()
        return await hears_itself(relay)

    monkeypatch.setattr(TopicRelay, "_hears_itself", count)
    with structlog.testing.capture_logs() as logs:
        async with relayed(here, another) as relay:
            for _ in range(3):
                await asyncio.wait_for(attempts.acquire(), _PATIENCE_S)
            assert not relay.delivering.is_set()

    told = [line for line in logs if line["log_level"] == "warning"]
    assert len(told) == 1
    assert "LOCKSTEP_DATABASE_LISTEN_URL" in told[0]["event"]


async def test_a_pooler_is_named_in_the_log_also_if_the_database_was_away_before(
    here: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.topic_relay._ARRIVAL_TIMEOUT_S", 0.05)
    monkeypatch.setattr("app.topic_relay._FIRST_PAUSE_S", 0.01)
    monkeypatch.setattr("app.topic_relay._UNDELIVERED_PAUSE_S", 0.01)
    another = server_url().render_as_string(hide_password=False)
    attempts = asyncio.Semaphore(0)
    hears_itself = TopicRelay._hears_itself
    away = iter([True, True])

    async def start_late(relay: TopicRelay) -> bool:
        if next(away, False):
            raise ConnectionRefusedError
        attempts.release()
        return await hears_itself(relay)

    monkeypatch.setattr(TopicRelay, "_hears_itself", start_late)
    with structlog.testing.capture_logs() as logs:
        async with relayed(here, another):
            for _ in range(3):
                await asyncio.wait_for(attempts.acquire(), _PATIENCE_S)

    told = [line["event"] for line in logs if line["log_level"] == "warning"]
    assert len(told) == 2
    assert "no connection can LISTEN" in told[0]
    assert "LOCKSTEP_DATABASE_LISTEN_URL" in told[1]


async def test_without_postgresql_there_is_nothing_to_listen_to(migrated_file: object) -> None:
    db = Database(f"sqlite+aiosqlite:///{migrated_file}")
    try:
        async with TopicRelay(db, Bus()).running():
            pass
    finally:
        await db.close()
