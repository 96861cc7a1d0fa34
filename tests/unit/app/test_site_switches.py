"""Site switches: in the database, so that every web process follows them."""

from __future__ import annotations

import asyncio

import pytest
from sqlalchemy.exc import OperationalError

from app.bus import Bus
from app.db import Database, now
from app.site_switches import Switch, SwitchStates, is_on, turn


async def test_a_switch_is_turned_on_once_and_off_once(database: Database) -> None:
    for on in (True, False):
        for changed in (True, False):
            async with database.writing() as session:
                assert await turn(session, Switch.maintenance, on=on) is changed
                assert await is_on(session, Switch.maintenance) is on
                assert not await is_on(session, Switch.drain)


async def test_two_admins_who_turn_it_on_at_once_do_not_fail(database: Database) -> None:
    async def turn_on() -> None:
        async with database.writing() as session:
            await turn(session, Switch.maintenance, on=True)

    await asyncio.gather(*(turn_on() for _ in range(5)))


async def test_a_process_knows_a_switch_and_since_when(database: Database) -> None:
    states = SwitchStates()
    await states.refresh(database)
    assert (states.since(Switch.maintenance), states.edition) == (None, "")
    async with database.writing() as session:
        await turn(session, Switch.maintenance, on=True)
    await states.refresh(database)

    since = states.since(Switch.maintenance)
    assert since is not None
    assert abs((now() - since).total_seconds()) < 60
    assert states.edition == "maintenance"


async def test_a_change_in_the_same_process_is_followed_at_once(database: Database) -> None:
    states, bus = SwitchStates(), database.bus
    following = asyncio.create_task(states.follow(database, bus))
    async with database.writing() as session:
        await turn(session, Switch.drain, on=True)
    async with asyncio.timeout(20):
        while states.since(Switch.drain) is None:  # noqa: ASYNC110 - the follower is a task beside us
            await asyncio.sleep(0.01)
    bus.close()
    await following


async def test_a_switch_stays_on_while_the_database_is_down(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    states, bus, failed = SwitchStates(), Bus(), asyncio.Event()
    async with database.writing() as session:
        await turn(session, Switch.maintenance, on=True)
    await states.refresh(database)

    async def fail(db: Database) -> None:
        failed.set()
        raise OperationalError("SELECT", None, Exception("down"))

    monkeypatch.setattr(states, "refresh", fail)
    following = asyncio.create_task(states.follow(database, bus))
    await failed.wait()
    bus.close()
    await following
    assert states.since(Switch.maintenance) is not None
