"""Which session gets the one real device of a node, and what it then sees; with a fake TPU."""

from __future__ import annotations

import errno
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from runners.wire.protocol import Outcome
from tests.factories import fake_tpu_supervisor
from tests.factories.real_supervisor import RealSupervisor, SessionClient
from tests.functional.runner.judged import Exercise

SEEN = f"""
import os
(os.path.exists("/dev/{fake_tpu_supervisor.NODE}"),
 os.environ.get("TPU_LIBRARY_PATH"), os.path.exists("/sys/devices"))"""
HAS_IT = str((True, fake_tpu_supervisor.LIBRARY, Path("/sys/devices").is_dir()))
HAS_NOTHING = str((False, None, False))
"""Of the TPU, and of the simulated one."""
REACH_IT = """
import tensorflow as tf
resolver = tf.distribute.cluster_resolver.TPUClusterResolver(tpu="local")
tf.tpu.experimental.initialize_tpu_system(resolver)
"""


def equipped(devices: str) -> Iterator[RealSupervisor]:
    """A node with one TPU and the operator's setting."""
    node = RealSupervisor(
        (sys.executable, fake_tpu_supervisor.__file__), devices=devices, limits__run_s=60, warm_topology="cpu"
    )
    yield node.start()
    node.remove()


@pytest.fixture(scope="module")
def either() -> Iterator[RealSupervisor]:
    """A node that simulates a TPU for sessions that do not get the real one."""
    yield from equipped("auto")


@pytest.fixture(scope="module")
def strict() -> Iterator[RealSupervisor]:
    """A node that does not simulate TPUs."""
    yield from equipped("tpu")


async def test_the_device_is_one_sessions_until_it_ends(either: RealSupervisor) -> None:
    async with either.client() as client:
        first, second, third = (SessionClient(client, topology="tpu:8") for _ in range(3))
        had = await first.run(SEEN)
        assert (await client.session(first.session)).real
        after_restart = await _again(first)
        unreached = await first.run(REACH_IT)
        had_not = await second.run(SEEN)
        assert not (await client.session(second.session)).real
        await first.leave()
        got_it = await third.run(SEEN)
        for learner in (second, third):
            await learner.leave()

    assert had.result == after_restart == got_it.result == HAS_IT
    assert unreached.outcome == Outcome.error
    assert "this session has a real TPU, a tpu:8, but TensorFlow cannot reach it" in str(unreached.error)
    assert had_not.result == HAS_NOTHING


async def test_a_late_request_is_refused_if_devices_are_not_simulated(strict: RealSupervisor) -> None:
    async with strict.client() as client:
        first, second = (SessionClient(client, topology="tpu:8") for _ in range(2))
        had = await first.run(SEEN)
        had_not = await second.run(SEEN)
        for learner in (first, second):
            await learner.leave()

    assert had.result == HAS_IT
    assert had_not.outcome == Outcome.crash
    notice = next(event for event in had_not.events if event.kind == "notice")
    assert (notice.code, notice.values["reason"]) == ("session-failed", "no-device")
    assert "in use by another session, and this server does not simulate TPUs" in notice.text


DEVICES = Exercise(
    solution="def f(): return len(__import__('tensorflow').config.list_logical_devices('TPU'))",
    checks="""
        @check("task", "The devices are simulated")
        def simulated(work):
            equal(work.call("f"), work.reference("f"))
    """,
    topology="tpu:8",
)


@pytest.mark.parametrize("devices", ["either", "strict"])
async def test_judgements_simulate_their_devices_while_a_session_holds_the_real_one(
    devices: str, request: pytest.FixtureRequest
) -> None:
    node: RealSupervisor = request.getfixturevalue(devices)
    async with node.client() as client:
        learner = SessionClient(client, topology="tpu:8")
        had = await learner.run(SEEN)
        judged = await DEVICES.judge(client)
        await learner.leave()
        alone = await DEVICES.judge(client)

    assert had.result == HAS_IT
    assert (judged.verdict, alone.verdict) == ("passed", "passed"), judged.text


@pytest.mark.parametrize("devices", ["either", "strict"])
async def test_other_machines_are_what_they_always_were(devices: str, request: pytest.FixtureRequest) -> None:
    node: RealSupervisor = request.getfixturevalue(devices)
    async with node.client() as client:
        learner = SessionClient(client, topology="gpu:2")
        told = await learner.run(SEEN + " + (len(__import__('tensorflow').config.list_physical_devices('GPU')),)")
        assert not (await client.session(learner.session)).real
        await learner.leave()

    assert told.result == "(False, None, False, 2)"


NAME_A_THREAD = """
import ctypes, pathlib, threading
thread, done = None, threading.Event()
thread = threading.Thread(target=done.wait)
thread.start()
error = ctypes.CDLL(None).pthread_setname_np(ctypes.c_ulong(thread.ident), b"named")
name = pathlib.Path(f"/proc/self/task/{thread.native_id}/comm").read_text().strip()
done.set()
(error, name == "named")"""
"""As CUDA's driver does when it starts; without that it reports an error of the operating system."""
WRITABLE = """
import os
[path for top in os.listdir("/proc") if not top.isdecimal() and not os.path.islink(f"/proc/{top}")
 for folder, _, names in [*os.walk(f"/proc/{top}"), ("/proc", [], [top])]
 for path in (os.path.join(folder, name) for name in names)
 if os.path.isfile(path) and not os.path.islink(path) and os.access(path, os.W_OK)]"""


async def test_with_the_device_a_session_can_name_threads_and_write_no_other_file_of_proc(
    either: RealSupervisor,
) -> None:
    async with either.client() as client:
        with_it, without_it = (SessionClient(client, topology="tpu:8") for _ in range(2))
        named = await with_it.run(NAME_A_THREAD)
        writable = await with_it.run(WRITABLE)
        not_named = await without_it.run(NAME_A_THREAD)
        for learner in (with_it, without_it):
            await learner.leave()

    assert named.result == "(0, True)", named.error
    assert writable.result == "[]", writable.error
    assert not_named.result == f"({errno.EROFS}, False)", not_named.error


async def _again(learner: SessionClient) -> str:
    await learner.client.restart(learner.session)
    return str((await learner.run(SEEN)).result)


def test_zygotes_on_such_a_machine_have_asked_for_no_device() -> None:
    """A process that has asked CUDA once, with its devices hidden, is told permanently that there are none."""
    program = """
import os
from runners.zygote import fork_server
fork_server.set_up_environment(3)
import tensorflow  # once for both; which Keras it has is decided later
from tensorflow.python.eager import context
for keras in (3, 2):
    if not os.fork():
        fork_server.set_up_environment(keras)
        fork_server.import_tensorflow(keras, hardware=True)
        assert context.context()._physical_devices is None
        assert "libcuda" not in open("/proc/self/maps").read()
        print("Keras", tensorflow.keras.__version__[0], flush=True)
        os._exit(0)
    os.wait()
"""
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, cwd=Path.cwd())
    assert done.stdout == "Keras 3\nKeras 2\n", done.stderr[-2000:]
