"""What a node counts, without a machine behind it."""

from __future__ import annotations

import asyncio
import os
import socket
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace

import httpx
import pytest
from structlog.testing import capture_logs

from runners.config.settings import RunnerSettings
from runners.kernels.kernel_pool import Kernel
from runners.sandbox import cgroups
from runners.sandbox.cgroups import NullCgroup, NullCgroupManager
from runners.sandbox.handle import Sandbox
from runners.supervisor import node as module
from runners.supervisor import routes
from runners.supervisor.node import Node
from runners.supervisor.routes import create_app
from runners.wire.protocol import ClusterMember, KerasVersion, Outcome, RunRequest, SessionSpec, SessionState

SPEC = SessionSpec(owner="o", topology="cpu", keras=3)


class Zygote:
    """A zygote that is ready."""

    refuses = ""
    trouble = None
    ready = True
    safeguards = ()


class Slow:
    """A pool that gives no kernel, and releases the requester when told to."""

    trouble = None

    def __init__(self) -> None:
        self.may_let_go = asyncio.Event()

    def __len__(self) -> int:
        return 0

    async def take(self, topology: str, keras: KerasVersion) -> Kernel:
        """Wait."""
        never: asyncio.Future[Kernel] = asyncio.get_running_loop().create_future()
        try:
            return await never
        finally:
            await self.may_let_go.wait()

    def sweep(self) -> None:
        """Do nothing."""

    async def close(self) -> None:
        """Do nothing."""


@pytest.fixture
async def pool() -> Slow:
    return Slow()


@pytest.fixture
async def node(tmp_path: Path, pool: Slow, monkeypatch: pytest.MonkeyPatch) -> Node:
    """A node with one seat."""
    monkeypatch.setattr(cgroups, "detect", NullCgroupManager)
    monkeypatch.setattr(tempfile, "gettempdir", lambda: str(tmp_path))
    monkeypatch.setattr(tempfile, "mkdtemp", lambda prefix: str(tmp_path))
    monkeypatch.setattr(module, "KernelPool", lambda *_: pool)
    monkeypatch.setattr(Node, "_zygote", lambda *_: Zygote())
    return Node(RunnerSettings(data_dir=tmp_path, max_sessions=1))


async def test_its_health_counts_memory_kills_and_says_how_long_runs_wait(node: Node, pool: Slow) -> None:
    for name in ("first", "second"):
        node.submit(RunRequest(id=name, session=name, spec=SPEC.model_copy(update={"owner": name}), code="1"))
    waiting = node.health()
    with capture_logs() as logs:
        node.run("second").finish(Outcome.memory)
        node.run("second").finish(Outcome.memory)  # idempotent
    pool.may_let_go.set()

    assert waiting.queued == 1
    assert 0 < waiting.longest_wait_s < 60
    assert waiting.memory_kills == 0
    assert node.health().memory_kills == 1
    assert [(entry["event"], entry["run"]) for entry in logs] == [
        ("run ended: it exceeded its memory limit", "second"),
    ]


async def test_a_session_keeps_its_place_until_it_is_gone_though_another_has_its_name(node: Node, pool: Slow) -> None:
    node.request_session("s", SPEC)
    await asyncio.sleep(0)
    ending = asyncio.create_task(node.end("s"))
    await asyncio.sleep(0)

    assert node.request_session("s", SPEC).state == SessionState.queued
    await asyncio.sleep(0.05)
    assert node.session("s").state == SessionState.queued

    pool.may_let_go.set()
    await asyncio.wait_for(ending, 10)
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert node.session("s").state == SessionState.starting
    await node.close()


async def test_a_node_that_ends_waits_for_sessions_whose_names_others_have(node: Node, pool: Slow) -> None:
    node.request_session("s", SPEC)
    await asyncio.sleep(0)
    ending = asyncio.create_task(node.end("s"))
    await asyncio.sleep(0)
    node.request_session("s", SPEC)

    closing = asyncio.create_task(node.close())
    await asyncio.sleep(0.05)
    assert not closing.done()

    pool.may_let_go.set()
    await asyncio.wait_for(asyncio.gather(closing, ending), 10)


async def test_what_is_held_of_all_runs_is_the_sum_of_what_is_held_of_each(
    node: Node, pool: Slow, monkeypatch: pytest.MonkeyPatch
) -> None:
    pool.may_let_go.set()
    for number, code in enumerate(("1", "22", "333")):
        node.submit(RunRequest(id=f"r{number}", session="s", spec=SPEC, code=code))
    assert node._held_bytes == 6

    node.run("r0").text("stdout", "hello")
    node.run("r0").flush()
    assert node._held_bytes == 6 - 1 + node.run("r0").held_bytes > 6
    node.stop("r1")
    node.run("r1").acknowledge(1)
    assert node._held_bytes == 3 + node.run("r0").held_bytes

    monkeypatch.setattr(module, "_SWEEP_S", 0.0)
    monkeypatch.setattr(module, "_KEEP_STORED_S", -1.0)
    monkeypatch.setattr(module, "_KEEP_UNSTORED_S", -1.0)
    node.interrupt("s")
    sweep = asyncio.create_task(node._sweep())
    async with asyncio.timeout(10):
        while node._runs:  # noqa: ASYNC110 - the sweep has no event for it
            await asyncio.sleep(0.01)
    sweep.cancel()
    assert node._held_bytes == 0
    await node.close()


async def test_a_fault_for_a_process_whose_sandbox_has_ended_is_declined_with_a_sentence(
    node: Node, pool: Slow, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pool.may_let_go.set()
    node.request_session("s", SessionSpec(owner="o", topology="workers:2", keras=3))
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    sandbox = Sandbox("s", tmp_path, os.getpid(), -1, ours, NullCgroup())
    sandbox.members = tuple(ClusterMember(task=f"worker {n}", state="running", address="127.0.0.1:1") for n in (0, 1))
    theirs.close()  # PID 1 is gone, and nobody has heard of it yet
    with monkeypatch.context() as patch, ours:
        patch.setattr(node._sessions["s"], "_kernel", SimpleNamespace(sandbox=sandbox, allocation=None))
        async with httpx.AsyncClient(transport=httpx.ASGITransport(create_app(node)), base_url="http://node") as http:
            answer = await http.post("/sessions/s/failures", json={"task": "worker 1", "action": "kill"})
    assert answer.status_code == 409
    assert (answer.json()["code"], answer.json()["message"]) == (
        "not-started",
        "worker 1 no longer exists; run a cell first",
    )
    await node.close()


async def test_a_request_whose_body_does_not_come_is_given_up(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(routes, "_BODY_S", 0.05)

    async def half_a_body() -> AsyncIterator[bytes]:
        yield b"{"
        await asyncio.Event().wait()

    async with httpx.AsyncClient(transport=httpx.ASGITransport(create_app(node)), base_url="http://node") as http:
        answer = await http.post("/runs", content=half_a_body())
    assert (answer.status_code, answer.json()["code"]) == (408, "too-slow")
    await node.close()
