"""Runs: their queue, their end, and their events on the wire."""

from __future__ import annotations

import asyncio

import httpx
import pytest

from runners.wire.client import RequestRefused, ResourceNotFound, RunnerClient
from runners.wire.protocol import MAX_CODE_BYTES, Event, Outcome, RunAccepted, SessionState
from tests.factories.real_supervisor import RealSupervisor, RecordedRun, SessionClient, new_name

FOREVER = "import time\nprint('going', flush=True)\nwhile True: time.sleep(0.1)"
STUBBORN = "import time\nwhile True:\n    try:\n        time.sleep(60)\n    except KeyboardInterrupt:\n        pass"


async def going(learner: SessionClient, code: str = FOREVER) -> RunAccepted:
    """A run that has started to print."""
    accepted = await learner.submit(code)
    async for event in learner.client.events(accepted.id):
        assert event.kind != "finished"
        if event.kind == "text":
            return accepted
    raise AssertionError("unreachable")


async def test_a_second_run_waits_behind_the_first(learner: SessionClient) -> None:
    first = await going(learner, "import time\nprint('going', flush=True)\ntime.sleep(3)\nx = 1")
    second = await learner.submit("print(x + 1)")

    assert (first.ahead, second.ahead) == (0, 1)
    assert second.session.state == SessionState.busy
    told = await learner.read(second)
    assert (told.outcome, told.stdout) == (Outcome.ok, "2\n")


async def test_a_run_in_progress_is_stopped_and_the_session_keeps_its_state(learner: SessionClient) -> None:
    await learner.run("x = 1")
    accepted = await going(learner)

    await learner.client.stop(accepted.id)
    told = await learner.read(accepted)
    assert told.outcome == Outcome.interrupted
    assert (await learner.run("x")).result == "1"


async def test_a_queued_run_is_taken_out_and_the_one_before_goes_on(learner: SessionClient) -> None:
    first = await going(learner)
    second = await learner.submit("print('never')")

    await learner.client.stop(second.id)
    told = await learner.read(second)
    assert (told.kinds, told.outcome) == (["finished"], Outcome.interrupted)
    assert (await learner.client.session(learner.session)).state == SessionState.busy
    await learner.client.stop(first.id)


async def test_stopping_a_finished_run_changes_nothing(learner: SessionClient) -> None:
    told = await learner.run("1")
    await learner.client.stop(told.id)
    assert (await learner.read(told.accepted)) == told


async def test_an_interrupt_ends_the_run_and_drops_those_behind_it(learner: SessionClient) -> None:
    first, *behind = await going(learner), await learner.submit("1"), await learner.submit("2")

    await learner.client.interrupt(learner.session)
    outcomes = [(await learner.read(run)).outcome for run in (first, *behind)]
    assert outcomes == [Outcome.interrupted] * 3
    assert (await learner.run("3")).outcome == Outcome.ok


async def test_runs_behind_a_failed_one_are_not_run_and_say_so(learner: SessionClient) -> None:
    first = await learner.submit("import time; time.sleep(3); 1/0")
    second = await learner.submit("print('never')")

    assert (await learner.read(first)).outcome == Outcome.error
    told = await learner.read(second)
    assert (told.kinds, told.outcome) == (["notice", "finished"], Outcome.interrupted)


async def test_code_that_swallows_the_interrupt_is_ended_all_the_same(learner: SessionClient) -> None:
    told = await learner.run(STUBBORN, timeout_s=1)

    assert told.outcome == Outcome.timeout
    assert told.finished.limit is not None
    assert (told.finished.limit.name, told.finished.limit.value) == ("time", 1)
    assert told.finished.duration_ms < 12_000
    assert (await learner.run("1")).outcome == Outcome.ok
    assert (await learner.client.session(learner.session)).generation == 1


async def test_a_run_past_its_time_is_interrupted_and_the_state_stays(learner: SessionClient) -> None:
    await learner.run("x = 1")
    told = await learner.run(FOREVER, timeout_s=0.5)
    assert told.outcome == Outcome.timeout
    assert 400 < told.finished.duration_ms < 6_000
    assert (await learner.run("x")).result == "1"


async def test_the_same_run_submitted_twice_runs_once(learner: SessionClient) -> None:
    await learner.run("n = 0")
    request = learner.request("n += 1")
    accepted = await learner.client.submit(request)
    again = await learner.client.submit(request)
    first, second = await learner.read(accepted), await learner.read(again)

    assert await learner.client.submit(request)
    assert first.events == second.events
    assert (await learner.run("n")).result == "1"


