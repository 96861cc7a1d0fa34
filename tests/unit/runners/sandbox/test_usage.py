"""What the watcher of a sandbox reads from outside, and what it does if it cannot."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from runners.config.settings import Limits
from runners.sandbox import usage
from runners.sandbox.cgroups import CgroupStats, NullCgroup
from runners.sandbox.handle import Sandbox
from runners.sandbox.usage import (
    CpuCounter,
    ExactMemory,
    ProcessEntry,
    ProcessTable,
    UsageWatcher,
    exact_memory,
    has_too_many_sockets,
    resident_bytes,
)


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


def test_a_sandbox_that_is_younger_than_the_last_look_at_all_processes_is_found() -> None:
    table = ProcessTable()
    assert table.tree(os.getpid())
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        assert [entry.pid for entry in table.tree(process.pid)] == [process.pid]
        process.communicate(b"\n")


@contextlib.asynccontextmanager
async def holding(folder: Path, program: str) -> AsyncIterator[Sandbox]:
    """A process that answers nobody, and no cgroup around it. ``program`` prints a line once it holds what it should.

    It and its children end with their standard input.
    """
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    command, pipe = [sys.executable, "-c", program], subprocess.PIPE
    with theirs, subprocess.Popen(command, stdin=pipe, stdout=pipe) as process:  # noqa: ASYNC220
        assert process.stdout
        process.stdout.readline()
        sandbox = Sandbox("s", folder / "s", process.pid, os.pidfd_open(process.pid), ours, NullCgroup())
        sandbox.watch()
        yield sandbox
        await sandbox.destroy()


@pytest.fixture
async def sandbox(tmp_path: Path) -> AsyncIterator[Sandbox]:
    """A process with 600 MiB."""
    program = "import sys; kept = bytearray(600 << 20); print(len(kept), flush=True); sys.stdin.read()"
    async with holding(tmp_path, program) as sandbox:
        yield sandbox


async def test_memory_is_read_and_the_sandbox_ended_without_an_answer_from_inside(sandbox: Sandbox) -> None:
    sandbox.folders = (os.open("/proc", os.O_PATH),)  # a file system that holds no bytes
    async with UsageWatcher(sandbox, Limits(memory_mb=512)) as usage:
        await asyncio.wait_for(usage.exceeded.wait(), 10)
        await asyncio.wait_for(sandbox.gone.wait(), 10)
    assert usage.met == "memory"


async def test_a_run_that_ends_just_then_does_not_hide_why_its_sandbox_was_ended(sandbox: Sandbox) -> None:
    sandbox.folders = (os.open("/proc", os.O_PATH),)
    async with UsageWatcher(sandbox, Limits(memory_mb=512)) as usage:
        usage.begin_run()
        await asyncio.wait_for(usage.exceeded.wait(), 10)
        usage.end_run()
        assert (usage.met, usage.exceeded.is_set()) == ("memory", True)


async def test_what_takes_long_to_read_is_read_for_a_hundredth_of_the_time(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    sandbox.folders = (os.open("/proc", os.O_PATH),)
    looks, exact, looked_often = 0, 0, asyncio.Event()
    loop = asyncio.get_running_loop()

    def count_look(pid: int) -> int:
        nonlocal looks
        looks += 1
        if looks == 50:
            loop.call_soon_threadsafe(looked_often.set)
        return resident_bytes(pid)

    def read_slowly(pid: int) -> ExactMemory:
        nonlocal exact
        exact += 1
        until = time.thread_time() + 0.02
        while time.thread_time() < until:
            pass
        return exact_memory(pid)

    monkeypatch.setattr(usage, "_IN_A_RUN_S", 0.01)
    monkeypatch.setattr(usage, "resident_bytes", count_look)
    monkeypatch.setattr(usage, "exact_memory", read_slowly)
    began = time.monotonic()
    async with UsageWatcher(sandbox, Limits(memory_mb=1024)) as watch:
        watch.begin_run()
        await asyncio.wait_for(looked_often.wait(), 60)

    assert exact <= 1 + (time.monotonic() - began) / 2
    assert watch.met is None
    assert (watch.peak_bytes or 0) > 600 << 20


@pytest.mark.parametrize(
    "held",
    [
        "kept = b'x' * (600 << 20); child = os.fork()",  # from then on, no page is of one process alone
        "kept = mmap.mmap(-1, 400 << 20); kept.write(b'x' * (400 << 20)); child = os.fork()\n"
        "    if child: own = b'x' * (200 << 20)\n"
        "    else: kept[::4096]",
    ],
    ids=["private memory after a fork", "shared memory beside private"],
)
async def test_what_two_processes_of_a_sandbox_share_is_memory_of_the_sandbox(tmp_path: Path, held: str) -> None:
    lines = (
        "import mmap, os, sys",
        "if os.fork() == 0:",  # as a kernel of PID 1
        f"    {held}",
        "    if child: print(flush=True)",
        "sys.stdin.read()",
    )
    async with holding(tmp_path, "\n".join(lines)) as sandbox:
        sandbox.folders = (os.open("/proc", os.O_PATH),)
        async with UsageWatcher(sandbox, Limits(memory_mb=512)) as usage:
            assert (await usage.memory_bytes() or 0) > 600 << 20
            await asyncio.wait_for(usage.exceeded.wait(), 10)
    assert usage.met == "memory"


async def test_a_sandbox_without_limits_that_cannot_be_read_twice_is_ended(sandbox: Sandbox) -> None:
    with capture_logs() as logs:
        async with UsageWatcher(sandbox, Limits(memory_mb=1024)) as usage:
            await asyncio.wait_for(sandbox.gone.wait(), 10)
    assert usage.met is None
    assert [entry["event"] for entry in logs] == ["sandbox ended: its use of memory is unknown"]


OF_NO_PROCESS = "sockets: used 9\nTCP: inuse 301 orphan 0 tw 0 alloc 1 mem 1\nUDP: inuse 100 mem 2\n"
CLOSED = "sockets: used 411\nTCP: inuse 1 orphan 0 tw 0 alloc 1 mem 1\nUDP: inuse 0 mem 2\n"


def test_memory_counts_after_the_first_thread_of_its_process_has_ended() -> None:
    program = """
