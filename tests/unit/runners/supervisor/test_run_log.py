"""The numbered events of one run."""

from __future__ import annotations

import asyncio
import tracemalloc
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from runners.config.settings import Limits, MiB
from runners.supervisor.run_log import RunLog
from runners.wire.protocol import EVENT_ADAPTER, Event, NoticeEvent, Outcome, ReachedLimit, RunRequest, SessionSpec


def _log(**limits: Any) -> RunLog:
    return RunLog(RunRequest(id="r", session="s", spec=SessionSpec(owner="o"), code="1"), Limits(**limits))


async def test_a_traced_run_reports_its_times_at_its_end_and_another_does_not() -> None:
    context = f"00-{'a' * 32}-{'b' * 16}-01"
    request = RunRequest(id="r", session="s", spec=SessionSpec(owner="o"), code="1", trace_context=context)
    traced, dropped, untraced = RunLog(request, Limits()), RunLog(request, Limits()), _log()
    traced.admitted = traced.accepted + 0.25
    traced.add("started")
    for log in (traced, dropped, untraced):
        log.finish(Outcome.ok)

    ends = [(await _read(log))[-1] for log in (traced, dropped, untraced)]

    times, unstarted, nothing = (end.trace for end in ends if end.kind == "finished")
    assert times is not None
    assert unstarted is not None
    assert (times.context, times.admitted_ms) == (context, 250)
    assert times.started_ms is not None
    assert (unstarted.admitted_ms, unstarted.started_ms) == (None, None)
    assert nothing is None


@pytest.mark.parametrize("context", ["x", f"00-{'A' * 32}-{'b' * 16}-01", f"00-{'a' * 32}-{'b' * 16}-01\n"])
def test_a_trace_context_is_hexadecimal_and_nothing_else(context: str) -> None:
    with pytest.raises(ValidationError):
        RunRequest(id="r", session="s", spec=SessionSpec(owner="o"), code="1", trace_context=context)


async def _read(log: RunLog, after: int = 0) -> list[Event]:
    return [event async for piece in log.after(after, 60) for event in _events(piece)]


def _events(piece: bytes | None) -> list[Event]:
    return [EVENT_ADAPTER.validate_json(line) for line in (piece or b"").splitlines()]


def _text(events: list[Event]) -> str:
    return "".join(e.text for e in events if e.kind == "text")


_STEPS = st.one_of(
    st.tuples(st.just("text"), st.sampled_from(["stdout", "stderr"]), st.text(max_size=5)),
    st.tuples(st.just("clear")),
    st.tuples(st.just("display"), st.text(max_size=5)),
    st.tuples(st.just("flush")),
)


@settings(max_examples=100, deadline=None)
@given(st.lists(_STEPS, max_size=40))
def test_events_are_numbered_without_a_gap_and_no_text_is_lost_or_moved(steps: list[tuple[str, ...]]) -> None:
    async def play() -> list[Event]:
        log = _log()
        log.add("started")
        for kind, *values in steps:
            if kind == "text":
                log.text(values[0], values[1])
            elif kind == "clear":
                log.add("clear", wait=False)
            elif kind == "display":
                log.add("display", data={"text/plain": values[0]})
            else:
                log.flush()
        log.finish(Outcome.ok)
        return await _read(log)

    events = asyncio.run(play())
    assert [e.seq for e in events] == list(range(1, len(events) + 1))
    assert (events[0].kind, events[-1].kind) == ("started", "finished")

    def outputs(of: list[tuple[str, str]]) -> list[tuple[str, str]]:
        joined: list[tuple[str, str]] = []
        for kind, text in of:
            if joined and kind == joined[-1][0] in ("stdout", "stderr"):
                joined[-1] = kind, joined[-1][1] + text
            elif text or kind not in ("stdout", "stderr"):
                joined.append((kind, text))
        return joined

    said = [(v[0], v[1]) if k == "text" else (k, v[0] if v else "") for k, *v in steps if k != "flush"]
    heard: list[tuple[str, str]] = [
        (e.stream, e.text) if e.kind == "text" else (e.kind, str(e.data["text/plain"]) if e.kind == "display" else "")
        for e in events[1:-1]
        if e.kind in ("text", "display", "clear")
    ]
    assert outputs(heard) == outputs(said)


