"""Programs that speak the wire protocol by hand, to fill the supervisor's memory with a message without end."""

from __future__ import annotations

import asyncio

import psutil

from runners.client import RunnerClient
from runners.protocol import Outcome
from tests.factories.node import Learner, Node

PREPARE = """
import os, socket, time
connected, listening = [], None
for fd in range(3, 300):
    try:
        s = socket.socket(fileno=os.dup(fd))
        if s.family == socket.AF_UNIX and str(s.getsockname()).endswith('k-2'):
            if s.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN): listening = s
            else: connected.append(s)
    except OSError: pass
never_last = b'\\x03' + (500_000).to_bytes(8, 'big') + b'x' * 500_000
def flood(connection):
    connection.setblocking(True)
    for _ in range(600): connection.sendall(never_last)
kernel = os.getpid()
def after_the_run():
    os.setsid(); time.sleep(0.5); os.kill(kernel, 19)  # the kernel stops, and with it ZeroMQ's own threads
"""
STEP_IN = """
if os.fork() == 0:
    after_the_run()
    for c in connected: c.shutdown(2)
    listening.setblocking(True)
    c, _ = listening.accept()
    c.sendall(b'\\xff' + bytes(8) + b'\\x7f\\x03\\x00' + b'NULL'.ljust(20, b'\\0') + bytes(32))
    time.sleep(0.1)
    ready = b'\\x05READY\\x0bSocket-Type' + (3).to_bytes(4, 'big') + b'PUB'
    c.sendall(b'\\x04' + bytes([len(ready)]) + ready)
    flood(c)
    os._exit(0)
"""
GO_ON = """
if os.fork() == 0:
    after_the_run()
    for c in connected: flood(c)
    os._exit(0)
"""


async def _growth(node: Node, learner: Learner, code: str) -> float:
    """How much the supervisor grows after the run, in MiB, until the flood is over or the kernel replaced."""
    supervisor = psutil.Process(node.pid)
    before = top = supervisor.memory_info().rss
    assert (await learner.run(PREPARE + code)).outcome == Outcome.ok
    for _ in range(40):
        await asyncio.sleep(0.1)
        top = max(top, supervisor.memory_info().rss)
        if (await learner.client.session(learner.session)).generation:
            break
    return (top - before) / 2**20


async def test_who_steps_in_for_an_idle_kernel_is_cut_off(node: Node, client: RunnerClient) -> None:
    learner = Learner(client)
    growth = await _growth(node, learner, STEP_IN)
    assert (await client.session(learner.session)).generation == 1
    assert growth < 100
    assert (await learner.run("1 + 1")).result == "2"
    await learner.leave()


async def test_a_message_without_end_on_the_kernels_own_connection_is_bounded(node: Node, client: RunnerClient) -> None:
    learner = Learner(client)
    growth = await _growth(node, learner, GO_ON)
    await learner.leave()
    assert growth < 100