import ctypes, os, sys, threading
def hold():
    kept = b"x" * 2**26
    print(flush=True)
    sys.stdin.read()
    os._exit(len(kept) == 0)
threading.Thread(target=hold).start()
ctypes.CDLL(None).pthread_exit(None)
"""
    with subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout
        process.stdout.readline()
        while "State:\tZ" not in Path(f"/proc/{process.pid}/status").read_text():
            time.sleep(0.01)
        assert resident_bytes(process.pid) > 2**26
        assert exact_memory(process.pid).own > 2**26


@pytest.mark.parametrize(
    ("told", "sixth", "unix", "most", "too_many"),
    [
        (OF_NO_PROCESS, "TCP6: inuse 0\nUDP6: inuse 0\n", 5, 401, False),
        (OF_NO_PROCESS, "TCP6: inuse 1\nUDP6: inuse 0\n", 5, 401, True),
        (OF_NO_PROCESS, "TCP6: inuse 0\nUDP6: inuse 1\n", 5, 401, True),
        (CLOSED, None, 10, 401, False),
        (CLOSED, None, 9, 401, True),
        (CLOSED, None, 10_000, 401, False),
        (None, None, 0, 0, False),
    ],
)
def test_closed_sockets_and_those_of_no_process_count_and_unix_sockets_do_not(
    tmp_path: Path, told: str | None, sixth: str | None, unix: int, most: int, too_many: bool
) -> None:
    network = tmp_path / "7/net"
    network.mkdir(parents=True)
    protocols = (
        f"UNIX-STREAM 1152 {unix - unix // 2} -1 NI\nUNIX      1152 {unix // 2:6} -1 NI\nNETLINK   1096  99  -1 NI\n"
    )
    for name, text in (("sockstat", told), ("sockstat6", sixth), ("protocols", protocols)):
        if text is not None:
            (network / name).write_text(text)
    assert has_too_many_sockets(7, most, tmp_path) is too_many


def test_the_sockets_of_a_process_are_read() -> None:
    kept = [socket.socketpair() for _ in range(20)]
    assert not has_too_many_sockets(os.getpid(), 1_000_000)
    listening = [socket.create_server(("127.0.0.1", 0)) for _ in range(20)]
    assert has_too_many_sockets(os.getpid(), 19)
    for one in (*listening, *(end for pair in kept for end in pair)):
        one.close()


def test_a_unix_socket_with_line_breaks_in_its_name_is_one_socket() -> None:
    with contextlib.ExitStack() as kept:
        for number in range(10):
            named = kept.enter_context(socket.socket(socket.AF_UNIX))
            named.bind(f"\0{os.getpid()} {number}".encode().ljust(108, b"\n"))
        for _ in range(300):  # far more than 199: others may open Unix sockets between the two counts
            kept.enter_context(socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0))
        assert has_too_many_sockets(os.getpid(), 199)


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
