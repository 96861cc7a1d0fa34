"""Runs over HTTP."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Iterator
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from sqlalchemy import event
from sqlalchemy.exc import OperationalError

from app.main import create_app
from app.runs.errors import RunnerOffline
from app.settings import Settings
from app.web.sse import ServerSentEvent
from runners.wire.client import RunnerUnavailable
from runners.wire.protocol import Refusal, RunRequest, SessionState
from tests.factories.browser_client import browser_client, press_run
from tests.factories.course import LESSON
from tests.factories.scripted_supervisor import ScriptedSupervisor


def _asked(**other: Any) -> dict[str, Any]:
    return {"lesson": LESSON, "cell": "hello", "code": "print(1)"} | other


async def test_a_run_is_accepted_stored_and_handed_to_the_supervisor(
    client: httpx.AsyncClient, supervisor: ScriptedSupervisor
) -> None:
    run = await press_run(client, "print('one')")

    assert run["state"] == "queued"
    assert (run["topology"], run["keras"], run["cell"], run["lesson"]) == ("gpu:4", 3, "hello", LESSON)
    handed = await supervisor.run(run["id"])
    assert handed.request.code == "print('one')"
    assert (await client.get(f"/runs/{run['id']}")).json()["code"] == "print('one')"


async def test_cells_with_the_same_machine_share_a_session_and_others_do_not(
    client: httpx.AsyncClient, supervisor: ScriptedSupervisor
) -> None:
    first, second, third = [await press_run(client, cell=cell) for cell in ("hello", "hello", "alone")]

    sessions = [(await supervisor.run(run["id"])).request.session for run in (first, second, third)]
    assert sessions[0] == sessions[1] != sessions[2]
    assert third["topology"] == "cpu"


async def test_the_supervisor_never_learns_the_visitors_whole_id_or_cookie(
    client: httpx.AsyncClient, supervisor: ScriptedSupervisor
) -> None:
    run = await press_run(client)

    told = (await supervisor.run(run["id"])).request.model_dump_json()
    assert client.cookies["lockstep_visitor"] not in told


async def test_a_second_run_waits_behind_the_first_and_says_so(
    client: httpx.AsyncClient, supervisor: ScriptedSupervisor
) -> None:
    first, second = await press_run(client), await press_run(client)

    assert (first["ahead"], second["ahead"]) == (0, 1)
    assert (await client.get(f"/runs/{second['id']}")).json()["ahead"] == 1


async def test_a_queued_session_shows_its_position(client: httpx.AsyncClient, supervisor: ScriptedSupervisor) -> None:
    supervisor.session_state = SessionState.queued

    run = await press_run(client)

    assert run["position"] == 3


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        (_asked(code="x" * 100_001), 413, "code_too_long"),
        (_asked(code="é" * 50_001), 413, "code_too_long"),
        (_asked(code="a\0b"), 422, "invalid_code"),
        (_asked(lesson="small/none"), 404, "lesson_not_found"),
        (_asked(lesson="none/first"), 404, "course_not_found"),
        (_asked(lesson="nonsense"), 404, "course_not_found"),
        (_asked(cell="none"), 404, "cell_not_found"),
        (_asked(extra=1), 422, "invalid_input"),
        ({"lesson": LESSON}, 422, "invalid_input"),
    ],
)
async def test_what_cannot_be_run_is_refused_with_a_sentence(
    client: httpx.AsyncClient, supervisor: ScriptedSupervisor, body: dict[str, Any], status: int, code: str
) -> None:
    response = await client.post("/runs", json=body)

    assert response.status_code == status
    error = response.json()["error"]
    assert error["code"] == code
    assert error["message"].endswith(".") or ":" in error["message"]
    assert error["request_id"] == response.headers["x-request-id"]
    assert not supervisor.submitted


async def test_half_a_surrogate_pair_is_refused(client: httpx.AsyncClient, supervisor: ScriptedSupervisor) -> None:
    body = '{"lesson": "small/first", "cell": "hello", "code": "\\ud800"}'
    response = await client.post("/runs", content=body, headers={"content-type": "application/json"})

    assert response.status_code == 422


async def test_100_000_bytes_are_accepted(client: httpx.AsyncClient, supervisor: ScriptedSupervisor) -> None:
    await press_run(client, "#" * 100_000)


async def test_without_a_runner_nothing_is_kept_and_the_learner_is_told(client: httpx.AsyncClient) -> None:
    response = await client.post("/runs", json=_asked())

    assert response.status_code == 503
    assert response.json()["error"]["message"] == RunnerOffline.message
    assert (await client.get("/runs", params={"lesson": LESSON})).json() == {"runs": []}


async def test_a_run_whose_acceptance_was_lost_is_stopped(
    client: httpx.AsyncClient, app: FastAPI, supervisor: ScriptedSupervisor, monkeypatch: pytest.MonkeyPatch
) -> None:
    runner = app.state.dispatcher.runner
    submit = runner.submit

    async def taken_but_unheard(request: RunRequest) -> None:
        await submit(request)
        raise RunnerUnavailable("the answer broke off")

    monkeypatch.setattr(runner, "submit", taken_but_unheard)

    response = await client.post("/runs", json=_asked())

    assert response.status_code == 503
    assert (await supervisor.run(supervisor.submitted[-1])).stopped
    assert (await client.get("/runs", params={"lesson": LESSON})).json() == {"runs": []}


async def test_a_runner_that_comes_up_in_time_gets_the_run(
    client: httpx.AsyncClient, app: FastAPI, supervisor: ScriptedSupervisor, monkeypatch: pytest.MonkeyPatch
) -> None:
    await supervisor.stop()
    monkeypatch.setattr(app.state.dispatcher, "_submit_timeout_s", 60.0)

    pressing = asyncio.create_task(press_run(client))
    await asyncio.sleep(0.2)
    await supervisor.start()

    run = await pressing
    assert supervisor.submitted[-1] == run["id"]


async def test_a_refusal_of_the_supervisor_is_passed_on(
    client: httpx.AsyncClient, supervisor: ScriptedSupervisor
) -> None:
    supervisor.refuse = (429, Refusal(code="full", message="64 runs wait already"))

    response = await client.post("/runs", json=_asked())

    assert response.status_code == 429
    assert "64 runs wait already" in response.json()["error"]["message"]
    assert (await client.get("/runs", params={"lesson": LESSON})).json() == {"runs": []}


async def test_a_visitor_has_at_most_so_many_unfinished_runs(
    client: httpx.AsyncClient, stranger: httpx.AsyncClient, app: FastAPI, supervisor: ScriptedSupervisor
) -> None:
    app.state.dispatcher._max_unfinished = 2
    for _ in range(2):
        await press_run(client)

    response = await client.post("/runs", json=_asked())

    assert response.status_code == 429
    await press_run(stranger)


async def test_another_visitors_run_is_not_found(
    client: httpx.AsyncClient, stranger: httpx.AsyncClient, app: FastAPI, supervisor: ScriptedSupervisor
) -> None:
    run = await press_run(client)
    await press_run(stranger)

    async with browser_client(app) as nobody:
        for other in (stranger, nobody):
            for path in ("", "/events", "/stream", "/displays/1", "/displays/1/text", "/displays/1/plot"):
                assert (await other.get(f"/runs/{run['id']}{path}")).status_code == 404
            assert (await other.post(f"/runs/{run['id']}/stop")).status_code == 404
    assert not (await supervisor.run(run["id"])).stopped


async def test_the_latest_run_of_each_cell_and_all_unfinished_ones_are_listed_in_order(
    client: httpx.AsyncClient, supervisor: ScriptedSupervisor
) -> None:
    supervisor.answer = ["done\n"]
    for code in ("old", "new"):
        await _until_finished(client, await press_run(client, code))
    supervisor.answer = None
    waiting = [await press_run(client, code, cell="alone") for code in ("a", "b")]

    runs = (await client.get("/runs", params={"lesson": LESSON})).json()["runs"]

    assert [run["code"] for run in runs] == ["new", "a", "b"]
    assert [run["ahead"] for run in runs] == [0, 0, 1]
    assert runs[2]["id"] == waiting[1]["id"]


async def test_stop_reaches_the_supervisor_and_the_run_ends_interrupted(
    client: httpx.AsyncClient, supervisor: ScriptedSupervisor
) -> None:
    run = await press_run(client)

    assert (await client.post(run["urls"]["stop"])).status_code == 202

    assert (await _until_finished(client, run))["outcome"] == "interrupted"


async def test_html_output_is_a_document_without_rights(
    client: httpx.AsyncClient, supervisor: ScriptedSupervisor
) -> None:
    run = await press_run(client)
    scripted = await supervisor.run(run["id"])
    await supervisor.emit(scripted, kind="display", data={"text/html": "<script>1</script>", "text/plain": "x"})
    await supervisor.emit(scripted, kind="display", data={"text/plain": "no html"})
    await supervisor.finish(scripted)
    await _until_finished(client, run)

    document = await client.get(f"/runs/{run['id']}/displays/1")

    assert document.headers["cache-control"] == "no-store"
    assert "<script>1</script>" in document.text
    policy = document.headers["content-security-policy"].split("; ")
    assert policy[0] == "sandbox"
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'self'" in policy
    for nothing in (2, 3, 99):
        assert (await client.get(f"/runs/{run['id']}/displays/{nothing}")).status_code == 404


async def test_a_plot_is_a_document_with_our_script_and_neither_origin_nor_network(
    client: httpx.AsyncClient, supervisor: ScriptedSupervisor
) -> None:
    run = await press_run(client)
    scripted = await supervisor.run(run["id"])
    plotly, vega = "application/vnd.plotly.v1+json", "application/vnd.vegalite.v6+json"
    evil = "</script><script>alert(1)</script><!--<script>"
    await supervisor.emit(scripted, kind="display", data={plotly: {"data": [{"name": evil}]}, "text/plain": "x"})
    await supervisor.emit(scripted, kind="display", data={vega: {"title": evil}})
    await supervisor.emit(scripted, kind="display", data={plotly: "no figure", vega: ["no plot"]})
    await supervisor.emit(scripted, kind="display", data={"text/markdown": "# Hi\n\n<script>$x$</script>"})
    await supervisor.emit(scripted, kind="display", data={"text/latex": "$x^2$"})
    await supervisor.finish(scripted)
    await _until_finished(client, run)

    for number, library in ((1, "plotly"), (2, "vega")):
        document = await client.get(f"/runs/{run['id']}/displays/{number}/plot")
        policy = document.headers["content-security-policy"].split("; ")
        assert policy[:3] == ["sandbox allow-scripts", "default-src 'none'", "script-src 'self'"]
        assert not any("connect-src" in rule or "allow-same-origin" in rule for rule in policy)
        assert document.headers["cache-control"] == "no-store"
        assert document.text.count("<script") == 2
        assert f"/static/dist/plots/{library}.js" in document.text
        assert r"\u003c/script\u003e\u003cscript\u003ealert(1)" in document.text
    dark = await client.get(f"/runs/{run['id']}/displays/1/plot?theme=dark")
    assert 'data-theme="dark"' in dark.text
    assert (await client.get(f"/runs/{run['id']}/displays/1/plot?theme=%22%3E")).status_code == 422
    marked = await client.get(f"/runs/{run['id']}/displays/4/text")
    assert marked.text.startswith('<p class="heading">Hi</p>\n<p>&lt;script&gt;<math>')
    assert marked.headers["content-security-policy"].startswith("sandbox;")
    assert "<msup>" in (await client.get(f"/runs/{run['id']}/displays/5/text")).text
    for nothing in ("1/text", "3/plot", "4/plot", "5", "99/text", "99/plot"):
        assert (await client.get(f"/runs/{run['id']}/displays/{nothing}")).status_code == 404


async def test_stored_events_can_be_read_behind_a_number(
    client: httpx.AsyncClient, supervisor: ScriptedSupervisor
) -> None:
    supervisor.answer = ["one\n", "two\u2028\u0085\n"]
    run = await press_run(client)
    await _until_finished(client, run)

    answer = (await client.get(run["urls"]["events"], params={"after": 1})).json()

    assert [event["seq"] for event in answer["events"]] == [2, 3, 4]
    assert answer["events"][1]["text"] == "two\u2028\u0085\n"
    assert answer["finished"] is True


@pytest.mark.parametrize(
    "asked",
    [
        r'{"lesson": "small/first", "cell": "\ud800x", "code": "1"}',
        r'{"lesson": "small/\udfff", "cell": "hello", "code": "1"}',
        r'{"lesson": "\ud800/first", "cell": "hello", "code": "1"}',
        r'{"lesson": "small/first", "cell": "hello", "code": "\ud800"}',
        r'{"lesson": "small/first", "cell": "hello", "code": "1", "\ud800": 1}',
    ],
)
@pytest.mark.parametrize("accept", ["application/json", "text/html"])
async def test_half_a_surrogate_pair_is_refused_wherever_it_stands(
    client: httpx.AsyncClient, supervisor: ScriptedSupervisor, asked: str, accept: str
) -> None:
    headers = {"content-type": "application/json", "accept": accept}

    response = await client.post("/runs", content=asked, headers=headers)

    assert response.status_code in (404, 422), response.text
    assert not supervisor.submitted


@pytest.mark.parametrize("number", ["9999999999", "9" * 5000])
async def test_a_last_event_id_larger_than_any_number_of_ours_ends_the_stream(
    client: httpx.AsyncClient,
    supervisor: ScriptedSupervisor,
    monkeypatch: pytest.MonkeyPatch,
    app: FastAPI,
    number: str,
) -> None:
    asked: list[int] = []

    async def frames(_: str, after: int) -> AsyncIterator[list[ServerSentEvent]]:
        asked.append(after)
        yield []

    monkeypatch.setattr(app.state.dispatcher.streams, "frames", frames)
    run = await press_run(client)

    response = await client.get(run["urls"]["stream"], headers={"last-event-id": number})

    assert response.status_code == 200
    assert asked == [2**31 - 1]


async def test_what_belongs_to_a_visitor_is_kept_by_no_cache(
    client: httpx.AsyncClient, supervisor: ScriptedSupervisor
) -> None:
    handed_in = await client.post("/runs", json=_asked())
    assert handed_in.headers["cache-control"] == "no-store"
    run = handed_in.json()

    for path in (f"/runs?lesson={LESSON}", f"/runs/{run['id']}", run["urls"]["events"]):
        assert (await client.get(path)).headers["cache-control"] == "no-store"


@pytest.mark.parametrize(("language", "words"), [("en", "disk is full"), ("ko", "디스크가 가득"), ("zh", "磁盘已满")])
async def test_a_full_disk_is_said_and_nothing_is_run(
    client: httpx.AsyncClient, app: FastAPI, supervisor: ScriptedSupervisor, language: str, words: str
) -> None:
    await press_run(client)
    handed = len(supervisor.submitted)
    most_pages = 1

    @event.listens_for(app.state.db.engine.sync_engine, "checkout")
    def _fill(connection: Any, *_: object) -> None:  # every one: others may still follow the run before
        connection.cursor().execute(f"PRAGMA max_page_count = {most_pages}")

    headers = {"x-lockstep-lang": language}
    first = await client.post("/runs", json=_asked(code="#" * 90_000), headers=headers)
    small = await client.post("/runs", json=_asked(), headers=headers)
    not_ready = await client.get("/readyz")

    for response in (first, small):
        assert (response.status_code, response.headers["retry-after"]) == (503, "60")
        assert response.json()["error"]["code"] == "database_full"
        assert words in response.json()["error"]["message"]
    assert (not_ready.status_code, not_ready.json()["reasons"]) == (503, {"database": "database_full"})
    assert len(supervisor.submitted) == handed

    most_pages = 1_000_000_000
    async with asyncio.timeout(10):
        while (await client.get("/readyz")).status_code != 200:  # noqa: ASYNC110
            await asyncio.sleep(0.1)
    await press_run(client)


async def _until_finished(client: httpx.AsyncClient, run: dict[str, Any]) -> dict[str, Any]:
    async with asyncio.timeout(60):
        while True:
            now: dict[str, Any] = (await client.get(f"/runs/{run['id']}")).json()
            if now["state"] == "finished":
                return now
            await asyncio.sleep(0.02)


async def test_one_learner_too_many_from_an_address_gets_a_message_and_no_session(
    settings: Settings, supervisor: ScriptedSupervisor
) -> None:
    app = create_app(settings.model_copy(update={"visitors_per_address": 1}))
    transport = httpx.ASGITransport(app, client=("8.8.8.8", 1))
    own = {"sec-fetch-site": "same-origin", "accept-language": "en"}
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(transport=transport, base_url="http://test", headers=own) as first,
        httpx.AsyncClient(transport=transport, base_url="http://test", headers=own) as second,
    ):
        await press_run(first)
        answer = await second.post("/runs", json=_asked())
        sessions = set(supervisor.sessions)
        panel = await second.post("/en/session", params={"lesson": LESSON})
        await press_run(first)

    assert (answer.status_code, answer.json()["error"]["code"]) == (429, "address_limit_reached")
    assert "on your network are running code right now (limit: 1)" in answer.json()["error"]["message"]
    assert panel.status_code == 200
    assert set(supervisor.sessions) == sessions


@pytest.fixture
def full_disk(app: FastAPI) -> Iterator[list[str]]:
    """A list of prefixes of statements that fail for lack of disk space, as long as they are in it."""
    refused: list[str] = []

    def refuse(_c: Any, _k: Any, sql: str, args: Any, *_: Any) -> None:
        if sql.startswith(tuple(refused)):
            full = sqlite3.OperationalError("database or disk is full")
            full.sqlite_errorcode = sqlite3.SQLITE_FULL
            raise OperationalError(sql, args, full)

    engine = app.state.db.engine.sync_engine
    event.listen(engine, "before_cursor_execute", refuse)
    yield refused
    event.remove(engine, "before_cursor_execute", refuse)


async def test_a_run_is_shown_though_the_disk_became_full_when_it_was_submitted(
    client: httpx.AsyncClient, supervisor: ScriptedSupervisor, full_disk: list[str]
) -> None:
    supervisor.answer = ["all of it"]
    full_disk += ["UPDATE runs", "INSERT INTO run_events"]

    run = await press_run(client)
    await asyncio.sleep(0.3)
    full_disk.clear()

    assert (await _until_finished(client, run))["outcome"] == "ok"
    events = (await client.get(run["urls"]["events"])).json()["events"]
    assert [event["text"] for event in events if event["kind"] == "text"] == ["all of it"]
    assert set(supervisor.submitted) == {run["id"]}


async def test_a_run_that_was_refused_but_could_not_be_withdrawn_ends(
    client: httpx.AsyncClient, supervisor: ScriptedSupervisor, full_disk: list[str]
) -> None:
    await press_run(client)
    supervisor.refuse = (429, Refusal(code="limit", message="No."))
    full_disk += ["DELETE FROM runs", "UPDATE runs"]

    response = await client.post("/runs", json=_asked())
    full_disk.clear()

    assert (response.status_code, response.json()["error"]["code"]) == (503, "database_full")
    runs = (await client.get("/runs", params={"lesson": LESSON})).json()["runs"]
    assert len(runs) == 2
    assert (await _until_finished(client, runs[-1]))["outcome"] == "lost"


async def test_once_a_run_comes_through_a_proxy_the_runner_is_told_of_untrusted_users(
    settings: Settings, supervisor: ScriptedSupervisor
) -> None:
    """The site listens on this machine only, has no public URL, and a proxy leads others to it all the same."""
    app = create_app(settings, only_local=True)
    here = {"host": "127.0.0.1:8000", "origin": "http://127.0.0.1:8000"}
    async with app.router.lifespan_context(app):
        for address in ("127.0.0.1", "::1", "::ffff:127.0.0.1", "203.0.113.9", "127.0.0.1"):
            async with browser_client(app, address) as client:
                client.headers.update(here)
                await press_run(client)

    assert supervisor.untrusted == [False, False, False, True, True]
