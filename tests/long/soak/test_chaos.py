"""Ten learners run cells through the whole of Lockstep while its processes are killed at random.

A run that was accepted ends, and is in SQL without a gap; what a page has shown stays; ``ok`` is said only of one that
printed all it had to print; and afterwards everything works and nothing is left.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import shutil
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from statistics import median
from typing import Any

import httpx
import psutil
import pytest

from tests.factories.course import LESSON
from tests.factories.serve_command import ServeCommand
from tests.factories.sse_client import ReceivedEvent, live_stream
from tests.long.soak.conftest import CHAOS_S, SEED

LEARNERS = 10
VICTIMS = ("kernel", "zygote", "kernel", "supervisor", "kernel", "wall")
_BETWEEN_S = (0.5, 2.5)
_STEADY_S = 22.0
"""A supervisor that ends sooner again and again is started ever later, as it should be: leave it so long in between."""
_END_S = 200.0
"""How long a run may take to end, and the service to recover: the longest pause before a supervisor is started again is
30 s, and a zygote then takes seconds, more on a busy machine."""
_WONDERS_S = 1.0
"""A learner whose run did not end well does not press again at once."""
_TYPED = {"ok", "crash", "lost", "interrupted"}


@pytest.fixture
def service() -> Iterator[ServeCommand]:
    """The whole of Lockstep, as ``lockstep serve`` starts it."""
    if os.geteuid() != 0 or shutil.which("bwrap") is None:
        pytest.skip("needs bubblewrap, and root to give the sessions users of their own")
    service = ServeCommand(warm_kernels=1)
    yield service
    service.remove()


@dataclass
class Pressed:
    """One run as its learner sees it."""

    id: str
    prints: str
    """All that it prints if nobody kills it."""
    seen: list[ReceivedEvent] = field(default_factory=list)
    ended: bool = False


@dataclass
class Report:
    """The observations."""

    runs: list[Pressed] = field(default_factory=list)
    refusals: Counter[int] = field(default_factory=Counter)
    kills: Counter[str] = field(default_factory=Counter)
    ok: int = 0
    """Runs that a learner saw end well."""
    outages_s: list[float] = field(default_factory=list)
    """After each kill of what new sessions need: how long until they could be had, and a run ended well."""


@pytest.mark.timeout(300 + 3 * CHAOS_S + 2 * _END_S)
async def test_killing_at_random_loses_nothing_and_says_nothing_wrong(service: ServeCommand) -> None:
    url = await asyncio.to_thread(service.start)
    report, over = Report(), asyncio.Event()
    learners = [asyncio.create_task(_learn(url, number, report, over)) for number in range(LEARNERS)]
    await _kill_at_random(service, report)
    over.set()
    await asyncio.gather(*learners)
    assert await asyncio.to_thread(service.stop) == 0
    left = await asyncio.to_thread(service.left_behind)
    outcomes = Counter(outcome for _, outcome in _stored_runs(service).values())
    print(f"\n{len(report.runs)} runs: {dict(outcomes)}; refused {dict(report.refusals)}; killed {dict(report.kills)}")
    print(f"back after {median(report.outages_s):.1f} s in the middle, {max(report.outages_s):.1f} s at most")
    assert left == []
    assert set(report.kills) == set(VICTIMS)
    assert [wrong for run in report.runs for wrong in what_is_wrong(run, _stored_events(service, run))] == []
    assert {state for state, _ in _stored_runs(service).values()} == {"finished"}


# --- learners ---------------------------------------------------------------------------------------------------


async def _learn(url: str, number: int, report: Report, over: asyncio.Event) -> None:
    """Run cells one after the other; when time is up, continue until one succeeds."""
    chance = random.Random(SEED * 100 + number)
    async with httpx.AsyncClient(base_url=url, headers={"origin": url}, timeout=30) as client:
        deadline = None
        while True:
            run = await _press(client, chance, report)
            if run is not None:
                report.runs.append(run)
                await asyncio.wait_for(_watch(client, run), _END_S)
                well = run.seen[-1].data["outcome"] == "ok"
                report.ok += well
                if well and over.is_set():
                    return
                if not well:
                    await asyncio.sleep(_WONDERS_S)
            if over.is_set():
                deadline = deadline or time.monotonic() + _END_S
                assert time.monotonic() < deadline, "the service did not recover"


async def _press(client: httpx.AsyncClient, chance: random.Random, report: Report) -> Pressed | None:
    """Press Run; returns None if the service says that it cannot run code now."""
    lines, pause_s = chance.choice([(1, 0.0), (20, 0.02), (40, 0.1), (500, 0.0)])
    word = f"{chance.getrandbits(64):016x}"
    code = f"import time\nfor i in range({lines}):\n    print('{word}', i)\n    time.sleep({pause_s})"
    answer = await client.post("/runs", json={"lesson": LESSON, "cell": "hello", "code": code})
    if answer.status_code == 202:
        return Pressed(answer.json()["id"], "".join(f"{word} {i}\n" for i in range(lines)))
    assert answer.status_code in (429, 503), answer.text
    report.refusals[answer.status_code] += 1
    await asyncio.sleep(0.3)
    return None


async def _watch(client: httpx.AsyncClient, run: Pressed) -> None:
    """Follow the run as a page does, resuming after the last number seen, until the end."""
    while not run.ended:
        after = max((frame.id for frame in run.seen if frame.id), default=0)
        with suppress(httpx.TransportError):
            async with live_stream(client, f"/runs/{run.id}/stream", params={"after": after}) as frames:
                async for frame in frames:
                    if frame.id is not None:
                        run.seen.append(frame)
                    if frame.event == "finished":
                        run.ended = True
                        return


# --- the killer -------------------------------------------------------------------------------------------------


async def _kill_at_random(service: ServeCommand, report: Report) -> None:
    """Each kind of victim once in random order, and again, until time is up."""
    chance = random.Random(SEED)
    ends = time.monotonic() + CHAOS_S
    spared_until = 0.0
    while time.monotonic() < ends or set(report.kills) != set(VICTIMS):
        for kind in chance.sample(VICTIMS, len(VICTIMS)):
            await asyncio.sleep(chance.uniform(*_BETWEEN_S))
            if kind == "supervisor" and time.monotonic() < spared_until:
                continue
            victims = {
                "kernel": service.sessions,
                "zygote": service.zygotes,
                "supervisor": service.supervisor,
                "wall": service.walls,
            }[kind]()
            if not victims:
                continue
            zygotes = service.zygotes()
            with suppress(psutil.NoSuchProcess):
                chance.choice(victims).kill()
                report.kills[kind] += 1
            if kind == "supervisor":
                spared_until = time.monotonic() + _STEADY_S
            if kind != "kernel":
                report.outages_s.append(await _recovery(service, report, zygotes))


async def _recovery(service: ServeCommand, report: Report, ended: list[psutil.Process]) -> float:
    """Seconds until another zygote creates sessions and a run succeeds: killing earlier would show nothing."""
    began = time.monotonic()
    while service.zygotes() == ended or not await asyncio.to_thread(service.ready):
        assert time.monotonic() < began + _END_S, "the service did not recover"
        await asyncio.sleep(0.1)
    before = report.ok
    while report.ok == before:
        assert time.monotonic() < began + _END_S, "no run ended well any more"
        await asyncio.sleep(0.1)
    return time.monotonic() - began


# --- the judge --------------------------------------------------------------------------------------------------


def _stored_runs(service: ServeCommand) -> dict[str, tuple[str, str]]:
    return {name: (state, outcome) for name, state, outcome in service.select("SELECT id, state, outcome FROM runs")}


def _stored_events(service: ServeCommand, run: Pressed) -> dict[int, Any]:
    rows = service.select(f"SELECT seq, payload FROM run_events WHERE run_id = '{run.id}' ORDER BY seq")
    return {seq: json.loads(payload) for seq, payload in rows}


def what_is_wrong(run: Pressed, stored: Mapping[int, Any]) -> list[str]:
    """What the events of a run that were stored, by their number, say against it."""
    events = list(stored.values())
    if not events:
        return [f"{run.id}: accepted and not there"]
    outcome = events[-1].get("outcome")
    printed = "".join(e["text"] for e in events if e["kind"] == "text" and e["stream"] == "stdout")
    faults = {
        "its numbers have a gap": list(stored) != list(range(1, len(events) + 1)),
        "its end is not one": [e["kind"] for e in events].count("finished") != 1 or events[-1]["kind"] != "finished",
        f"its outcome {outcome} is not one of a kill": outcome not in _TYPED,
        "it did not print what is stored": not run.prints.startswith(printed),
        "it is ok and did not print all": outcome == "ok" and printed != run.prints,
        "a page showed what is not stored": any(stored.get(frame.id or 0) != frame.data for frame in run.seen),
        "no page saw its end": not run.ended,
    }
    return [f"{run.id}: {fault} ({outcome}, {printed[-60:]!r})" for fault, true in faults.items() if true]
