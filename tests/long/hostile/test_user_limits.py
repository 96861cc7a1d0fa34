"""Resources that the kernel counts per user: no session uses them up for its neighbor."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from runners.wire.client import RunnerClient
from runners.wire.protocol import Outcome
from tests.factories.real_supervisor import RealSupervisor, SessionClient
from tests.long.hostile.conftest import LIMITS, Attack

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give each session a user of its own")

EXHAUST = """
import ctypes, fcntl, os
libc = ctypes.CDLL(None)
watchers = []
while (fd := libc.inotify_init()) >= 0: watchers.append(fd)
pipes = []
try:
    while True:
        pipes += os.pipe()
        fcntl.fcntl(pipes[-1], fcntl.F_SETPIPE_SZ, 1 << 20)
except OSError as e:
    print(len(watchers), len(pipes) // 2, e)
"""
NEED = """
import ctypes, fcntl, os
fd = ctypes.CDLL(None).inotify_init()
_, end = os.pipe()
print(fd >= 0, fcntl.fcntl(end, fcntl.F_GETPIPE_SZ), fcntl.fcntl(end, fcntl.F_SETPIPE_SZ, 1 << 20))
"""


def _sandboxes(node: RealSupervisor) -> tuple[list[psutil.Process], list[psutil.Process]]:
    """(PID 1 of each sandbox, their kernels) of a node, as seen from outside."""
    zygotes = {zygote.pid for zygote in node.zygotes()}
    users = node.uids[1:] or node.uids  # without root, all are one
    ours = [p for p in psutil.process_iter(["uids", "ppid"]) if p.info["uids"] and p.info["uids"].real in users]
    firsts = [p for p in ours if p.info["ppid"] in zygotes and _is_first(p)]
    return firsts, [p for p in ours if p.info["ppid"] in {first.pid for first in firsts}]


def _is_first(process: psutil.Process) -> bool:
    """Whether it is PID 1 of its namespace, not the child of the zygote that still waits to have made one."""
    try:
        numbers = next(line for line in _words(process.pid, "status").splitlines() if line.startswith("NSpid:"))
    except (FileNotFoundError, ProcessLookupError):
        return False
    return numbers.split()[-1] == "1"


def _words(process: int, file: str) -> str:
    return Path(f"/proc/{process}/{file}").read_text()


def _locks_of_the_machine() -> int:
    return len(Path("/proc/locks").read_text().splitlines())


LOCKS = """
import fcntl, os, struct
kept, refused = [], 0
for file in range(10):
    kept.append(os.open(f'/tmp/lock{file}', os.O_RDWR | os.O_CREAT))
    for n in range(1000):
        for command, start in ((fcntl.F_SETLK, 4 * n), (fcntl.F_OFD_SETLK, 4 * n + 2)):
            try: fcntl.fcntl(kept[-1], command, struct.pack('hhqqi4x', fcntl.F_WRLCK, 0, start, 1, 0))
            except OSError: refused += 1
print(len(kept), refused)
"""


async def test_locks_of_ranges_of_bytes_take_no_memory_of_the_kernels(attack: Attack) -> None:
    """No cgroup counts them, and as many as a program likes fit in one file."""
    before = _locks_of_the_machine()
    held = await attack.run(LOCKS)
    assert _locks_of_the_machine() - before < 500
    assert held.stdout == "10 10000\n", held.text


@needs_root
async def test_watches_and_pipes_are_used_up_for_nobody_else(client: RunnerClient) -> None:
    greedy, neighbour = SessionClient(client), SessionClient(client)
    await neighbour.run("1")
    took = await greedy.run(EXHAUST)
    beside = await neighbour.run(NEED)
    for learner in (greedy, neighbour):
        await learner.leave()
    assert took.stdout.startswith("16 "), took.text + str(took.events)
    assert beside.stdout == f"True {1 << 16} {1 << 20}\n"


@needs_root
async def test_each_session_is_a_user_of_its_own_and_none_the_zygotes(
    node: RealSupervisor, client: RunnerClient
) -> None:
    first, second = SessionClient(client), SessionClient(client)
    inside = [(await learner.run("import os; print(os.getuid(), os.getgid())")).stdout for learner in (first, second)]
    firsts, kernels = _sandboxes(node)
    owners = [p.info["uids"].real for p in firsts]
    for learner in (first, second):
        await learner.leave()
    assert inside == ["1000 1000\n"] * 2
    assert len(owners) == len(set(owners)) >= 2
    assert {p.info["uids"].real for p in kernels} <= set(owners)
    assert node.uids[1] not in owners
    assert {zygote.uids().real for zygote in node.zygotes()} == {node.uids[1]}


@needs_root
def test_a_zygote_keeps_the_right_to_change_users_and_no_other(node: RealSupervisor) -> None:
    assert node.zygotes()
    for zygote in node.zygotes():
        status = dict(line.split(":\t", 1) for line in _words(zygote.pid, "status").splitlines())
        assert int(status["CapEff"], 16) == int(status["CapPrm"], 16) == 1 << 6 | 1 << 7
        assert int(status["CapInh"], 16) == int(status["CapAmb"], 16) == 0
        assert (status["NoNewPrivs"], status["Seccomp"]) == ("1", "2")


async def test_a_session_is_in_its_cgroup_before_its_first_line(node: RealSupervisor, client: RunnerClient) -> None:
    if not node.cgroups():
        pytest.skip("no cgroup can be written here")
    learner = SessionClient(client)
    told = await learner.run("print(open('/proc/1/cgroup').read(), open('/proc/self/cgroup').read())")
    _, kernels = _sandboxes(node)
    groups = []
    for process in (number for kernel in kernels for number in (kernel.pid, kernel.info["ppid"])):
        with suppress(FileNotFoundError, ProcessLookupError):  # what a kernel started may have ended
            groups.append(_words(process, "cgroup"))
    await learner.leave()
    first, itself = told.stdout.split("\n ")
    assert first.strip() == itself.strip()
    assert f"/lockstep-{node.pid}/" in first
    assert len(groups) >= 2
    assert all(f"/lockstep-{node.pid}/" in group for group in groups)
    assert first.strip() in [group.strip() for group in groups]


IN_SOCKETS = """
import socket
server, held, kept = socket.create_server(('127.0.0.1', 0), backlog=200), 0, []
while held < 600 << 20 and len(kept) < 300:
    sender = socket.socket()
    sender.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 22)
    sender.connect(server.getsockname())
    kept += [sender, server.accept()[0]]
    sender.setblocking(False)
    try:
        while held < 600 << 20: held += sender.send(bytes(65536))
    except BlockingIOError: pass
print(held >> 20)
"""


async def test_what_waits_in_tcp_sockets_is_memory_of_the_session_too(
    node: RealSupervisor, client: RunnerClient
) -> None:
    if not node.cgroups():
        pytest.skip("no cgroup can be written here")
    learner = SessionClient(client)
    told = await learner.run(IN_SOCKETS)
    await learner.leave()
    assert told.outcome in (Outcome.ok, Outcome.memory)
    if told.outcome == Outcome.ok:
        assert int(told.stdout) < LIMITS["memory_mb"]
