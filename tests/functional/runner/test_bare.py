"""A node without cgroups: what the supervisor counts by itself."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from runners.protocol import Limit, SessionState
from runners.settings import MiB
from tests.factories.node import Learner, Node

CPU = Limit(name="cpu", value=8, unit="s")
MEMORY = Limit(name="memory", value=512 * MiB, unit="bytes")

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
    "CPU time of one process": ("while True: pass", CPU),
    "CPU time of many processes": ("import os\nfor _ in range(5): os.fork()\nwhile True: pass", CPU),
    "CPU time of processes that end": (
        "import subprocess, sys\n"
        "code = 'import time\\nwhile time.process_time() < 0.5: pass'\n"
        "while True: subprocess.run([sys.executable, '-c', code])",
        CPU,
    ),
}
LEFT_BEHIND = {
    "CPU time": ("def work():\n    while True: pass", "cpu"),
    "memory": (
        "def work():\n    time.sleep(1)\n    global kept\n    kept = bytearray(600 * 2**20)\n    time.sleep(200)",
        "memory",
    ),
}


@pytest.fixture
async def learner(bare: Node) -> AsyncIterator[Learner]:
    """A learner on that node."""
    async with bare.client() as client:
        learner = Learner(client)
        yield learner
        await learner.leave()


@pytest.mark.parametrize(("code", "limit"), TOO_MUCH.values(), ids=TOO_MUCH)
async def test_what_a_run_uses_is_counted_over_all_its_processes(learner: Learner, code: str, limit: Limit) -> None:
    told = await learner.run(code)
    assert (told.outcome, told.finished.limit) == (limit.name, limit)


@pytest.mark.parametrize(("code", "because"), LEFT_BEHIND.values(), ids=LEFT_BEHIND)
async def test_what_a_run_leaves_behind_is_counted_too(learner: Learner, code: str, because: str) -> None:
    told = await learner.run(f"import threading, time\n{code}\nthreading.Thread(target=work).start()")
    assert told.outcome == "ok"
    for _ in range(3000):
        session = await learner.client.session(learner.session)
        if session.state == SessionState.gone:
            break
        await asyncio.sleep(0.1)
    assert session.gone_because == because


async def test_a_session_below_its_limits_is_left_alone_and_told_its_peak(learner: Learner) -> None:
    for _ in range(3):
        told = await learner.run("import time\nx = bytearray(200 * 2**20)\ntime.sleep(0.6)")
        assert (told.outcome, told.finished.limit) == ("ok", None)
        assert told.finished.peak_bytes is not None
        assert 200 * MiB < told.finished.peak_bytes < 400 * MiB
