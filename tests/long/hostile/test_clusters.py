"""Hostile processes of a cluster: they lie to the kernel and to PID 1, flood them, end each other, and hang.

All of them are one learner's; nothing they do may reach beyond the session, or outlive it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest

from runners.wire.protocol import InjectedFailure, Outcome
from tests.factories.real_supervisor import RealSupervisor, SessionClient
from tests.long.hostile.conftest import LIMIT_SETTINGS

LINKS = """
import json, os, socket, stat, time
me = json.loads(os.environ["TF_CONFIG"])["task"]["index"]
def links():
    for name in os.listdir("/proc/self/fd") if os.path.exists("/proc/self/fd") else range(3, 64):
        try:
            if stat.S_ISSOCK(os.fstat(int(name)).st_mode):
                yield int(name)
        except OSError:
            pass
"""
FORGED = """
if me == 1:
    for line in (b"junk", b"[" * 5000, b'{"done": 999, "error": null}', b'{"done": true, "error": [1, 2]}', b"null",
                 b'{"kind": "status", "content": {"execution_state": "idle"}}', b'{"kind": "stream", "content": {}}',
                 b'{"kind": "display_data", "content": {"data": {"text/plain": 5}}, "lane": ["x"]}',
                 b'{"kind": "error", "content": {"ename": 1}}', b"\\xff\\xfe", b'{"kind": "display_data"}'):
        for fd in links():
            try: os.write(fd, line + b"\\n")
            except OSError: pass
    from runners.guest.cluster import task_context
    for wish in (b"x" * 511, b"[" * 500, b"{}", b'{"task": 5}', b'{"task": "worker 1", "action": ["kill"]}',
                 b'{"task": "worker 1", "action": "kill", "at_step": 1e308}',
                 b'{"task": "worker 1", "action": ["kill"], "at_step": 9}',
                 b'{"task": "worker 0", "action": "restart"}'):
        task_context.current_context().commands.send(wish)
"""
FLOOD = """
if me == 1:
    while True:
        for fd in links():
            try: os.write(fd, b"x" * 100_000)
            except OSError: pass
"""
SCRIBBLE = """
from runners.guest.cluster import task_context
page = task_context.current_context().shared_state._page
page[:] = os.urandom(len(page))
"""


@pytest.fixture(scope="module")
def clusters() -> Iterator[RealSupervisor]:
    """A node without ready kernels: every process belongs to a session."""
    node = RealSupervisor(warm_kernels=0, **LIMIT_SETTINGS)
    yield node.start()
    node.remove()


@pytest.fixture
async def workers(clusters: RealSupervisor) -> AsyncIterator[SessionClient]:
    """A learner in a session on two workers, of which nothing is left once it has ended."""
    async with clusters.client() as client:
        learner = SessionClient(client, topology="workers:2")
        assert (await learner.run(LINKS)).outcome == Outcome.ok
        yield learner
        await learner.leave()
    clusters.wait(lambda: len(clusters.processes()) == len(clusters.zygotes()) == 1, 10)


async def test_forged_lines_and_wishes_change_nothing(workers: SessionClient) -> None:
    told = await workers.run(FORGED)
    assert told.outcome in (Outcome.ok, Outcome.error)
    told = await workers.run("print('here', me)")
    assert told.outcome == Outcome.ok
    assert {(e.lane, e.text) for e in told.events if e.kind == "text"} == {
        ("worker 0", "here 0\n"),
        ("worker 1", "here 1\n"),
    }


async def test_what_is_scribbled_on_the_board_is_only_a_lie(workers: SessionClient) -> None:
    await workers.run(SCRIBBLE)
    assert (await workers.run("print('on')")).outcome in (Outcome.ok, Outcome.error)
    await workers.client.inject_failure(workers.session, InjectedFailure(task="worker 1", action="pause", at_step=5))
    await workers.client.inject_failure(workers.session, InjectedFailure(task="worker 1", action="resume"))


WISHES = """
from runners.guest.cluster import task_context
from runners.guest.reporting import publisher
import time
end = time.monotonic() + 1
while time.monotonic() < end:
    for action in ("pause", "resume", "slow", "resume"):
        task_context.current_context().send_command("worker 0" if me else "worker 1", action)
    publisher.notice("member-ended", task="x", why="y")
"""


async def test_a_flood_of_wishes_and_notices_leaves_the_supervisor_at_rest(workers: SessionClient) -> None:
    told = await workers.run(WISHES)
    assert told.kinds.count("notice") <= 200
    assert (await workers.client.health()).status == "ready"
    told = await workers.run("print('again')")
    if told.outcome != Outcome.ok:
        await workers.client.restart(workers.session)
        told = await workers.run("print('again')")
    assert told.outcome == Outcome.ok


async def test_a_flood_on_the_link_ends_its_sender_or_the_run(workers: SessionClient) -> None:
    told = await workers.run(FLOOD, timeout_s=2)
    assert told.outcome in (Outcome.error, Outcome.timeout, Outcome.memory, Outcome.crash)
    assert (await workers.run("print('again')")).outcome == Outcome.ok


async def test_a_killed_kernel_takes_its_cluster_along(workers: SessionClient) -> None:
    told = await workers.run("import signal\nif me == 1:\n    os.kill(os.getpid() - 1, signal.SIGKILL)\ntime.sleep(5)")
    assert told.outcome in (Outcome.crash, Outcome.error)
    told = await workers.run("import os, json; print(json.loads(os.environ['TF_CONFIG'])['task']['index'])")
    assert sorted(told.text.split()) == ["0", "1"]


async def test_a_session_ends_whatever_its_workers_do(workers: SessionClient) -> None:
    await workers.submit("import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nwhile True: time.sleep(1)")
    await workers.client.inject_failure(workers.session, InjectedFailure(task="worker 1", action="slow"))
    await workers.client.inject_failure(workers.session, InjectedFailure(task="worker 1", action="pause"))
    members = (await workers.client.session(workers.session)).members
    assert [member.task for member in members] == ["worker 0", "worker 1"]


HANGS_UP = """
if me == 1:
    os.closerange(3, 256)
    time.sleep(2)
"""


async def test_a_process_that_closes_its_link_is_killed_and_restarted(workers: SessionClient) -> None:
    assert (await workers.run(HANGS_UP)).outcome == Outcome.error
    told = await workers.run("print('back')")
    assert told.outcome == Outcome.ok
    assert {e.lane for e in told.events if e.kind == "text"} == {"worker 0", "worker 1"}


NO_PROCESS_LEFT = """
import subprocess
from runners.guest.cluster import task_context
if me == 0:
    task_context.current_context().send_command("worker 1", "kill")
    time.sleep(1)
    held = []
    try:
        while True:
            held.append(subprocess.Popen(["sleep", "60"]))
    except OSError:
        pass
    task_context.current_context().send_command("worker 1", "restart")
    time.sleep(1)
    for each in held:
        each.kill()
        each.wait()
    print("still here")
"""


async def test_a_process_that_cannot_be_started_again_is_no_end_of_the_others(workers: SessionClient) -> None:
    told = await workers.run(NO_PROCESS_LEFT)
    assert told.outcome != Outcome.crash
    assert "still here" in told.text
    assert (await workers.run("print('on')")).outcome == Outcome.ok