async def test_a_stream_cut_again_and_again_loses_and_doubles_nothing(learner: SessionClient) -> None:
    accepted = await learner.submit("import time\nfor i in range(60):\n    print(i, flush=True); time.sleep(0.01)")
    events: list[Event] = []
    cuts = 0
    while not events or events[-1].kind != "finished":
        stream = learner.client.events(accepted.id, events[-1].seq if events else 0)
        async for event in stream:
            events.append(event)
            if event.kind == "finished" or len(events) % 3 == 0:
                break
        await stream.aclose()
        cuts += 1

    assert cuts > 5
    told = RecordedRun(accepted.id, accepted, tuple(events))
    assert [e.seq for e in events] == list(range(1, len(events) + 1))
    assert told.stdout.split() == [str(i) for i in range(60)]
    for after in (0, 1, len(events) // 2, len(events) - 1):
        assert [e async for e in learner.client.events(accepted.id, after)] == events[after:]


async def test_stored_events_are_forgotten_when_the_app_says_so(learner: SessionClient) -> None:
    told = await learner.run("print(1)")
    last = told.events[-1].seq
    await learner.client.acknowledge(told.id, last - 1)
    assert [e.seq async for e in learner.client.events(told.id, last - 1)] == [last]


async def test_another_owners_session_does_not_exist(learner: SessionClient) -> None:
    await learner.run("secret = 1")
    thief = SessionClient(learner.client, session=learner.session)
    with pytest.raises(ResourceNotFound):
        await thief.submit("secret")
    with pytest.raises(ResourceNotFound):
        await thief.client.request_session(thief.session, thief.spec)


@pytest.mark.parametrize("path", ["/sessions/none", "/runs/none/events", "/nothing"])
async def test_what_is_not_there_is_not_found(client: RunnerClient, path: str) -> None:
    with pytest.raises((ResourceNotFound, RequestRefused)) as refused:
        await client._send("GET", path)
    assert refused.value.status == 404


def _http(node: RealSupervisor) -> httpx.AsyncClient:
    return httpx.AsyncClient(transport=httpx.AsyncHTTPTransport(uds=str(node.socket)), base_url="http://node")


def _body(**other: object) -> dict[str, object]:
    spec = {"owner": "o", "topology": "gpu:4", "keras": 3}
    return {"id": new_name(), "session": new_name(), "spec": spec, "code": "1"} | other


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (_body(code="x" * (MAX_CODE_BYTES + 1)), "the limit is 100,000"),
        (_body(code="é" * (MAX_CODE_BYTES // 2 + 1)), "100,002 bytes"),
        (_body(spec={"owner": "o", "topology": "gpu:9"}), "possible: cpu, gpu:1 … gpu:8"),
        (_body(spec={"owner": "o", "keras": 4}), "keras"),
        (_body(id="../../etc"), "id"),
        (_body(session="a/b"), "session"),
        (_body(timeout_s=-1), "timeout_s"),
        (_body(surprise=1), "surprise"),
        ([], "object"),
    ],
)
async def test_a_bad_request_is_refused_with_words(node: RealSupervisor, body: object, words: str) -> None:
    async with _http(node) as http:
        answer = await http.post("/runs", json=body)
    assert 400 <= answer.status_code < 500
    assert words in answer.json()["message"]


async def test_a_request_too_large_to_read_is_refused(node: RealSupervisor) -> None:
    async with _http(node) as http:
        answer = await http.post("/runs", content=b"x" * 5_000_000)
    assert answer.status_code == 413
    assert answer.json()["code"] == "too-large"


@pytest.mark.parametrize("body", [b"", b"{", b"\xff\xfe", b"[" * 100_000, b'{"a":' * 10_000])
async def test_a_request_that_is_no_json_is_refused(node: RealSupervisor, body: bytes) -> None:
    async with _http(node) as http:
        answer = await http.post("/runs", content=body)
        assert 400 <= answer.status_code < 500
        assert (await http.get("/runs/x/events?after=minus")).status_code < 500


async def test_code_may_hold_any_text(learner: SessionClient) -> None:
    told = await learner.run("print('é🎲\\u2028', len('''\0'''))")
    assert told.outcome in (Outcome.ok, Outcome.error)
    assert (await learner.run("1")).outcome == Outcome.ok


async def test_many_learners_at_once_each_get_their_own_output(client: RunnerClient) -> None:
    learners = [SessionClient(client) for _ in range(5)]
    told = await asyncio.gather(*(x.run(f"print('I am {n}')") for n, x in enumerate(learners)))
    assert [t.stdout for t in told] == [f"I am {n}\n" for n in range(5)]
    await asyncio.gather(*(x.leave() for x in learners))