async def test_the_first_text_is_not_held_back_and_many_small_ones_become_few_events() -> None:
    log = _log()
    log.text("stdout", "at once")
    assert log.last == 1

    for n in range(30):
        log.add("display", data={"text/plain": str(n)})
    before = log.last
    for _ in range(1000):
        log.text("stdout", "x")
    log.finish(Outcome.ok)
    events = await _read(log, before)
    assert _text(events) == "x" * 1000
    assert len(events) < 10


async def test_gathered_text_comes_out_by_itself() -> None:
    log = _log()
    for n in range(25):
        log.add("display", data={"text/plain": str(n)})
    log.text("stdout", "a")
    log.text("stdout", "b")

    async def until_text() -> str:
        said = ""
        async for piece in log.after(25, 60):
            said += _text(_events(piece))
            if said == "ab":
                break
        return said

    assert await asyncio.wait_for(until_text(), 5) == "ab"


async def test_many_events_are_sent_in_few_pieces_and_the_first_at_once() -> None:
    log = _log()
    pieces: list[list[Event]] = []
    recorded = asyncio.Event()

    async def read() -> None:
        async for piece in log.after(0, 60):
            pieces.append(_events(piece))
            recorded.set()

    reading = asyncio.create_task(read())
    for n in range(20):
        log.add("display", data={"text/plain": str(n)})
        await asyncio.wait_for(recorded.wait(), 5)
        recorded.clear()
    for n in range(200):
        log.add("display", data={"text/plain": str(n)})
        await asyncio.sleep(0)
    log.finish(Outcome.ok)
    await asyncio.wait_for(reading, 5)

    assert [len(piece) for piece in pieces[:20]] == [1] * 20
    assert [event.seq for piece in pieces for event in piece] == list(range(1, 222))
    assert len(pieces) == log.sent < 60


async def test_each_limit_on_output_is_reported_by_its_name() -> None:
    for limits, texts, met in (
        ({"output_mb": 0.1}, ["x" * 60_000] * 2, "output"),
        ({"output_mb_per_s": 0.1}, ["x" * 60_000] * 2, "output_rate"),
        ({"events": 100}, ["x"] * 101, "events"),
    ):
        log = _log(**limits)
        for text in texts:
            assert log.met is None
            log.text("stdout", text)
            log.flush()
        assert log.overflow.is_set()
        assert log.met == met


