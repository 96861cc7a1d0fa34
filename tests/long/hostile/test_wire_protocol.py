"""Programs that speak the wire protocol by hand to fill the supervisor's memory, hang it, or impersonate a kernel."""

from __future__ import annotations

import asyncio

import psutil
import pytest

from runners.wire.client import RunnerClient
from runners.wire.protocol import Outcome
from tests.factories.real_supervisor import RealSupervisor, SessionClient

MOST_GROWTH_MB = 50
"""Of the supervisor, after it and at its worst moment."""

PREPARE = """
import os, socket, time
connected, listening = {'k-1': [], 'k-2': []}, {}
for fd in range(3, 300):
    try:
        s = socket.socket(fileno=os.dup(fd))
        name = str(s.getsockname())[-3:]
        if s.family != socket.AF_UNIX or name not in connected: continue
        if s.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN): listening[name] = s
        else: connected[name].append(s)
    except OSError: pass
shell, iopub = connected['k-1'][0], connected['k-2'][0]
def say(data, channel=iopub):
    channel.setblocking(True)
    channel.sendall(data)
def greet(c, kind):
    c.sendall(b'\\xff' + bytes(8) + b'\\x7f\\x03\\x00' + b'NULL'.ljust(20, b'\\0') + bytes(32))
    time.sleep(0.1)
    ready = b'\\x05READY\\x0bSocket-Type' + len(kind).to_bytes(4, 'big') + kind
    c.sendall(b'\\x04' + bytes([len(ready)]) + ready)
never_last = b'\\x03' + (500_000).to_bytes(8, 'big') + b'x' * 500_000
ping = b'\\x04\\x07\\x04PING\\x00\\x00'
kernel = os.getpid()
def waiting():
    threads = [open(f'/proc/{kernel}/task/{thread}/stat').read() for thread in os.listdir(f'/proc/{kernel}/task')]
    return all(thread.rpartition(')')[2].split()[0] == 'S' for thread in threads)
def after_the_run():
    os.setsid()
    quiet = 0
    while quiet < 10:  # it has sent all: on a busy machine, a thread that has not would still be ready to run
        quiet = quiet + 1 if waiting() else 0
        time.sleep(0.05)
    os.kill(kernel, 19)  # the kernel stops, and with it ZeroMQ's own threads
"""

BREAKING = {
    "an oversized frame": ("say(b'\\x02' + (1 << 40).to_bytes(8, 'big') + bytes(1 << 20))", Outcome.output),
    "an oversized frame on the shell channel": ("say(b'\\x02' + (1 << 40).to_bytes(8, 'big'), shell)", Outcome.output),
    "a message without end": ("for _ in range(600): say(never_last)", Outcome.output),
    "a message without end on the shell channel": ("for _ in range(600): say(never_last, shell)", Outcome.output),
    "a million empty frames": ("say(b'\\x01\\x00' * 1_000_000)", Outcome.crash),
    "PINGs without end": ("while True: say(ping * 10_000)", Outcome.crash),
    "another protocol": ("say(b'HTTP/1.1 400 Bad Request\\r\\n' * 10_000)", Outcome.crash),
    "one channel closed": ("iopub.shutdown(2)", Outcome.crash),
    "the other channel closed": ("shell.shutdown(2)", Outcome.crash),
    "a byte now and then": (
        "say(b'\\x02' + (500_000).to_bytes(8, 'big'))\nfor _ in range(10**6): say(b'x'); time.sleep(0.02)",
        Outcome.timeout,
    ),
    "half a message": ("say(never_last[:1000])", Outcome.timeout),
}
"""What is written in the middle of a run onto the kernel's own connection, and how the run ends."""

DROPPED = {
    "no Jupyter messages": "for _ in range(20_000): say(b'\\x00\\x04junk')",
    "unsigned messages": "for _ in range(20_000): say(b'\\x01\\x09<IDS|MSG>' + b'\\x01\\x00' * 4 + b'\\x00\\x00')",
    "PINGs now and then": "for _ in range(100): say(ping * 5)",
    "JSON that takes thirty times its size": """
session = get_ipython().kernel.session
iopub_thread = get_ipython().kernel.iopub_thread
def sign(content):
    parts = [b'{"msg_id": "1", "msg_type": "stream"}', b'{}', b'{}', content]
    iopub_thread.send_multipart([b'<IDS|MSG>', session.sign(parts), *parts])
sign(b'{"x": [' + b'{},' * 500_000 + b'0]}')
sign(b'{"x": ' + b'[' * 1_500_000)
sign(b'{"x": "' + b'\\\\"[' * 400_000 + b'"')
""",
}
"""Invalid messages that do no harm: the run continues."""

SILENT = """
session = get_ipython().kernel.session
parts = [b'{"msg_id": "1", "msg_type": "comm_msg"}', b'{}', b'{}', b'{"x": "' + b'x' * 1_000_000 + b'"}']
while True: get_ipython().kernel.iopub_thread.send_multipart([b'<IDS|MSG>', session.sign(parts), *parts])
"""

