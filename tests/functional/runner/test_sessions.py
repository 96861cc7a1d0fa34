"""The life of a session: requested, queued, restarted, replaced, gone."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from runners.wire.client import RequestRefused, ResourceNotFound, RunnerClient
from runners.wire.protocol import Outcome, ReachedLimit, SessionInfo, SessionState
from tests.factories.real_supervisor import RealSupervisor, RecordedRun, SessionClient

BUSY = "import time\nprint('going', flush=True)\ntime.sleep(50)"
"""The session ends before the run: every test ends it, or stops the run."""


async def until(client: RunnerClient, session: str, state: SessionState) -> SessionInfo:
    """The session, once it is in that state."""
    for _ in range(400):
        info = await client.session(session)
        if info.state == state:
            return info
        await asyncio.sleep(0.05)
    raise AssertionError(f"still {info.state}")


@pytest.fixture(scope="module")
def _crowded() -> Iterator[RealSupervisor]:
    node = RealSupervisor(limits__run_s=60, max_sessions=3, sessions_per_learner=1, eviction_grace_s=0.5)
    yield node
    node.remove()


@pytest.fixture
def crowded(_crowded: RealSupervisor) -> RealSupervisor:
    """A node with three seats and one session per learner, whose sessions are evicted after a moment of idleness.

    It is started again for the next test after one that has ended it.
    """
    return _crowded if _crowded.alive else _crowded.start()


@pytest.fixture
async def guest(crowded: RealSupervisor) -> AsyncIterator[RunnerClient]:
    """A client of that node, on which others hold all seats but one."""
    async with crowded.client() as client:
        others = [SessionClient(client) for _ in range(2)]
        for other in others:
            await other.submit(BUSY)
            await until(client, other.session, SessionState.busy)
        yield client
        for other in others:
            await other.leave()


@pytest.fixture
async def forgetful() -> AsyncIterator[RunnerClient]:
    """A client of a node whose sessions end after five seconds without work."""
    node = RealSupervisor(limits__run_s=60, idle_s=5)
    async with node.start().client() as client:
        yield client
    node.remove()


async def test_a_session_asked_for_without_a_run_becomes_idle_and_tells_when_it_ends(learner: SessionClient) -> None:
    asked = await learner.client.request_session(learner.session, learner.spec)
    assert asked.state in (SessionState.starting, SessionState.idle)
    info = await until(learner.client, learner.session, SessionState.idle)
    assert info.ends_in_s is not None
    assert 0 < info.ends_in_s <= 1200
    assert (await learner.client.request_session(learner.session, learner.spec)).id == learner.session


async def test_all_sessions_are_listed_with_their_owners(client: RunnerClient, learner: SessionClient) -> None:
    await learner.run("1")
    mine = [session for session in await client.owned_sessions() if session.id == learner.session]
    assert [(session.owner, session.state) for session in mine] == [(learner.spec.owner, "idle")]
    assert [(session.topology, session.memory_bytes) for session in mine] == [(learner.spec.topology, None)]
    (measured,) = [one for one in await client.owned_sessions(measured=True) if one.id == learner.session]
    assert 1 << 20 < (measured.memory_bytes or 0) < 200 << 20
    assert measured.age_s >= measured.idle_s > 0
    assert learner.session in [session.id for session in await client.sessions_of(learner.spec.owner)]
    assert await client.sessions_of(f"not-{learner.spec.owner}") == ()

    await learner.leave()
    assert learner.session not in [session.id for session in await client.owned_sessions()]


async def test_a_restart_gives_a_fresh_namespace_and_counts(learner: SessionClient) -> None:
    await learner.run("x = 1")
    assert (await learner.client.restart(learner.session)).id == learner.session
    told = await learner.run("'x' in globals()")
    assert told.result == "False"
    assert (await learner.client.session(learner.session)).generation == 1


async def test_a_run_says_how_many_its_kernel_has_taken_before(learner: SessionClient) -> None:
    before = [(await learner.run("1")).finished.runs_before for _ in range(2)]
    await learner.client.restart(learner.session)
    fresh = await learner.run("1")
    assert [*before, fresh.finished.runs_before] == [0, 1, 0]
    assert (await learner.client.session(learner.session)).runs == 1


async def test_a_run_names_its_kernel_and_a_session_the_one_whose_variables_are_there(learner: SessionClient) -> None:
    kernels = [_kernel_of(await learner.run("1")) for _ in range(2)]
    assert kernels[0] == kernels[1] == (await learner.client.session(learner.session)).kernel_id
    await learner.client.restart(learner.session)
    kernels.append(_kernel_of(await learner.run("1")))
    assert (await learner.client.session(learner.session)).kernel_id == kernels[-1]
    await learner.run("import os; os._exit(3)")
    kernels.append(_kernel_of(await learner.run("1")))
    await learner.client.end(learner.session)
    assert (await learner.client.session(learner.session)).kernel_id == ""
    kernels.append(_kernel_of(await learner.run("1")))
    assert len(set(kernels)) == 4, "after a restart, a crash and an end each"
    assert "" not in kernels


def _kernel_of(told: RecordedRun) -> str:
    return next(event.kernel_id for event in told.events if event.kind == "started")


async def test_a_restart_ends_what_runs_and_what_waits(learner: SessionClient) -> None:
    runs = [await learner.submit(BUSY), await learner.submit("1")]
    await until(learner.client, learner.session, SessionState.busy)
    await learner.client.restart(learner.session)
    assert [(await learner.read(run)).outcome for run in runs] == [Outcome.interrupted] * 2
    assert (await learner.run("1")).outcome == Outcome.ok


async def test_a_background_process_does_not_outlive_a_restart(learner: SessionClient) -> None:
    await learner.run("import subprocess; p = subprocess.Popen(['sleep', '1000'])")
    await learner.client.restart(learner.session)
    told = await learner.run("!ps -e -o args | grep -c '[s]leep 1000'")
    assert told.stdout.strip() == "0"


async def test_another_machine_in_the_same_session_is_refused(learner: SessionClient) -> None:
    await learner.run("1")
    other = SessionClient(learner.client, session=learner.session, owner=learner.spec.owner, topology="gpu:2")
    with pytest.raises(RequestRefused, match="gpu:4") as refused:
        await other.submit("1")
    assert refused.value.status == 409


async def test_an_ended_session_is_gone_at_once_and_the_next_run_has_a_new_one(learner: SessionClient) -> None:
    await learner.run("x = 1")
    await learner.client.end(learner.session)
    info = await learner.client.session(learner.session)
    assert (info.state, info.gone_because) == (SessionState.gone, "ended")
    assert (await learner.run("'x' in globals()")).result == "False"


async def test_a_run_that_ignores_the_interrupt_ends_with_its_session(learner: SessionClient) -> None:
    run = await learner.submit(
        "while True:\n    try:\n        while True: pass\n    except KeyboardInterrupt: print('not me')"
    )
    await until(learner.client, learner.session, SessionState.busy)
    await learner.client.stop(run.id)
    async with asyncio.timeout(10):
        await learner.client.end(learner.session)
        assert (await learner.read(run)).outcome == Outcome.interrupted


async def test_ending_a_session_leaves_no_process_cgroup_or_folder_of_it(
    node: RealSupervisor, learner: SessionClient
) -> None:
    told = await learner.run(
        "import os, socket, subprocess\np = subprocess.Popen(['sleep', '1234'])\n"
        "for fd in range(3, 100):\n    try: name = socket.socket(fileno=os.dup(fd)).getsockname()\n"
        "    except OSError: continue\n    if str(name).endswith('/k-1'): print(name)"
    )
    folder = Path(told.stdout.splitlines()[0]).parent
    groups = [group / folder.name for group in node.cgroups()]
    assert any("sleep" in p for p in node.processes())
    assert all(path.exists() for path in (folder, *groups))
    await learner.client.end(learner.session)
    assert not any("sleep" in p for p in node.processes())
    assert not any(path.exists() for path in (folder, *groups))


async def test_a_kernel_that_dies_while_idle_is_replaced(learner: SessionClient) -> None:
    await learner.run("import os, threading; threading.Timer(0.3, os._exit, [5]).start()")
    for _ in range(200):
        if (await learner.client.session(learner.session)).generation == 1:
            break
        await asyncio.sleep(0.05)
    assert (await learner.run("1 + 1")).result == "2"


@pytest.mark.long
async def test_a_session_without_work_ends_and_the_next_run_works(forgetful: RunnerClient) -> None:
    learner = SessionClient(forgetful)
    await learner.run("x = 1")
    info = await until(forgetful, learner.session, SessionState.gone)
    assert info.gone_because == "idle"

    told = await learner.run("'x' in globals()")
    assert (told.outcome, told.result) == (Outcome.ok, "False")
    await learner.leave()


async def test_one_session_more_than_the_node_holds_waits_at_position_1(guest: RunnerClient) -> None:
    first, second, third = SessionClient(guest), SessionClient(guest), SessionClient(guest)
    running = await first.submit(BUSY)
    waiting = await second.submit("print('my turn')")
    last = await third.client.request_session(third.session, third.spec)

    assert (waiting.session.state, waiting.session.position) == (SessionState.queued, 1)
    assert (last.state, last.position) == (SessionState.queued, 2)
    await third.leave()
    assert (await guest.session(third.session)).state == SessionState.gone
    await first.leave()
    told = await second.read(waiting)
    assert (told.outcome, told.stdout) == (Outcome.ok, "my turn\n"), told.events
    assert (await first.read(running)).outcome == Outcome.interrupted
    await second.leave()


async def test_a_queued_run_is_stopped_without_a_kernel(guest: RunnerClient) -> None:
    first, second = SessionClient(guest), SessionClient(guest)
    await first.submit(BUSY)
    waiting = await second.submit("1")
    await guest.stop(waiting.id)
    assert (await second.read(waiting)).outcome == Outcome.interrupted
    await second.leave()
    await first.leave()


async def test_a_learner_with_too_many_sessions_loses_the_idle_one(guest: RunnerClient) -> None:
    first = SessionClient(guest)
    second = SessionClient(guest, owner=first.spec.owner)
    await first.run("1")
    assert (await second.run("2")).outcome == Outcome.ok
    info = await guest.session(first.session)
    assert (info.state, info.gone_because) == (SessionState.gone, "replaced")
    await second.leave()


async def test_a_learner_whose_sessions_are_all_busy_gets_a_message(guest: RunnerClient) -> None:
    first = SessionClient(guest)
    second = SessionClient(guest, owner=first.spec.owner)
    await first.submit(BUSY)
    await until(guest, first.session, SessionState.busy)
    with pytest.raises(RequestRefused, match="busy") as refused:
        await second.submit("2")
    assert refused.value.status == 429
    assert refused.value.refusal.limit == ReachedLimit(name="sessions_per_learner", value=1, unit="count")
    with pytest.raises(ResourceNotFound):
        await guest.session(second.session)
    await first.leave()


async def test_sessions_that_end_while_they_start_do_not_confuse_those_that_follow(client: RunnerClient) -> None:
    for _ in range(3):
        leaving = [SessionClient(client, topology="gpu:3") for _ in range(4)]
        await asyncio.gather(*(x.submit("1") for x in leaving))
        staying = SessionClient(client, topology="gpu:3")
        accepted = await staying.submit("print('still here')")
        await asyncio.gather(*(x.leave() for x in leaving))
        assert (await staying.read(accepted)).stdout == "still here\n"
        await staying.leave()


@pytest.fixture
async def class_(crowded: RealSupervisor) -> AsyncIterator[list[SessionClient]]:
    """Six learners on a node with three seats."""
    async with crowded.client() as client:
        learners = [SessionClient(client) for _ in range(6)]
        yield learners
        for learner in learners:
            await learner.leave()


async def test_whoever_presses_run_on_a_full_node_gets_the_place_of_a_finished_session(
    class_: list[SessionClient],
) -> None:
    *sitting, late = class_[:4]
    for learner in sitting:
        await learner.run("x = 1")
    gone = asyncio.create_task(late.client.wait_until_gone(sitting[0].session))

    async with asyncio.timeout(20):  # it takes half a second of grace and the start of a kernel
        told = await late.run("print('my turn')")

    assert (told.outcome, told.stdout) == (Outcome.ok, "my turn\n")
    evicted = await asyncio.wait_for(gone, 5)  # the reader of this stream is notified at once
    assert (evicted.state, evicted.gone_because, evicted.runs) == (SessionState.gone, "evicted", 1)
    states = [(await learner.client.session(learner.session)).state for learner in sitting]
    assert states == [SessionState.gone, SessionState.idle, SessionState.idle]


async def test_as_many_sessions_give_way_as_people_wait_the_unused_one_first(class_: list[SessionClient]) -> None:
    used, unused, last, *late = class_
    await used.run("1")
    await unused.client.request_session(unused.session, unused.spec)
    await until(unused.client, unused.session, SessionState.idle)
    await last.run("2")

    assert [(await learner.run("3")).result for learner in late[:1]] == ["3"]
    assert (await unused.client.session(unused.session)).gone_because == "evicted"
    assert (await used.client.session(used.session)).state == SessionState.idle

    await asyncio.gather(*(learner.run("4") for learner in late[1:]))
    gone = [(await learner.client.session(learner.session)).gone_because for learner in class_]
    assert gone.count("evicted") == 3


async def test_nobody_is_evicted_for_a_session_that_was_only_asked_for(class_: list[SessionClient]) -> None:
    *sitting, looking, running = class_[:5]
    for learner in sitting:
        await learner.run("1")
    asked = await looking.client.request_session(looking.session, looking.spec)
    assert (asked.state, asked.position, asked.wait_s) == (SessionState.queued, 1, None)

    await running.run("2")
    states = [(await learner.client.session(learner.session)).state for learner in (*sitting, looking)]
    assert states.count(SessionState.gone) == 1
    assert states[-1] == SessionState.queued


async def test_keeping_a_session_holds_no_place_against_somebody_who_waits(class_: list[SessionClient]) -> None:
    kept, *others, late = class_[:4]
    for learner in (kept, *others):
        await learner.run("1")
    await kept.client.keep(kept.session)
    await late.run("2")
    assert (await kept.client.session(kept.session)).gone_because == "evicted"


async def test_a_queued_learner_reads_about_how_long_it_takes_once_a_run_has_ended(class_: list[SessionClient]) -> None:
    *sitting, late = class_[:4]
    for learner in sitting:
        await learner.run("1")
    busy = [await learner.submit(BUSY) for learner in sitting]
    for learner in sitting:
        await until(late.client, learner.session, SessionState.busy)

    accepted = await late.submit("print('my turn')")
    assert accepted.session.position == 1
    assert accepted.session.wait_s is not None
    assert accepted.session.wait_s < 50, "runs have been short so far"
    await late.client.stop(busy[0].id)
    assert (await late.read(accepted)).stdout == "my turn\n"
    states = [(await learner.client.session(learner.session)).state for learner in sitting]
    assert states == [SessionState.gone, SessionState.busy, SessionState.busy]


async def test_keeping_a_session_restarts_its_idle_time(learner: SessionClient) -> None:
    async def ends_in_s() -> float:
        info = await learner.client.session(learner.session)
        assert info.ends_in_s is not None
        return info.ends_in_s

    await learner.run("x = 1")
    at_first = await ends_in_s()
    while (later := await ends_in_s()) > at_first - 0.2:  # noqa: ASYNC110 - only the time passes
        await asyncio.sleep(0.05)
    kept = await learner.client.keep(learner.session)
    assert kept.ends_in_s is not None
    assert kept.ends_in_s > later


async def test_who_pressed_run_comes_before_who_only_looked(guest: RunnerClient) -> None:
    busy, looking, running = SessionClient(guest), SessionClient(guest), SessionClient(guest)
    await busy.submit(BUSY)
    assert (await guest.request_session(looking.session, looking.spec)).position == 1
    accepted = await running.submit("print('first')")
    assert accepted.session.position == 1
    assert (await guest.session(looking.session)).position == 2
    await busy.leave()
    assert (await running.read(accepted)).stdout == "first\n"
    for learner in (running, looking):
        await learner.leave()


async def test_the_queue_has_an_end(guest: RunnerClient) -> None:
    busy = SessionClient(guest)
    await busy.submit(BUSY)
    crowd = [SessionClient(guest) for _ in range(30)]
    for learner in crowd:
        await guest.request_session(learner.session, learner.spec)
    late = SessionClient(guest)
    with pytest.raises(RequestRefused, match="try again later") as refused:
        await late.submit("1")
    assert refused.value.refusal.limit == ReachedLimit(name="sessions", value=3, unit="count")
    for learner in (*crowd, busy):
        await learner.leave()


async def test_a_supervisor_that_is_asked_to_end_leaves_nothing_of_its_sessions(crowded: RealSupervisor) -> None:
    async with crowded.client() as client:
        learners = [SessionClient(client) for _ in range(3)]
        await asyncio.gather(*(learner.run("1") for learner in learners))
        await learners[0].submit("while True: pass")
        await learners[1].submit("import subprocess; p = subprocess.Popen(['setsid', 'sleep', '1000'])")
        assert crowded.stop(signal.SIGTERM) in (0, -signal.SIGTERM)
    assert crowded.folders() == []
    crowded.wait(lambda: not crowded.processes() and not crowded.cgroups(), 5)
