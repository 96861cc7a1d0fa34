"""Live streams: what SQL holds, in order, each event once, whatever breaks."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import httpx
import pytest
from fastapi import FastAPI

from app.main import create_app
from app.settings import Settings
from runners.protocol import SessionState
from tests.factories.browser import press_run
from tests.factories.server import serving
from tests.factories.stream import Frame, opened, parse, text_of
from tests.factories.supervisor import Supervisor


@pytest.fixture
async def page(supervisor: Supervisor, settings: Settings) -> AsyncIterator[httpx.AsyncClient]:
    """A browser at a real server."""
    async with serving(create_app(settings)) as client:
        yield client


async def _next(frames: AsyncIterator[Frame], event: str) -> Frame:
    async with asyncio.timeout(10):
        async for frame in frames:
            if frame.event == event:
                return frame
    raise AssertionError(f"the stream ended without {event}")


async def test_output_arrives_while_the_run_goes_on(page: httpx.AsyncClient, supervisor: Supervisor) -> None:
    run = await press_run(page)
    scripted = await supervisor.run(run["id"])

    async with opened(page, run["urls"]["stream"]) as frames:
        await supervisor.say(scripted, "early\n")
        early = await _next(frames, "text")
        assert (early.id, early.data["text"]) == (1, "early\n")
        await supervisor.say(scripted, "late\n")
        assert (await _next(frames, "text")).id == 2
        await supervisor.finish(scripted)
        assert (await _next(frames, "finished")).data["outcome"] == "ok"


async def test_a_stream_resumes_behind_the_last_event_id(client: httpx.AsyncClient, supervisor: Supervisor) -> None:
    supervisor.answer = ["a", "b", "c"]
    run = await press_run(client)

    whole = parse((await client.get(run["urls"]["stream"])).text)
    rest = parse((await client.get(run["urls"]["stream"], headers={"last-event-id": "3"})).text)
    same = parse((await client.get(run["urls"]["stream"], params={"after": 3})).text)

    assert [frame.id for frame in whole] == [1, 2, 3, 4, 5]
    assert text_of(whole) == "abc"
    assert rest == same == whole[3:]


async def test_a_stream_that_was_seen_to_its_end_tells_the_browser_not_to_come_back(
    client: httpx.AsyncClient, supervisor: Supervisor
) -> None:
    supervisor.answer = []
    run = await press_run(client)
    await client.get(run["urls"]["stream"])

    assert (await client.get(run["urls"]["stream"], headers={"last-event-id": "2"})).status_code == 204


async def test_a_stream_says_that_it_must_not_be_kept_or_held_back(
    client: httpx.AsyncClient, supervisor: Supervisor
) -> None:
    supervisor.answer = []
    run = await press_run(client)

    stream = await client.get(run["urls"]["stream"], headers={"accept-encoding": "gzip"})

    assert stream.headers["content-type"].startswith("text/event-stream")
    assert stream.headers["cache-control"] == "no-cache"
    assert stream.headers["x-accel-buffering"] == "no"
    assert "content-encoding" not in stream.headers


async def test_a_waiting_run_says_where_it_stands(page: httpx.AsyncClient, supervisor: Supervisor) -> None:
    supervisor.session_state = SessionState.queued
    run = await press_run(page)

    async with opened(page, run["urls"]["stream"]) as frames:
        state = await _next(frames, "state")

    assert state.id is None
    assert state.data == {"state": "queued", "position": 3, "ahead": 0}


async def test_a_run_behind_another_says_how_many_come_first(page: httpx.AsyncClient, supervisor: Supervisor) -> None:
    await press_run(page)
    run = await press_run(page)

    async with opened(page, run["urls"]["stream"]) as frames:
        state = await _next(frames, "state")

    assert (state.data["state"], state.data["ahead"]) == ("queued", 1)


async def test_a_stream_says_that_the_runner_is_away_and_goes_on_when_it_is_back(
    page: httpx.AsyncClient, supervisor: Supervisor
) -> None:
    run = await press_run(page)
    scripted = await supervisor.run(run["id"])
    await supervisor.say(scripted, "before ")

    async with opened(page, run["urls"]["stream"]) as frames:
        await _next(frames, "text")
        await supervisor.stop()
        while (await _next(frames, "state")).data["state"] != "reconnecting":
            pass
        await supervisor.start()
        assert (await _next(frames, "state")).data["state"] == "queued"
        await supervisor.say(scripted, "after")
        assert (await _next(frames, "text")).data["text"] == "after"


async def test_open_streams_end_at_once_when_the_server_goes_down(supervisor: Supervisor, settings: Settings) -> None:
    loop = asyncio.get_running_loop()
    async with serving(create_app(settings)) as page:
        run = await press_run(page)
        async with opened(page, run["urls"]["stream"]) as frames:
            await supervisor.say(await supervisor.run(run["id"]), "x")
            await _next(frames, "text")
            begin = loop.time()
    assert loop.time() - begin < 2


async def test_a_browser_that_leaves_does_not_disturb_the_run(page: httpx.AsyncClient, supervisor: Supervisor) -> None:
    run = await press_run(page)
    scripted = await supervisor.run(run["id"])
    async with opened(page, run["urls"]["stream"]) as frames:
        await supervisor.say(scripted, "a")
        await _next(frames, "text")

    await supervisor.say(scripted, "b")
    await supervisor.finish(scripted)

    rest = parse((await page.get(run["urls"]["stream"], params={"after": 1})).text)
    assert text_of(rest) == "b"


async def test_two_processes_on_one_database_each_stream_every_event_once(
    supervisor: Supervisor, settings: Settings
) -> None:
    async with serving(create_app(settings)) as one, serving(create_app(settings)) as other:
        run = await press_run(one)
        scripted = await supervisor.run(run["id"])
        other.cookies.update(one.cookies)
        both = asyncio.gather(*(page.get(run["urls"]["stream"]) for page in (one, other)))
        for number in range(300):
            await supervisor.say(scripted, f"{number}\n")
            if number % 50 == 0:
                await asyncio.sleep(0.06)
            if number == 150:
                await supervisor.break_streams()
        await supervisor.finish(scripted)

        for response in await both:
            frames = [frame for frame in parse(response.text) if frame.event != "state"]
            assert [frame.id for frame in frames] == list(range(1, 302))
            assert text_of(frames) == "".join(f"{number}\n" for number in range(300))


async def test_a_restart_of_the_web_process_loses_and_doubles_nothing(
    supervisor: Supervisor, settings: Settings
) -> None:
    async with serving(create_app(settings)) as before:
        run = await press_run(before)
        scripted = await supervisor.run(run["id"])
        await supervisor.say(scripted, "one ", "two ")
        async with opened(before, run["urls"]["stream"]) as frames:
            await _next(frames, "text")
            seen = (await _next(frames, "text")).id
        cookies = before.cookies
    await supervisor.say(scripted, "three ")
    async with serving(create_app(settings)) as after:
        after.cookies.update(cookies)
        await supervisor.say(scripted, "four")
        await supervisor.finish(scripted)
        rest = await after.get(run["urls"]["stream"], headers={"last-event-id": str(seen)})
        whole = (await after.get(run["urls"]["events"])).json()["events"]

    assert text_of(parse(rest.text)) == "three four"
    assert "".join(event.get("text", "") for event in whole) == "one two three four"
    assert supervisor.submitted == [run["id"]]


async def test_streams_of_a_run_nobody_follows_are_followed(
    app: FastAPI, client: httpx.AsyncClient, supervisor: Supervisor
) -> None:
    run = await press_run(client)
    await app.state.desk.pump.close()  # as if this process had not started the run
    scripted = await supervisor.run(run["id"])
    await supervisor.say(scripted, "x")
    await supervisor.finish(scripted)

    assert text_of(parse((await client.get(run["urls"]["stream"])).text)) == "x"
