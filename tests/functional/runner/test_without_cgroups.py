"""A node without cgroups, as in a container: the supervisor measures by itself, and reports what is in force."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from runners.config.settings import MiB
from runners.jupyter.lease_client import Lease
from runners.wire.client import RequestRefused, RunnerClient
from runners.wire.protocol import Health, LeaseRequest, Outcome, ReachedLimit
from tests.factories import short_timeouts
from tests.factories.real_supervisor import RealSupervisor, SessionClient

CPU_S = 3
CPU = ReachedLimit(name="cpu", value=CPU_S, unit="s")
MEMORY = ReachedLimit(name="memory", value=512 * MiB, unit="bytes")

TOO_MUCH = {
    "files": (
        "import time\n"
        "for place in ('/tmp/a', '/home/learner/a'):\n"
        "    with open(place, 'wb') as f:\n"
        "        for _ in range(300): f.write(bytes(2**20))\n"
        "time.sleep(200)",
        MEMORY,
    ),
    "memory of its own": ("kept = []\nwhile True: kept.append(bytearray(10**7))", MEMORY),
    "memory of many processes": (
        "import os, time\n"
        "for _ in range(5):\n"
        "    if os.fork() == 0: break\n"
        "kept = bytearray(120 * 2**20)\n"
        "time.sleep(200)",
        MEMORY,
    ),
    "memory that two processes share": (
        "import mmap, os, time\n"
        "kept = mmap.mmap(-1, 600 * 2**20)\n"
        "os.fork()\n"
        "for page in range(0, len(kept), 4096): kept[page] = 1\n"
        "time.sleep(200)",
        MEMORY,
    ),
    "page tables": (
        "import mmap, time\n"
        "kept = mmap.mmap(-1, 300 << 30, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, prot=mmap.PROT_READ)\n"
        "for at in range(0, len(kept), 2 << 20): kept[at]\n"
        "time.sleep(200)",
        MEMORY,
    ),
    "a program that nobody may read": (
        "import os, shutil, subprocess, sys\n"
        "shutil.copy(os.path.realpath(sys.executable), '/tmp/p')\n"
        "os.chmod('/tmp/p', 0o111)\n"
        "subprocess.run(['/tmp/p', '-c', 'kept = bytearray(600 << 20); import time; time.sleep(200)'])",
        MEMORY,
    ),
    "CPU time of one process": ("while True: pass", CPU),
    "CPU time of many processes": ("import os\nfor _ in range(2): os.fork()\nwhile True: pass", CPU),
    "CPU time of processes that end": (
        "import subprocess, sys\n"
        "code = 'import time\\nwhile time.process_time() < 0.2: pass'\n"
        "while True: subprocess.run([sys.executable, '-c', code])",
        CPU,
    ),
    "threads": (
        "import threading, time\nwhile True: threading.Thread(target=time.sleep, args=(100,)).start()",
        ReachedLimit(name="processes", value=128, unit="count"),
    ),
}
LONG_CASES = {
    *("memory of many processes", "memory that two processes share", "page tables", "a program that nobody may read"),
    *("CPU time of one process", "CPU time of many processes"),
}
"""Left to the long tests, because each takes seconds."""
LEFT_BEHIND = {  # not zeros: Linux 6.12 and later may free huge pages that hold nothing else, before anybody looks
    "CPU time": ("def work():\n    while True: pass", "cpu"),
    "memory": (
        "import signal\n"
        "def work():\n"
        "    while signal.getsignal(signal.SIGINT) is not signal.SIG_IGN: time.sleep(0.05)  # as in a cell\n"
        "    time.sleep(1)\n    global kept\n    kept = b'x' * (600 * 2**20)\n    time.sleep(200)",
        "memory",
    ),
}


def bare_node() -> RealSupervisor:
    """A node as in a container, not started: /proc is partly covered, and no cgroup is writable."""
    if os.geteuid() != 0:
        pytest.skip("only root can cover /proc for a test")
    covered = next((p for p in ("/proc/acpi", "/proc/scsi", "/proc/tty") if Path(p).is_dir()), None)
    if covered is None:
        pytest.skip("this kernel has no folder in /proc to cover")
    mounts = f"mount --make-rprivate / && mount -t tmpfs none {covered} && mount -t tmpfs none /sys/fs/cgroup"
    return RealSupervisor(
        ("unshare", "--mount", "sh", "-c", f'{mounts} && exec "$@"', "sh", sys.executable, short_timeouts.__file__),
        limits__run_s=300,
        limits__cpu_s=CPU_S,
        limits__memory_mb=512,
        limits__processes=128,
    )


@pytest.fixture(scope="module")
def bare_nodes() -> Iterator[list[RealSupervisor]]:
    """The nodes that tests have needed so far."""
    nodes: list[RealSupervisor] = []
    yield nodes
    for node in nodes:
        node.remove()


@pytest.fixture
def bare(bare_nodes: list[RealSupervisor]) -> RealSupervisor:
    """A node. Once it has heard of untrusted users, it runs no more code, and the next test gets another."""
    if not bare_nodes or bare_nodes[-1].health()["untrusted_users"]:
        bare_nodes.append(bare_node())
        bare_nodes[-1].start()
    return bare_nodes[-1]


@pytest.fixture
async def learner(bare: RealSupervisor) -> AsyncIterator[SessionClient]:
    """A learner on that node."""
    async with bare.client() as client:
        learner = SessionClient(client)
        yield learner
        await learner.leave()


@pytest.mark.parametrize(
    ("code", "limit"),
    [
        pytest.param(*case, id=name, marks=[pytest.mark.long] if name in LONG_CASES else [])
        for name, case in TOO_MUCH.items()
    ],
)
async def test_what_a_run_uses_is_counted_over_all_its_processes(
    learner: SessionClient, code: str, limit: ReachedLimit
) -> None:
    told = await learner.run(code)
    assert (told.outcome, told.finished.limit) == (limit.name, limit)
    assert (await learner.run("import time\ntime.sleep(1)\n1 + 1")).result == "2"  # long enough to be looked at


async def test_what_a_run_leaves_behind_is_counted_too(bare: RealSupervisor) -> None:
    async def gone_because(learner: SessionClient, code: str) -> str | None:
        told = await learner.run(f"import threading, time\n{code}\nthreading.Thread(target=work).start()")
        assert told.outcome == "ok"
        return (await client.wait_until_gone(learner.session)).gone_because

    async with bare.client() as client:  # all at once: between runs the supervisor looks every five seconds
        learners = {SessionClient(client): code for code, _ in LEFT_BEHIND.values()}
        try:
            async with asyncio.timeout(200):
                reasons = await asyncio.gather(*(gone_because(*each) for each in learners.items()))
        except TimeoutError:
            left = [await client.session(learner.session) for learner in learners]
            pytest.fail(f"still there: {left}\n{bare.log.read_text()[-4000:]}")
    assert reasons == [because for _, because in LEFT_BEHIND.values()]


async def test_a_session_below_its_limits_is_left_alone_and_its_peak_is_reported(learner: SessionClient) -> None:
    # Not zeros: Linux 6.12 and later may free huge pages that hold nothing else.
    assert (await learner.run("import time\nx = b'x' * (200 * 2**20)")).outcome == "ok"
    peak: int | None = None
    for _ in range(100):  # a run has a peak once somebody has looked while it lasted
        told = await learner.run("time.sleep(0.3)")
        assert (told.outcome, told.finished.limit) == ("ok", None)
        peak = told.finished.peak_bytes
        if peak is not None and peak > 200 * MiB:
            break
    assert peak is not None
    assert 200 * MiB < peak < 400 * MiB


async def test_where_proc_is_covered_and_no_cgroup_can_be_made_tensorflow_runs(bare: RealSupervisor) -> None:
    assert not bare.cgroups()
    assert "no cgroup" in str(bare.health()["safeguards"])
    async with bare.client() as client:
        told = await SessionClient(client).run(
            "import tensorflow as tf\nfrom pathlib import Path\n"
            "print(tf.distribute.MirroredStrategy().num_replicas_in_sync, Path('/proc/1').exists())\n"
            "print(float(tf.reduce_sum(tf.random.uniform((8, 8)) @ tf.eye(8))) > 0)"
        )
    assert told.outcome == Outcome.ok, told.events
    assert told.stdout.split()[-3:] == ["4", "False", "True"]


def test_without_cgroups_and_with_a_covered_proc_it_says_what_holds_instead(bare: RealSupervisor) -> None:
    health = Health.model_validate(bare.health())
    safeguards = {safeguard.name: safeguard for safeguard in health.safeguards}

    assert not health.safe
    assert {safeguard.name for safeguard in health.safeguards if not safeguard.in_force} - {"Landlock"} == {
        "own /proc",
        "memory",
        "CPU share",
    }
    assert safeguards["processes"].detail == "128 in a session; RLIMIT_NPROC"
    assert safeguards["memory"].detail == "only watched; memfd, shared memory, sockets and page tables escape"
    warnings = [line for line in bare.log.read_text().splitlines() if "safeguard missing: memory" in line]
    assert len(warnings) == 1


async def test_no_program_makes_a_nameless_file_whose_memory_nobody_counts(learner: SessionClient) -> None:
    told = await learner.run("import os\nos.memfd_create('x')")
    assert (told.outcome, told.error.name) == ("error", "PermissionError")


async def test_the_supervisor_goes_first_when_a_session_is_busy(learner: SessionClient) -> None:
    told = await learner.run(
        "import os\nprint(os.getpriority(os.PRIO_PROCESS, 0))\nos.setpriority(os.PRIO_PROCESS, 0, 0)"
    )
    assert (told.outcome, told.error.name, told.stdout) == ("error", "PermissionError", "10\n")


async def test_no_untrusted_users_code_runs_where_no_cgroup_limits_it(bare: RealSupervisor) -> None:
    lease = LeaseRequest(topology="cpu", key="0" * 32)
    leased = await asyncio.to_thread(Lease.take, bare.socket, lease)
    end = leased.hold()
    async with bare.client() as trusted, RunnerClient(bare.socket, untrusted_users=True) as web:
        mine = SessionClient(trusted)
        assert (await mine.run("print(1)")).stdout == "1\n"
        for learner in (SessionClient(web), mine):
            with pytest.raises(RequestRefused) as run:
                await learner.run("print(1)")
            assert (run.value.status, run.value.refusal.code) == (403, "unsafe")

    assert (await asyncio.to_thread(end.result, 90)).status == -signal.SIGKILL  # bare kernels end, too
    assert bare.ask("POST", "/kernels", lease.model_dump())[0] == 403
    health = Health.model_validate(bare.health())
    assert (health.untrusted_users, health.safe) == (True, False)
    assert health.refuses.endswith("'lockstep doctor' says what to do. Missing: memory, CPU share.")
