"""Live streams: the content of the database, in order, each event once, whatever breaks."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import httpx
import pytest
from fastapi import FastAPI

from app.errors import TooManyRequests
from app.main import create_app
from app.runs.models import Run
from app.runs.stream import MAX_STREAMS_PER_LEARNER, STREAMS_PER_VISITOR
from app.settings import Settings
from runners.wire.protocol import SessionState
from tests.factories.browser_client import press_run
from tests.factories.http_server import serving
from tests.factories.scripted_supervisor import ScriptedSupervisor
from tests.factories.sse_client import ReceivedEvent, live_stream, parse_events, printed_text


@pytest.fixture
async def page(supervisor: ScriptedSupervisor, settings: Settings) -> AsyncIterator[httpx.AsyncClient]:
    """A browser on a real server."""
    async with serving(create_app(settings)) as client:
        yield client


async def _next(frames: AsyncIterator[ReceivedEvent], event: str) -> ReceivedEvent:
    async with asyncio.timeout(10):
        async for frame in frames:
            if frame.event == event:
                return frame
    raise AssertionError(f"the stream ended without {event}")


async def test_output_arrives_while_the_run_goes_on(page: httpx.AsyncClient, supervisor: ScriptedSupervisor) -> None:
    run = await press_run(page)
    scripted = await supervisor.run(run["id"])

    async with live_stream(page, run["urls"]["stream"]) as frames:
        await supervisor.say(scripted, "early\n")
        early = await _next(frames, "text")
        assert (early.id, early.data["text"]) == (1, "early\n")
        await supervisor.say(scripted, "late\n")
        assert (await _next(frames, "text")).id == 2
        await supervisor.finish(scripted)
        assert (await _next(frames, "finished")).data["outcome"] == "ok"


async def test_a_stream_resumes_behind_the_last_event_id(
    client: httpx.AsyncClient, supervisor: ScriptedSupervisor
) -> None:
    supervisor.answer = ["a", "b", "c"]
    run = await press_run(client)

    told = parse_events((await client.get(run["urls"]["stream"])).text)
    whole = [frame for frame in told if frame.event != "state"]  # the run may still have been queued
    rest = parse_events((await client.get(run["urls"]["stream"], headers={"last-event-id": "3"})).text)
    same = parse_events((await client.get(run["urls"]["stream"], params={"after": 3})).text)

    assert [frame.id for frame in whole] == [1, 2, 3, 4, 5]
    assert printed_text(whole) == "abc"
    assert rest == same == whole[3:]


async def test_a_stream_that_was_seen_to_its_end_tells_the_browser_not_to_come_back(
    client: httpx.AsyncClient, supervisor: ScriptedSupervisor
) -> None:
    supervisor.answer = []
    run = await press_run(client)
    await client.get(run["urls"]["stream"])

    assert (await client.get(run["urls"]["stream"], headers={"last-event-id": "2"})).status_code == 204


async def test_a_stream_says_that_it_must_not_be_kept_or_held_back(
    client: httpx.AsyncClient, supervisor: ScriptedSupervisor
) -> None:
    supervisor.answer = []
    run = await press_run(client)

    stream = await client.get(run["urls"]["stream"], headers={"accept-encoding": "gzip"})

    assert stream.headers["content-type"].startswith("text/event-stream")
    assert stream.headers["cache-control"] == "no-store"
    assert stream.headers["x-accel-buffering"] == "no"
    assert "content-encoding" not in stream.headers


async def test_a_waiting_run_says_where_it_stands(page: httpx.AsyncClient, supervisor: ScriptedSupervisor) -> None:
    supervisor.session_state = SessionState.queued
    run = await press_run(page)

    async with live_stream(page, run["urls"]["stream"]) as frames:
        state = await _next(frames, "state")

    assert state.id is None
    assert state.data == {"state": "queued", "position": 3, "ahead": 0, "wait_s": None}


async def test_a_run_behind_another_says_how_many_come_first(
    page: httpx.AsyncClient, supervisor: ScriptedSupervisor
) -> None:
    await press_run(page)
    run = await press_run(page)

    async with live_stream(page, run["urls"]["stream"]) as frames:
        state = await _next(frames, "state")

    assert (state.data["state"], state.data["ahead"]) == ("queued", 1)


async def test_a_stream_says_that_the_runner_is_away_and_goes_on_when_it_is_back(
    page: httpx.AsyncClient, supervisor: ScriptedSupervisor
) -> None:
    run = await press_run(page)
    scripted = await supervisor.run(run["id"])
    await supervisor.say(scripted, "before ")

    async with live_stream(page, run["urls"]["stream"]) as frames:
        await _next(frames, "text")
        await supervisor.stop()
        while (await _next(frames, "state")).data["state"] != "reconnecting":
            pass
        await supervisor.start()
        assert (await _next(frames, "state")).data["state"] == "queued"
        await supervisor.say(scripted, "after")
        assert (await _next(frames, "text")).data["text"] == "after"


async def test_open_streams_end_by_themselves_when_the_server_goes_down(
    supervisor: ScriptedSupervisor, settings: Settings
) -> None:
    """Otherwise the server would wait for them, then cut them off in their middle."""
    app = create_app(settings)
    async with serving(app) as page:
        run = await press_run(page)
        async with live_stream(page, run["urls"]["stream"]) as frames:
            await supervisor.say(await supervisor.run(run["id"]), "x")
            await _next(frames, "text")
            app.state.bus.close()
            async with asyncio.timeout(60):
                async for _ in frames:
                    pass


async def test_a_browser_that_leaves_does_not_disturb_the_run(
    page: httpx.AsyncClient, supervisor: ScriptedSupervisor
) -> None:
    run = await press_run(page)
    scripted = await supervisor.run(run["id"])
    async with live_stream(page, run["urls"]["stream"]) as frames:
        await supervisor.say(scripted, "a")
        await _next(frames, "text")

    await supervisor.say(scripted, "b")
    await supervisor.finish(scripted)

    rest = parse_events((await page.get(run["urls"]["stream"], params={"after": 1})).text)
    assert printed_text(rest) == "b"


async def test_two_processes_on_one_database_each_stream_every_event_once(
    supervisor: ScriptedSupervisor, settings: Settings
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
            frames = [frame for frame in parse_events(response.text) if frame.event != "state"]
            assert [frame.id for frame in frames] == list(range(1, 302))
            assert printed_text(frames) == "".join(f"{number}\n" for number in range(300))


async def test_a_restart_of_the_web_process_loses_and_doubles_nothing(
    supervisor: ScriptedSupervisor, settings: Settings
) -> None:
    async with serving(create_app(settings)) as before:
        run = await press_run(before)
        scripted = await supervisor.run(run["id"])
        await supervisor.say(scripted, "one ", "two ")
        async with live_stream(before, run["urls"]["stream"]) as frames:
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

    assert printed_text(parse_events(rest.text)) == "three four"
    assert "".join(event.get("text", "") for event in whole) == "one two three four"
    assert supervisor.submitted == [run["id"]]


async def test_streams_of_a_run_nobody_follows_are_followed(
    app: FastAPI, client: httpx.AsyncClient, supervisor: ScriptedSupervisor
) -> None:
    run = await press_run(client)
    await app.state.dispatcher.followers.close()  # as if this process had not started the run
    scripted = await supervisor.run(run["id"])
    await supervisor.say(scripted, "x")
    await supervisor.finish(scripted)

    assert printed_text(parse_events((await client.get(run["urls"]["stream"])).text)) == "x"


async def test_one_learner_has_some_streams_at_once_and_one_that_leaves_makes_room(
    page: httpx.AsyncClient, supervisor: ScriptedSupervisor
) -> None:
    run = await press_run(page)
    scripted = await supervisor.run(run["id"])
    await supervisor.say(scripted, "x")
    async with AsyncExitStack() as all_but_one:
        held = [
            await all_but_one.enter_async_context(live_stream(page, run["urls"]["stream"]))
            for _ in range(MAX_STREAMS_PER_LEARNER - 1)
        ]
        for frames in held:
            await _next(frames, "text")
        async with live_stream(page, run["urls"]["stream"]) as last:
            await _next(last, "text")
            refused = await page.get(run["urls"]["stream"], timeout=5)
            assert (refused.status_code, refused.json()["error"]["code"]) == (429, "too_many_requests")
        await _admitted(page, run["urls"]["stream"])
    await _admitted(page, run["urls"]["stream"])
    await supervisor.finish(scripted)


async def _admitted(page: httpx.AsyncClient, url: str) -> None:
    """Wait until there is room: the server notices a moment later that somebody has left."""
    for _ in range(200):
        async with page.stream("GET", url) as response:
            if response.status_code == 200:
                return
        await asyncio.sleep(0.05)
    raise AssertionError("there was never room for one more")


async def test_visitors_of_one_network_share_streams_and_others_are_not_held_up(
    settings: Settings, supervisor: ScriptedSupervisor
) -> None:
    app = create_app(settings.model_copy(update={"visitors_per_address": 1}))
    async with serving(app) as page:
        run = await press_run(page)
        await supervisor.say(await supervisor.run(run["id"]), "x")
        async with app.state.db.session() as session:
            row = await session.get_one(Run, run["id"])
        open_stream = app.state.dispatcher.streams.open
        held = [open_stream(row, 0, "8.8.8.8") for _ in range(STREAMS_PER_VISITOR + 1)]
        begun = [await anext(stream, None) for stream in held]
        assert [batch is not None for batch in begun] == [*[True] * STREAMS_PER_VISITOR, False]
        with pytest.raises(TooManyRequests):
            open_stream(row, 0, "8.8.8.8")
        for elsewhere in ("8.8.4.4", "10.0.0.1", None):
            stream = open_stream(row, 0, elsewhere)
            assert await anext(stream)
            await stream.aclose()
        for stream in held:
            await stream.aclose()
        assert await anext(open_stream(row, 0, "8.8.8.8"))
