"""Wake-ups: never needed twice, never kept from a listener."""

from __future__ import annotations

import asyncio

from app.bus import Bus


async def test_a_ring_before_the_wait_is_not_missed() -> None:
    bus = Bus()
    with bus.listen("run") as bell:
        bus.wake("run")
        await asyncio.wait_for(bell.wait(600), 10)


async def test_every_listener_of_a_topic_is_woken_and_no_other() -> None:
    bus = Bus()
    with bus.listen("a") as one, bus.listen("a") as two, bus.listen("b") as other:
        *woken, asleep = [asyncio.create_task(bell.wait(600)) for bell in (one, two, other)]
        await asyncio.sleep(0)
        bus.wake("a")
        await asyncio.wait_for(asyncio.gather(*woken), 10)
        await asyncio.sleep(0)
        assert not asleep.done()
        asleep.cancel()


async def test_without_a_ring_the_wait_ends_by_itself() -> None:
    bus = Bus()
    with bus.listen("a") as bell:
        await bell.wait(0.01)


async def test_closing_wakes_everyone() -> None:
    bus = Bus()
    with bus.listen("a") as bell:
        waiting = asyncio.create_task(bell.wait(60))
        await asyncio.sleep(0)
        bus.close()
        await asyncio.wait_for(waiting, 10)
    assert bus.closed


def test_a_topic_without_listeners_may_be_woken() -> None:
    Bus().wake("nobody")