STEP_IN = """
if os.fork() == 0:
    after_the_run()
    iopub.shutdown(2)
    listening['k-2'].setblocking(True)
    c, _ = listening['k-2'].accept()
    greet(c, b'PUB')
    for _ in range(600): c.sendall(never_last)
    os._exit(0)
"""
GO_ON = """
if os.fork() == 0:
    after_the_run()
    for _ in range(600): say(never_last)
    os._exit(0)
"""
ANSWER_FOR_THE_NEXT = """
for name, reply in (('k-1', b'ROUTER'), ('k-2', b'no greeting at all')):
    if os.fork() == 0:
        os.setsid()
        listening[name].setblocking(True)
        while True:
            c, _ = listening[name].accept()
            if name == 'k-1': greet(c, reply)
            else: c.sendall(reply)
"""


def _rss_mb(node: RealSupervisor) -> float:
    return float(psutil.Process(node.pid).memory_info().rss) / 2**20


async def _growth(node: RealSupervisor, learner: SessionClient, code: str) -> float:
    """The growth of the supervisor after the run, in MiB, until the kernel is replaced."""
    before = top = _rss_mb(node)
    assert (await learner.run(PREPARE + code)).outcome == Outcome.ok
    async with asyncio.timeout(90):
        while not (await learner.client.session(learner.session)).generation:
            await asyncio.sleep(0.1)
            top = max(top, _rss_mb(node))
    return max(top, _rss_mb(node)) - before


async def test_large_messages_that_show_nothing_are_output_all_the_same(
    node: RealSupervisor, client: RunnerClient
) -> None:
    told = await SessionClient(client).run(SILENT)

    assert told.outcome == Outcome.output


@pytest.mark.parametrize(("code", "outcome"), list(BREAKING.values()), ids=list(BREAKING))
async def test_a_program_that_breaks_the_wire_ends_only_its_own_run(
    node: RealSupervisor, client: RunnerClient, code: str, outcome: Outcome
) -> None:
    learner, neighbour = SessionClient(client), SessionClient(client, topology="gpu:2")
    await neighbour.run("count = 41")
    await learner.run("1")
    before = _rss_mb(node)
    timeout_s = 1 if outcome == Outcome.timeout else 20
    run = asyncio.create_task(learner.run(PREPARE + code + "\ntime.sleep(60)", timeout_s=timeout_s))
    await asyncio.wait({run}, timeout=0.5)
    assert (await neighbour.run("count + 1")).result == "42"

    told = await run
    assert (await learner.run("1 + 1")).result == "2"
    assert _rss_mb(node) - before < MOST_GROWTH_MB
    assert told.outcome == outcome
    assert (await client.session(learner.session)).generation == 1
    await learner.leave()
    await neighbour.leave()


@pytest.mark.parametrize("code", list(DROPPED.values()), ids=list(DROPPED))
async def test_what_is_no_message_is_dropped_and_the_run_goes_on(
    node: RealSupervisor, client: RunnerClient, code: str
) -> None:
    learner = SessionClient(client)
    await learner.run("1")
    before = _rss_mb(node)
    told = await learner.run(PREPARE + code + "\nprint('still here')")

    assert (told.outcome, told.stdout) == (Outcome.ok, "still here\n")
    assert (await learner.run("1 + 1")).result == "2"
    assert _rss_mb(node) - before < MOST_GROWTH_MB
    await learner.leave()


async def test_who_steps_in_for_an_idle_kernel_is_cut_off(node: RealSupervisor, client: RunnerClient) -> None:
    learner = SessionClient(client)
    growth = await _growth(node, learner, STEP_IN)
    assert (await client.session(learner.session)).generation == 1
    assert growth < MOST_GROWTH_MB
    assert (await learner.run("1 + 1")).result == "2"
    await learner.leave()


async def test_a_message_without_end_on_the_kernels_own_connection_is_bounded(
    node: RealSupervisor, client: RunnerClient
) -> None:
    learner = SessionClient(client)
    growth = await _growth(node, learner, GO_ON)
    assert (await learner.run("1 + 1")).result == "2"
    await learner.leave()
    assert growth < MOST_GROWTH_MB


async def test_nobody_answers_for_the_kernel_that_comes_next(node: RealSupervisor, client: RunnerClient) -> None:
    learner = SessionClient(client)
    assert (await learner.run(PREPARE + ANSWER_FOR_THE_NEXT)).outcome == Outcome.ok
    for generation in (1, 2):
        await client.restart(learner.session)
        assert (await learner.run("1 + 1")).result == "2"
        assert (await client.session(learner.session)).generation == generation
    await learner.leave()


async def test_sockets_that_a_program_has_shut_down_hold_up_no_restart(client: RunnerClient) -> None:
    """The kernel and PID 1 share open files: the sockets stay shut, and only another sandbox has new ones."""
    learner = SessionClient(client)
    await learner.run(PREPARE + "for s in listening.values(): s.shutdown(socket.SHUT_RDWR)", timeout_s=4)
    async with asyncio.timeout(30):  # a kernel that does not answer is given twice that
        await client.restart(learner.session)
        assert (await learner.run("1 + 1")).result == "2"
    await learner.leave()
