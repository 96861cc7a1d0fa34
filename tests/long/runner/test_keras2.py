"""Keras 2 from end to end: code of TensorFlow 2.6's time, unmodified, through the command and a real runner."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from runners.wire.protocol import Outcome
from tests.factories.cli_process import CompletedCommand, lockstep
from tests.factories.course import LESSON, write_course
from tests.factories.real_supervisor import RealSupervisor, RecordedRun, SessionClient

PROGRAMS = Path(__file__).parents[2] / "functional" / "programs"


WHICH = "import tensorflow as tf\ntf.keras.layers.__name__.split('.')[0]"


@pytest.fixture(scope="module")
def new_node() -> Iterator[RealSupervisor]:
    """A node on which nobody has requested Keras 2."""
    node = RealSupervisor(limits__run_s=120, limits__cpu_s=240)
    yield node.start()
    node.remove()


@pytest.fixture(scope="module")
def first_run(new_node: RealSupervisor) -> RecordedRun:
    """The first run with Keras 2 on it, whatever the order of the tests."""

    async def run() -> RecordedRun:
        async with new_node.client() as client:
            learner = SessionClient(client, topology="cpu", keras=2)
            told = await learner.run(WHICH)
            await learner.leave()
            return told

    return asyncio.run(run())


@pytest.fixture
def fresh(new_node: RealSupervisor, first_run: RecordedRun) -> RealSupervisor:
    """The node after that run."""
    return new_node


async def ran(node: RealSupervisor, data: Path, program: str, *options: str) -> CompletedCommand:
    command = ("run", str(PROGRAMS / program), "--keras=2", *options)
    return await lockstep(*command, within_s=200, runner_socket=node.socket, data_dir=data)


async def test_the_first_run_on_keras_2_says_that_it_starts_and_the_second_finds_it(
    fresh: RealSupervisor, first_run: RecordedRun
) -> None:
    async with fresh.client() as client:
        second = SessionClient(client, topology="cpu", keras=2)
        again = await second.run(WHICH)
        assert len(fresh.zygotes()) == 2
        await client.restart(second.session)
        restarted = await second.run(WHICH)
        await second.leave()

    assert (first_run.outcome, first_run.result, again.result) == (Outcome.ok, "'tf_keras'", "'tf_keras'")
    assert first_run.kinds[0] == "notice"
    assert getattr(first_run.events[0], "code", "") == "keras-starting"
    assert "notice" not in again.kinds
    assert "notice" not in restarted.kinds, "a restart is a fork"


NAMES = """
import tensorflow as tf
from tensorflow import keras
from tensorflow.keras import __version__ as version
from tensorflow.keras.mixed_precision import experimental
import tensorflow.keras.layers
assert tensorflow.keras.layers is tf.keras.layers is keras.layers
assert experimental is tf.keras.mixed_precision.experimental
assert tf.keras.__version__ == keras.__version__ == version
version.split(".")[0]
"""


async def test_the_version_and_the_modules_have_one_name_each_way_of_importing_them(fresh: RealSupervisor) -> None:
    async with fresh.client() as client:
        learner = SessionClient(client, topology="cpu", keras=2)
        told = await learner.run(NAMES)
        await learner.leave()

    assert (told.outcome, told.result) == (Outcome.ok, "'2'"), told.text


@pytest.mark.parametrize("topology", ["gpu:4", "cpu"])
async def test_a_custom_loop_of_its_time_runs(fresh: RealSupervisor, tmp_path: Path, topology: str) -> None:
    ended = await ran(fresh, tmp_path, "mirrored_loop.py", f"--topology={topology}")

    assert ended.status == 0, ended.err
    replicas = 4 if topology == "gpu:4" else 1
    assert f"Number of devices: {replicas}\nEpoch 1, Loss: " in ended.out
    assert ("simulated" in ended.err) is (topology == "gpu:4")


async def test_a_lesson_and_its_cells_choose_their_keras(fresh: RealSupervisor, tmp_path: Path) -> None:
    courses = write_course(tmp_path)
    lesson = courses / LESSON / "lesson.md"
    asks = "import tensorflow as tf\nassert tf.keras.layers.__name__.split('.')[0] == '{}', tf.keras.layers.__name__"
    text = lesson.read_text().replace("name: lockstep-gpu-4\n", "name: lockstep-gpu-4-keras-2\n")
    text = text.replace("keras: 3\n", "keras: 2\n").replace(":topology: cpu\n", ":keras: 3\n")
    text = text.replace('print("hello")', asks.format("tf_keras")).replace('print("alone")', asks.format("keras"))
    lesson.write_text(text)

    command = ("lesson", "check")
    options: dict[str, Any] = {"runner_socket": fresh.socket, "data_dir": tmp_path, "lessons_dir": courses}
    ended = await lockstep(*command, within_s=120, **options)

    assert ended.status == 0, ended.out + ended.err
    assert "0 unexpected outcomes." in ended.out


CHILDREN = """
import multiprocessing, subprocess, sys
which = "import tensorflow as tf; print(tf.keras.layers.Dense.__module__.split('.')[0])"
open("main.py", "w").write(which)
print(subprocess.run([sys.executable, "main.py"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout)
get_ipython().system("python main.py 2>/dev/null")
asked = "__import__('os').environ['TF_USE_LEGACY_KERAS']"
print("spawned", multiprocessing.get_context("spawn").Pool(1).apply(eval, [asked]))
"""


async def test_programs_that_a_session_starts_use_its_keras(fresh: RealSupervisor) -> None:
    async with fresh.client() as client:
        learner = SessionClient(client, topology="cpu", keras=2)
        told = await learner.run(CHILDREN)
        await learner.leave()

    assert told.outcome == Outcome.ok, told.text
    assert [line.strip() for line in told.text.splitlines() if line.strip()] == ["tf_keras", "tf_keras", "spawned 1"]


async def test_fit_mixed_precision_and_states_of_their_time_run(fresh: RealSupervisor, tmp_path: Path) -> None:
    ended = await ran(fresh, tmp_path, "fit_and_stateful.py", "--topology=gpu:2", "--json")

    assert ended.status == 0, ended.out[-3000:]
    events = [json.loads(line) for line in ended.out.splitlines()]
    started = next(event for event in events if event["kind"] == "started")
    assert started["machine"] == {"topology": "gpu:2", "keras": 2, "simulated": True}
    assert "done with" in "".join(event.get("text", "") for event in events if event["kind"] == "text")


@pytest.mark.parametrize("topology", ["workers:2", "ps:2+1", "tpu:2"])
async def test_strategies_and_fit_by_their_old_names_train_on_every_machine(
    fresh: RealSupervisor, tmp_path: Path, topology: str
) -> None:
    ended = await ran(fresh, tmp_path, "experimental_names.py", f"--topology={topology}")

    assert ended.status == 0, ended.out[-1000:] + ended.err[-3000:]
    assert ended.out.count("learned with") == (2 if topology == "workers:2" else 1)
    assert "simulated" in ended.err
