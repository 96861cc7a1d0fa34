"""Stopping a run always works, whatever the program does against it; the session continues afterward."""

from __future__ import annotations

import asyncio
import json
import secrets

import psutil
import pytest

from runners.wire.client import RunnerClient
from runners.wire.protocol import ErrorEvent, Outcome, RunAccepted
from tests.factories.process_tree import ended
from tests.factories.real_supervisor import RecordedRun, SessionClient

# Two hold up the kernel itself. They begin with the first interrupt, when what they have printed has arrived.
STUBBORN = {
    "all signals blocked": (
        "import signal\nsignal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))\nprint('going', flush=True)\n"
        "while True: pass"
    ),
    "interrupts swallowed": (
        "print('going', flush=True)\nwhile True:\n    try:\n        while True: pass\n    except BaseException: pass"
    ),
    "a storm of SIGSTOP": (
        "import os, signal, time\nkernel = os.getpid()\nprint('going', flush=True)\n"
        "try: time.sleep(600)\nexcept KeyboardInterrupt: pass\n"
        "for _ in range(8):\n    if not os.fork():\n        os.setsid()\n        while True:\n"
        "            os.kill(kernel, signal.SIGSTOP)\n            time.sleep(0.001)\n"
        "while True: time.sleep(0.01)"
    ),
    "the GIL held in a C call": (
        "import ctypes, time\nprint('going', flush=True)\n"
        "try: time.sleep(600)\nexcept KeyboardInterrupt: ctypes.PyDLL(None).sleep(10_000)"
    ),
    "threads that compute without end": (
        "import threading, numpy as np\nmatrix = np.ones((500, 500))\ndef spin():\n    while True: matrix @ matrix\n"
        "for _ in range(8): threading.Thread(target=spin).start()\nprint('going', flush=True)\nspin()"
    ),
    "memory turned over at its limit": (
        "import mmap\nprint('going', flush=True)\nwhile True:\n    held = mmap.mmap(-1, 1_900_000_000)\n"
        "    for at in range(0, len(held), 4096): held[at] = 1"
    ),
    "vforked children that hold on": (
        "import subprocess\nprint('going', flush=True)\n"
        "while True: subprocess.run(['sh', '-c', 'trap \"\" INT TERM; sleep 1000'])"
    ),
}

PRINTS_UNTIL_INTERRUPTED = """
import json, random, signal
signal.signal(signal.SIGALRM, signal.getsignal(signal.SIGINT))
printed = []
for attempt in range(150):
    number = 0
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.001 + random.random() * 0.004)
        while True:
            print(attempt, number, flush=True)
            number += 1
    except KeyboardInterrupt:
        print()  # after half a line
        printed.append(number)
print(json.dumps(printed))
"""


async def stop(learner: SessionClient, accepted: RunAccepted) -> RecordedRun:
    """Stop the run once it has printed something."""
    async for event in learner.client.events(accepted.id):
        if event.kind == "text":
            break
    await learner.client.stop(accepted.id)
    return await learner.read(accepted)


async def test_runs_that_do_not_want_to_end_end(client: RunnerClient) -> None:
    """Stop all at once: each has its own patience, but together they wait only once."""

    async def outcome(learner: SessionClient, program: str) -> tuple[Outcome, str]:
        told = await stop(learner, await learner.submit(STUBBORN[program]))
        again = await learner.run("1 + 1")
        await learner.leave()
        return told.outcome, again.result

    learners = {program: SessionClient(client) for program in STUBBORN}
    outcomes = await asyncio.gather(*(outcome(learner, program) for program, learner in learners.items()))

    assert dict(zip(learners, outcomes, strict=True)) == dict.fromkeys(STUBBORN, (Outcome.interrupted, "2"))


async def test_a_run_that_prints_all_the_time_is_interrupted_and_keeps_its_variables(learner: SessionClient) -> None:
    flood = "import itertools\nkept = 'here'\nfor i in itertools.count(): print(i, flush=True)"
    told = await stop(learner, await learner.submit(flood))

    lines = told.stdout.splitlines()
    assert told.outcome == Outcome.interrupted
    assert lines[:-1] == [str(i) for i in range(len(lines) - 1)]
    assert (await learner.run("kept")).result == "'here'"


async def test_a_restart_does_not_wait_for_a_program_that_swallows_interrupts(learner: SessionClient) -> None:
    accepted = await learner.submit(STUBBORN["interrupts swallowed"])
    async for event in learner.client.events(accepted.id):
        if event.kind == "text":
            break
    await learner.client.restart(learner.session)

    told = await learner.read(accepted)
    assert told.outcome == Outcome.interrupted
    assert told.finished.duration_ms < 60_000
    assert (await learner.run("1 + 1")).result == "2"
    assert (await learner.client.session(learner.session)).generation == 1


@pytest.mark.long
async def test_where_pid_1_does_not_do_its_work_the_whole_sandbox_is_replaced(
    client: RunnerClient, learner: SessionClient
) -> None:
    mark = str(10**9 + secrets.randbelow(10**9))
    accepted = await learner.submit(
        f"import subprocess\nprint('going', flush=True)\nsubprocess.run(['sleep', '{mark}'])"
    )
    async for event in client.events(accepted.id):
        if event.kind == "text":
            break
    kernel = await started_by(mark)
    pid_1 = kernel.parent()
    assert pid_1 is not None
    pid_1.suspend()

    await client.stop(accepted.id)
    interrupted = await learner.read(accepted)

    assert interrupted.outcome == Outcome.interrupted
    assert (await learner.run("1 + 1")).result == "2"
    assert ended(pid_1)
    assert not [p for p in psutil.process_iter(["cmdline"]) if mark in (p.info["cmdline"] or ())]


async def started_by(argument: str) -> psutil.Process:
    """The kernel that started a process with this argument."""
    for _ in range(1000):
        for process in psutil.process_iter(["cmdline"]):
            if argument in (process.info["cmdline"] or ()) and (kernel := process.parent()):
                return kernel
        await asyncio.sleep(0.05)
    raise AssertionError(f"nothing was started with {argument}")


@pytest.mark.parametrize("topology", ["gpu:2", "workers:2"])
async def test_an_interrupt_leaves_what_tensorflow_knows_of_types_alone(client: RunnerClient, topology: str) -> None:
    learner = SessionClient(client, topology=topology)
    told = await learner.run(
        "import abc, os, signal, time\n"
        "class Asked(abc.ABC):\n"
        "    @classmethod\n"
        "    def __subclasshook__(cls, other):\n"
        "        os.kill(os.getpid(), signal.SIGINT)\n"
        "        return True\n"
        "print(isinstance(3, Asked), flush=True)\n"
        "time.sleep(60)"
    )
    await learner.leave()
    assert told.outcome == Outcome.error
    assert set(told.lanes("stdout").values()) == {"True\n"}
    assert {event.name for event in told.events if isinstance(event, ErrorEvent)} == {"KeyboardInterrupt"}


async def test_what_was_printed_when_an_interrupt_came_is_not_lost(learner: SessionClient) -> None:
    told = await learner.run(PRINTS_UNTIL_INTERRUPTED)

    assert told.outcome == Outcome.ok, told.text
    *lines, last = told.stdout.splitlines()
    wanted = [f"{attempt} {number}" for attempt, count in enumerate(json.loads(last)) for number in range(count)]
    assert not set(wanted) - set(lines)
    assert (await learner.run("import time\nprint('on')\ntime.sleep(0.5)\nprint('and on')")).stdout == "on\nand on\n"