async def test_output_from_a_second_ago_no_longer_counts_for_the_rate(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [100.0]
    monkeypatch.setattr("runners.supervisor.run_log.time.monotonic", lambda: clock[0])
    log = _log(output_mb_per_s=0.1)
    for _ in range(20):
        log.text("stdout", "x" * 60_000)
        log.flush()
        clock[0] += 1.01
    assert not log.overflow.is_set()

    clock[0] -= 0.9
    log.text("stdout", "x" * 60_000)
    log.flush()
    assert log.met == "output_rate"


async def test_a_display_too_large_is_left_out_with_its_limit_and_the_run_goes_on() -> None:
    log = _log(display_mb=0.1, output_mb=1, output_mb_per_s=0.15)
    log.add("display", data={"text/plain": "x" * 100_000})
    log.add("display", data={"text/plain": "x" * 500_000})
    log.text("stdout", "after")
    log.finish(Outcome.ok)

    shown, notice, text, end = await _read(log)
    assert (shown.kind, text.kind, end.kind) == ("display", "text", "finished")
    assert notice.kind == "notice"
    assert notice.code == "display-too-large"
    assert notice.limit == ReachedLimit(name="display", value=int(0.1 * MiB), unit="bytes")
    assert notice.values["most"] == int(0.1 * MiB)
    assert 500_000 < float(notice.values["size"]) < 501_000
    assert notice.text == "A display of 0.5 MiB was left out because the limit is 0.1 MiB."


async def test_displays_left_out_count_as_output_of_the_run() -> None:
    log = _log(display_mb=0.1, output_mb=1)
    for _ in range(100):
        log.add("display", data={"text/plain": "x" * 400_000})
    assert log.met == "output"
    log.finish(Outcome.output)
    assert [e.kind for e in await _read(log)] == ["notice", "notice", "finished"]


async def test_what_cannot_be_shown_counts_as_output() -> None:
    log = _log(output_mb=0.1)
    for _ in range(1000):
        log.not_shown(["a/b"], 10_000)
    assert log.met == "output"


async def test_displays_that_cannot_be_shown_are_reported_once_for_each_type() -> None:
    log = _log()
    log.not_shown(["a/b", "c/d"], 10)
    log.not_shown(["c/d"], 10)
    log.not_shown(["c/d", "e/f"], 10)
    for n in range(100):
        log.not_shown([f"x/{n}"], 10)
    log.finish(Outcome.ok)

    notices = [e for e in await _read(log) if e.kind == "notice"]
    assert [n.values["types"] for n in notices[:2]] == ["a/b, c/d", "e/f"]
    assert {n.code for n in notices} == {"display-not-shown"}
    assert len(notices) <= 20


async def test_more_output_than_allowed_ends_output_but_not_the_end() -> None:
    log = _log(output_mb=0.1)
    while not log.overflow.is_set():
        log.text("stdout", "x" * 1000)
        log.flush()
    kept = log.last
    log.text("stdout", "more")
    log.add("display", data={"text/plain": "more"})
    log.add("clear", wait=False)
    log.add("error", name="E", value="", frames=[])
    assert log.last == kept
    log.add("notice", code="c", text="said by Lockstep")
    log.finish(Outcome.output)

    events = await _read(log)
    assert [e.kind for e in events[kept:]] == ["notice", "finished"]
    assert 0.05 * MiB < len(_text(events)) < 0.1 * MiB


async def test_one_text_larger_than_the_limit_is_cut_there() -> None:
    log = _log(output_mb=0.1)
    log.text("stdout", "x" * 10_000_000)
    log.flush()
    assert log.overflow.is_set()
    log.finish(Outcome.output)
    assert len(_text(await _read(log))) <= 0.1 * MiB


async def test_events_without_end_end_of_every_kind() -> None:
    for kind, fields in (("clear", {"wait": True}), ("display", {"data": {"text/plain": ""}})):
        log = _log(events=100)
        for _ in range(1000):
            log.add(kind, **fields)
        assert log.overflow.is_set()
        assert log.last == 100


async def test_messages_without_end_end_a_run_however_small_they_are() -> None:
    log = _log(events=100)
    for _ in range(20 * 100):
        log.received(1)
    assert not log.overflow.is_set()

    log.received(1)
    assert log.overflow.is_set()
    assert log.met == "events"


async def test_objects_in_a_display_count_against_its_limit() -> None:
    log = _log(display_mb=0.5)
    log.add("display", data={"application/json": [{}] * 1000})
    log.add("display", data={"application/json": [{}] * 2000})
    log.finish(Outcome.ok)
    events = await _read(log)

    assert [event.kind for event in events] == ["display", "notice", "finished"]
    assert isinstance(events[1], NoticeEvent)
    assert events[1].code == "display-too-large"
    assert not log.overflow.is_set()


async def test_objects_in_displays_count_against_the_limit_on_output() -> None:
    log = _log(output_mb=1, output_mb_per_s=100)
    for _ in range(5):
        log.add("display", data={"application/json": [{}] * 1000})

    assert log.met == "output"
    assert log.last == 3


async def test_a_message_of_too_many_values_is_said_and_the_run_goes_on() -> None:
    log = _log()
    log.text("stdout", "before")
    log.too_many_values(28_000_000)
    log.finish(Outcome.ok)
    events = await _read(log)

    assert [event.kind for event in events] == ["text", "notice", "finished"]
    assert isinstance(events[1], NoticeEvent)
    assert events[1].values["size"] == 28_000_000


def _wide_text(log: RunLog, n: int) -> None:
    log.text("stdout", "x" * 60_000 + "🎉")
    log.flush()


def _unique_keys(log: RunLog, n: int) -> None:
    log.add("display", data={"application/json": {f"{n}-{m}": m + 0.5 for m in range(2000)}})


def _many_small_events(log: RunLog, n: int) -> None:
    for _ in range(50):
        log.add("clear", wait=False)


@pytest.mark.parametrize("record", [_wide_text, _unique_keys, _many_small_events])
async def test_events_take_the_memory_that_they_count(record: Callable[[RunLog, int], None]) -> None:
    log = _log(output_mb=100, output_mb_per_s=100)
    record(log, -1)  # what the first one imports and caches
    tracemalloc.start()
    try:
        before, counted = tracemalloc.get_traced_memory()[0], log.held_bytes
        for n in range(20):
            record(log, n)
        taken = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()

    assert taken < 1.5 * (log.held_bytes - counted)
    assert not log.overflow.is_set()


async def test_messages_that_make_no_event_end_a_run_sooner_than_others() -> None:
    log, silent = _log(output_mb=0.1), _log(output_mb=0.1)
    for _ in range(5000):
        log.received(400)
        silent.shows_nothing(400)
        silent.received(400)

    assert not log.overflow.is_set()
    assert silent.met == "output"


async def test_large_messages_end_a_run_whatever_comes_of_them_and_small_ones_do_not() -> None:
    log = _log(output_mb=0.01)
    for _ in range(100_000):
        log.received(700)
    assert not log.overflow.is_set()

    for _ in range(9):
        log.received(10_000)
    assert log.overflow.is_set()
    assert log.met == "output"


async def test_the_code_of_a_run_that_has_ended_is_kept_no_longer() -> None:
    log = _log()
    assert log.held_bytes == 1

    log.finish(Outcome.ok)
    log.acknowledge(log.last)

    assert log.request.code == ""
    assert log.held_bytes == 0


async def test_finishing_twice_changes_nothing_and_nothing_follows_the_end() -> None:
    log = _log()
    log.finish(Outcome.ok)
    log.finish(Outcome.crash)
    log.text("stdout", "late")
    log.add("notice", code="late", text="late")
    log.flush()

    events = await _read(log)
    assert [e.kind for e in events] == ["finished"]
    assert log.outcome == Outcome.ok


async def test_a_run_that_never_started_lasted_no_time() -> None:
    log = _log()
    log.finish(Outcome.interrupted)
    (event,) = await _read(log)
    assert event.kind == "finished"
    assert (event.duration_ms, event.first_output_ms) == (0, None)


async def test_clearing_is_not_the_first_output_but_text_is() -> None:
    log = _log()
    log.add("clear", wait=False)
    assert log.first_output_ms is None
    log.text("stdout", "x")
    assert log.first_output_ms is not None


async def test_acknowledged_events_are_forgotten_and_no_others() -> None:
    log = _log()
    for n in range(9):
        log.add("display", data={"text/plain": str(n)})
    log.finish(Outcome.ok)

    log.acknowledge(4)
    log.acknowledge(2)
    assert [e.seq for e in await _read(log, 4)] == [5, 6, 7, 8, 9, 10]
    log.acknowledge(1_000_000)
    assert log.acknowledged == 10
    assert await asyncio.wait_for(_read(log, 10), 1) == []


async def test_two_readers_and_one_from_the_middle_read_the_same() -> None:
    log = _log()
    log.add("started")
    readers = [asyncio.create_task(_read(log, after)) for after in (0, 0, 3)]
    await asyncio.sleep(0)
    for n in range(20):
        log.add("display", data={"text/plain": str(n)})
        if n % 3 == 0:
            await asyncio.sleep(0)
    log.finish(Outcome.ok)

    one, two, late = await asyncio.gather(*readers)
    assert one == two
    assert len(one) == 22
    assert late == one[3:]


async def test_a_reader_hears_that_nothing_happens() -> None:
    log = _log()
    stream = log.after(0, 0.01)
    assert await anext(stream) is None
    log.finish(Outcome.ok)
    (event,) = _events(await anext(stream))
    assert event.kind == "finished"


async def test_a_reader_behind_what_was_forgotten_does_not_wait_for_it() -> None:
    log = _log()
    log.add("started")
    log.finish(Outcome.ok)
    log.acknowledge(2)
    assert await asyncio.wait_for(_read(log, 0), 5) == []
