"""What the watcher of a sandbox reads from outside, and what it does if it cannot."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from runners.config.settings import Limits
from runners.sandbox import usage
from runners.sandbox.cgroups import CgroupStats, NullCgroup
from runners.sandbox.handle import Sandbox
from runners.sandbox.usage import CpuCounter, ProcessEntry, UsageWatcher


class Mistaken(NullCgroup):
    """A group that fails in an unexpected way, twice, and then reports a lot of CPU time."""

    asked = 0

    def facts(self) -> CgroupStats:
        """Created, started, and polled twice."""
        self.asked += 1
        if self.asked in (3, 4):
            raise LookupError("a mistake of ours")
        return CgroupStats(cpu_s=1000.0 if self.asked > 4 else 0.0, peak_bytes=0)


async def test_a_look_that_fails_is_said_once_and_the_limits_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(usage, "_SOONEST_S", 0.01)
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours, theirs, capture_logs() as logs:
        watch = UsageWatcher(Sandbox("s", tmp_path, os.getpid(), -1, ours, Mistaken()), Limits(cpu_s=10))
        watch.begin_run()
        async with watch:
            await asyncio.wait_for(watch.exceeded.wait(), 10)

    assert watch.met == "cpu"
    assert [entry["event"] for entry in logs] == ["sandbox could not be watched; continuing"]


@pytest.fixture
async def sandbox(tmp_path: Path) -> AsyncIterator[Sandbox]:
    """A process with 600 MiB that answers nobody, and no cgroup around it."""
    held = "import sys; kept = bytearray(600 << 20); print(len(kept), flush=True); sys.stdin.read()"
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    command, pipe = [sys.executable, "-c", held], subprocess.PIPE
    with theirs, subprocess.Popen(command, stdin=pipe, stdout=pipe) as process:  # noqa: ASYNC220
        assert process.stdout
        process.stdout.readline()
        sandbox = Sandbox("s", tmp_path / "s", process.pid, os.pidfd_open(process.pid), ours, NullCgroup())
        sandbox.watch()
        yield sandbox
        await sandbox.destroy()


async def test_memory_is_read_and_the_sandbox_ended_without_an_answer_from_inside(sandbox: Sandbox) -> None:
    sandbox.folders = (os.open("/proc", os.O_PATH),)  # a file system that holds no bytes
    async with UsageWatcher(sandbox, Limits(memory_mb=512)) as usage:
        await asyncio.wait_for(usage.exceeded.wait(), 10)
        await asyncio.wait_for(sandbox.gone.wait(), 10)
    assert usage.met == "memory"


async def test_a_sandbox_without_limits_that_cannot_be_read_twice_is_ended(sandbox: Sandbox) -> None:
    with capture_logs() as logs:
        async with UsageWatcher(sandbox, Limits(memory_mb=1024)) as usage:
            await asyncio.wait_for(sandbox.gone.wait(), 10)
    assert usage.met is None
    assert [entry["event"] for entry in logs] == ["sandbox ended: its use of memory is unknown"]


def test_cpu_time_of_children_counts_whether_or_not_somebody_waited_for_them() -> None:
    def process(pid: int, own_s: float, waited_s: float = 0.0, begun: int = 0) -> ProcessEntry:
        return ProcessEntry(pid, 1, begun, own_s, waited_s)

    counter = CpuCounter()
    looks = [
        ([process(1, 0.5), process(7, 2.0)], 2.5),
        ([process(1, 0.5), process(8, 1.0)], 3.5),  # 7 has ended, and nobody waited for it
        ([process(1, 0.5), process(8, 1.0, begun=9)], 4.5),  # another 8
        ([process(1, 0.5, waited_s=9.0)], 9.5),  # and those that came and went between two looks
    ]
    for tree, expected in looks:
        counter.update(tree)
        assert counter.cpu_s == expected
