"""What one hostile run takes of the supervisor, which serves all sessions: CPU time and memory, read from outside."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator

import psutil
import pytest

from tests.factories.real_supervisor import RealSupervisor, SessionClient

OUTPUT_MB = 8
BURST_S = 0.5
"""What a sandbox may take at once, and then its share: together 5 % of 40 seconds."""
SHARE = 0.0375
_AT_REST = 0.02
"""Of a core, which a supervisor takes that answers a neighbor and looks after what it has; more on a slow machine."""
_ALLOCATOR_MB = 4
_SECONDS = 10

SEND = """
k = get_ipython().kernel
parent = k.get_parent()
def send(kind, content): k.session.send(k.iopub_socket, kind, content, parent=parent)
"""
PIECES = """
import os, socket
for fd in range(3, 300):
    try:
        s = socket.socket(fileno=os.dup(fd))
        if s.family == socket.AF_UNIX and str(s.getsockname()).endswith('k-2'): s.getpeername(); iopub = s
    except OSError: pass
iopub.setblocking(True)
iopub.sendall(b'\\x02' + (8_000_000).to_bytes(8, 'big'))
for _ in range(7_000_000): iopub.send(b'x')
"""
BUSY = {
    "states": SEND + "while True: send('status', {'execution_state': 'busy'})",
    "messages of an unknown type": SEND + "while True: send('nothing', {'x': 'y' * 1500})",
    "events": SEND + "while True: send('clear_output', {'wait': False})",
    "texts": SEND + "while True: send('stream', {'name': 'stdout', 'text': 'x'})",
    "single characters": "while True: print('x', end='', flush=True)",
    "comm messages": SEND + "while True: send('comm_msg', {'comm_id': 'x', 'data': {}})",
    "updates of a display": "h = display('x', display_id='a')\nwhile True: h.update('y')",
    "displays": (
        "from IPython.display import display\nx = [{} for _ in range(90)]\n"
        "while True: display({'application/x-nothing': x, 'text/plain': ''}, raw=True)"
    ),
    "a message byte by byte": PIECES,
    "runs that are short": "",
}
LARGE = {
    "displays of 98,000 empty objects": (
        "from IPython.display import display\nx = [{} for _ in range(98_000)]\n"
        "for _ in range(60): display({'application/json': x}, raw=True)"
    ),
    "displays of keys": (
        "from IPython.display import display\n"
        "for m in range(30): display({'application/json': {f'{m}-{n}': n + .5 for n in range(9_000)}}, raw=True)"
    ),
    "one wide character in each text": (
        "import time\nfor _ in range(120): print('x' * 60_000 + chr(0x1F389), flush=True); time.sleep(0.02)"
    ),
}


@pytest.fixture(scope="module")
def node() -> Iterator[RealSupervisor]:
    """A node with the output limit of an ordinary one."""
    node = RealSupervisor(limits__output_mb=OUTPUT_MB, limits__output_mb_per_s=OUTPUT_MB, limits__run_s=2 * _SECONDS)
    yield node.start()
    node.remove()


@pytest.fixture(scope="module")
def at_rest(node: RealSupervisor) -> float:
    """The share of a core that the supervisor takes here while nobody is hostile."""
    return max(_AT_REST, asyncio.run(_measure_rest(node)))


async def _measure_rest(node: RealSupervisor) -> float:
    async with node.client() as client:
        neighbor = SessionClient(client)
        await neighbor.run("1")
        node.wait(lambda: node.health()["warm_kernels"])
        process = psutil.Process(node.pid)
        cpu_s, began = _cpu_s(process), time.monotonic()
        presses = asyncio.create_task(_press_run(neighbor))
        await asyncio.wait({presses}, timeout=_SECONDS)
        share = (_cpu_s(process) - cpu_s) / (time.monotonic() - began)
        presses.cancel()
        await neighbor.leave()
    return share


def _cpu_s(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)


@pytest.mark.parametrize("code", list(BUSY.values()), ids=list(BUSY))
async def test_a_run_takes_a_twentieth_of_the_supervisors_time(node: RealSupervisor, at_rest: float, code: str) -> None:
    async with node.client() as client:
        learner = SessionClient(client)
        await learner.run("1")
        neighbor = SessionClient(client)
        await neighbor.run("1")
        node.wait(lambda: node.health()["warm_kernels"])  # nothing is made meanwhile
        process = psutil.Process(node.pid)
        cpu_s, began = _cpu_s(process), time.monotonic()
        runs = asyncio.create_task(learner.run(code)) if code else asyncio.create_task(_short_runs(learner))
        presses = asyncio.create_task(_press_run(neighbor))
        await asyncio.wait({runs}, timeout=_SECONDS)
        took, passed = _cpu_s(process) - cpu_s, time.monotonic() - began
        for task in (runs, presses):
            task.cancel()
        await learner.leave()
        await neighbor.leave()

    assert took < BURST_S + (SHARE + at_rest) * passed


async def _press_run(neighbor: SessionClient) -> None:
    while True:
        assert (await neighbor.run("print('hi')")).stdout == "hi\n"
        await asyncio.sleep(1)


async def _short_runs(learner: SessionClient) -> None:
    """Each floods for a moment, so that a share of its own for each would be all of the time."""
    flood = SEND + "import time\nuntil = time.monotonic() + 0.5\n"
    flood += "while time.monotonic() < until: send('clear_output', {'wait': False})"
    while True:
        await learner.run(flood)


@pytest.mark.parametrize("code", list(LARGE.values()), ids=list(LARGE))
async def test_output_that_is_not_stored_takes_no_more_than_twice_its_limit(node: RealSupervisor, code: str) -> None:
    async with node.client() as client:
        learner = SessionClient(client)
        await learner.run("1")
        node.wait(lambda: node.health()["warm_kernels"])  # nothing is made meanwhile
        before = psutil.Process(node.pid).memory_info().rss
        told = await learner.run(code)
        grown = psutil.Process(node.pid).memory_info().rss - before
        await client.acknowledge(told.id, told.events[-1].seq)
        await learner.leave()

    assert grown < (2 * OUTPUT_MB + _ALLOCATOR_MB) * 2**20
