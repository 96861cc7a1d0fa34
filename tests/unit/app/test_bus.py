"""Wake-ups: never needed twice, never kept from a listener."""

from __future__ import annotations

import asyncio
import time

from app.bus import Bus


async def test_a_ring_before_the_wait_is_not_missed() -> None:
    bus = Bus()
    with bus.listen("run") as bell:
        bus.wake("run")
        begin = time.monotonic()
        await bell.wait(5)
    assert time.monotonic() - begin < 1


async def test_every_listener_of_a_topic_is_woken_and_no_other() -> None:
    bus = Bus()
    with bus.listen("a") as one, bus.listen("a") as two, bus.listen("b") as other:
        waits = [asyncio.create_task(bell.wait(0.2)) for bell in (one, two, other)]
        await asyncio.sleep(0)
        bus.wake("a")
        await asyncio.sleep(0.05)
        assert [task.done() for task in waits] == [True, True, False]
        await asyncio.gather(*waits)


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
        await asyncio.wait_for(waiting, 1)
    assert bus.closed


def test_a_topic_without_listeners_may_be_woken() -> None:
    Bus().wake("nobody")
