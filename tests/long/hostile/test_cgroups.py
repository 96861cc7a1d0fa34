"""Groups as the kernel of this machine gives them, version 1 or 2: each limit is in force and each counter counts.

Nothing but forks and the cgroups module is needed here, so it also runs in a small virtual machine.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import secrets
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from runners.config.settings import Limits, MiB
from runners.sandbox import cgroups
from runners.sandbox.cgroups import CgroupManager, SessionCgroup
from tests.factories.unprivileged_user import unprivileged_command

PLAIN_USER = 65_533
LIMITS = Limits(memory_mb=256, processes=16, cpu_cores=0.5)


@pytest.fixture
def groups() -> Iterator[CgroupManager]:
    groups = cgroups.detect()
    if not groups.version:
        pytest.skip("no cgroup may be made here")
    yield groups
    groups.close()
    assert not left_of(os.getpid())


@pytest.fixture
def group(groups: CgroupManager) -> Iterator[SessionCgroup]:
    group = groups.create("one", LIMITS)
    yield group
    wait_until(group.remove)


def wait_until(true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 5
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def left_of(supervisor: int) -> list[str]:
    """The groups of a supervisor; those of others may come and go meanwhile."""
    return [top for top, *_ in os.walk("/sys/fs/cgroup") if top.endswith(f"/lockstep-{supervisor}")]


def inside(group: SessionCgroup, work: Callable[[], None]) -> int:
    """Do the work in a process in the group; returns its exit status, negative for a signal."""
    ready, go = os.pipe()
    pid = os.fork()
    if not pid:
        status = 1
        try:
            os.read(ready, 1)
            work()
            status = 0
        finally:
            os._exit(status)
    group.add(pid)
    os.write(go, b"x")
    os.close(ready)
    os.close(go)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def hold(megabytes: int) -> None:
    kept = mmap.mmap(-1, megabytes * MiB)
    for page in range(0, megabytes * MiB, mmap.PAGESIZE):
        kept[page] = 1


def spin(cpu_s: float) -> None:
    while time.process_time() < cpu_s:
        pass


def fork_without_end() -> None:
    os.setsid()
    try:
        while True:
            if not os.fork():
                signal.pause()
    except OSError:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        os.killpg(0, signal.SIGTERM)


def test_a_new_group_has_met_nothing(group: SessionCgroup) -> None:
    facts = group.facts()
    assert (facts.oom_kills, facts.forks_refused) == (0, 0)
    assert facts.cpu_s is not None
    assert facts.cpu_s < 0.1
    assert facts.peak_bytes is not None
    assert facts.peak_bytes < 8 * MiB


def test_memory_below_the_limit_is_counted_and_its_peak_is_reset(group: SessionCgroup) -> None:
    assert inside(group, lambda: hold(100)) == 0
    facts = group.facts()
    assert facts.oom_kills == 0
    assert 100 * MiB <= (facts.peak_bytes or 0) < 200 * MiB

    group.reset_peak()
    assert (group.facts().peak_bytes or 0) < 50 * MiB
    assert inside(group, lambda: hold(60)) == 0
    assert (group.facts().peak_bytes or 0) < 160 * MiB


def test_the_second_peak_is_its_own(group: SessionCgroup) -> None:
    for megabytes in (40, 90, 140):
        group.reset_peak()
        assert inside(group, lambda: hold(megabytes)) == 0  # noqa: B023 - called at once
        assert megabytes * MiB <= (group.facts().peak_bytes or 0) < (megabytes + 45) * MiB


def test_memory_beyond_the_limit_ends_the_process_and_is_counted(group: SessionCgroup) -> None:
    assert inside(group, lambda: hold(300)) == -signal.SIGKILL
    facts = group.facts()
    assert facts.oom_kills == 1
    assert 240 * MiB <= (facts.peak_bytes or 0) <= 257 * MiB


def test_processes_beyond_the_limit_are_refused_and_counted(group: SessionCgroup) -> None:
    assert inside(group, fork_without_end) == 0
    assert group.facts().forks_refused >= 1


def test_cpu_time_of_all_processes_is_counted_and_rationed(group: SessionCgroup) -> None:
    began = time.monotonic()

    def two() -> None:
        child = os.fork()
        spin(0.4)
        if child:
            os.waitpid(child, 0)
        else:
            os._exit(0)

    assert inside(group, two) == 0
    assert 0.7 <= (group.facts().cpu_s or 0) < 1.5
    assert time.monotonic() - began > 1.2  # half a core gives 0.8 s of CPU time in 1.6 s


def test_a_group_in_use_cannot_be_removed(group: SessionCgroup) -> None:
    inside(group, lambda: None)
    pid = os.fork()
    if not pid:
        signal.pause()
        os._exit(0)
    group.add(pid)
    assert not group.remove()
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)


def test_what_a_dead_supervisor_left_is_swept(groups: CgroupManager) -> None:
    child = os.fork()
    if not child:
        cgroups.detect().create("left", LIMITS)
        os._exit(not left_of(os.getpid()))  # asked before its end: any supervisor that starts may sweep afterwards
    assert os.waitpid(child, 0)[1] == 0
    again = os.fork()
    if not again:
        cgroups.detect().close()
        os._exit(0)
    os.waitpid(again, 0)
    wait_until(lambda: not left_of(child))  # another supervisor may be removing it, too


def test_a_group_of_version_2_that_belongs_to_a_plain_user_is_divided_with_all_in_it(groups: CgroupManager) -> None:
    if groups.version != 2:
        pytest.skip("sessions get groups of version 1 here")
    scope = Path(left_of(os.getpid())[0]).with_name(f"lt-{secrets.token_hex(4)}")
    scope.mkdir()
    cgroups._hand_over(scope, PLAIN_USER if os.geteuid() == 0 else os.geteuid())
    enter = ["sh", "-c", 'echo $$ > "$0/cgroup.procs"; exec "$@"', str(scope), *unprivileged_command(PLAIN_USER)]
    shells = ["sh", "-c", '"$@"; true', "sh"] * 2  # two processes around it, as in `make serve`
    divide = "from runners.sandbox import cgroups as c; found = c.detect(); print(found._base); found.close()"
    try:
        done = subprocess.run([*enter, *shells, sys.executable, "-c", divide], capture_output=True, text=True)
        assert Path(done.stdout.strip()).parent == scope, done.stderr
    finally:
        wait_until(lambda: cgroups._rmdir([*scope.glob("*/"), scope]))


def fill_sockets(kind: str) -> list[socket.socket]:
    """Send as much as the machine takes to sockets of this process that nobody reads; it is there while they are."""
    kept: list[socket.socket] = []
    refused = 0
    while len(kept) < 400 and refused < 50:
        if kind == "tcp":
            server = socket.create_server(("127.0.0.1", 0))
            sender = socket.socket()
            sender.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 22)
            sender.connect(server.getsockname())
            kept += [server, sender, server.accept()[0]]
        else:
            receiver, sender = (socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(2))
            receiver.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
            receiver.bind(("127.0.0.1", 0))
            sender.connect(receiver.getsockname())
            kept += [receiver, sender]
        sender.setblocking(False)
        sent = 0
        with contextlib.suppress(OSError):
            for _ in range(400):
                sent += sender.send(bytes(32_768))
        refused += sent < 1 << 16
    return kept


@pytest.mark.parametrize("kind", ["tcp", "udp"])
def test_sessions_together_hold_less_than_half_of_what_tcp_may_have(groups: CgroupManager, kind: str) -> None:
    bases = [Path(top) for top in left_of(os.getpid()) if Path(top, "memory.kmem.tcp.usage_in_bytes").exists()]
    if not bases:
        pytest.skip("sockets are not counted separately here")
    before, full, ended, children = _in_sockets(kind), os.pipe(), os.pipe(), []
    most = cgroups.most_in_sockets()  # a quarter of tcp_mem, which a container cannot read
    sessions = [groups.create(f"sockets-{n}", Limits(memory_mb=2048)) for n in range(8)]
    for session in sessions:
        pid = os.fork()
        if not pid:
            session.add(os.getpid())
            try:
                kept = fill_sockets(kind)
                os.write(full[1], b"x")
                os.close(ended[1])
                os.read(ended[0], 1)
                del kept
            finally:
                os._exit(0)
        children.append(pid)
        assert os.read(full[0], 1)
    held = _in_sockets(kind) - before
    for end in (*full, *ended):
        os.close(end)
    for pid in children:
        os.waitpid(pid, 0)
    for session in sessions:
        wait_until(session.remove)

    print(kind, held >> 20, "MiB of", most >> 20)
    assert most / 8 < held < 2 * most


def _in_sockets(kind: str) -> int:
    """Bytes in all sockets of this machine, as its kernel counts them."""
    line = next(x for x in Path("/proc/net/sockstat").read_text().splitlines() if x.startswith(f"{kind.upper()}:"))
    return int(line.split()[-1]) * mmap.PAGESIZE
