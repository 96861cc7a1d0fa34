"""Lockstep's kernels in real Jupyter clients: managers, nbclient, a lesson read by jupytext."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import jupytext
import nbformat
import pytest
from jupyter_client.asynchronous import AsyncKernelClient
from jupyter_client.ioloop import AsyncIOLoopKernelManager
from jupyter_client.manager import AsyncKernelManager, start_new_kernel
from nbclient import NotebookClient

from runners.jupyter import kernelspec
from runners.jupyter.lease import Lease, NoLease
from runners.jupyter.supervisor import NoSupervisor
from runners.protocol import KernelSpec
from tests.factories.node import Node

ROOT = Path(__file__).parents[3]
REPLICAS = "import tensorflow as tf\nprint(tf.distribute.MirroredStrategy().num_replicas_in_sync)"


@pytest.fixture(autouse=True)
def jupyter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home for Jupyter's own files."""
    monkeypatch.delenv("LOCKSTEP_RUNNER_SOCKET", raising=False)
    for name in ("JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR", "JUPYTER_CONFIG_DIR", "IPYTHONDIR"):
        monkeypatch.setenv(name, str(tmp_path / name))
    return tmp_path


def install(socket: Path | str, *more: str) -> None:
    """Kernels that come from the supervisor at ``socket``, if one answers there."""
    data = Path(tempfile.gettempdir()) / "no-data"
    kernelspec.main(["install", f"--data-dir={data}", f"--socket={socket}", *more])


@asynccontextmanager
async def started(
    name: str = "lockstep-gpu-4", kind: type[AsyncKernelManager] = AsyncKernelManager
) -> AsyncIterator[tuple[Any, AsyncKernelClient]]:
    """A manager whose kernel answers, and its client."""
    manager = kind(kernel_name=name)
    await manager.start_kernel()
    client = manager.client()
    client.start_channels()
    try:
        await client.wait_for_ready(timeout=60)
        yield manager, client
    finally:
        client.stop_channels()
        await manager.shutdown_kernel(now=True)


async def told(client: AsyncKernelClient, code: str, typed: str | None = None, heard: list[str] | None = None) -> str:
    """What ``code`` printed, its errors by name; ``heard`` gets it piece by piece."""
    texts: list[str] = [] if heard is None else heard

    def hear(message: dict[str, Any]) -> None:
        content = message["content"]
        texts.append(content.get("text") or content.get("ename") or "")

    def asked(message: dict[str, Any]) -> None:
        client.input(typed)

    allow = typed is not None
    await client.execute_interactive(
        code, timeout=60, output_hook=hear, allow_stdin=allow, stdin_hook=asked if allow else None
    )
    return "".join(texts)


async def comes(true: Callable[[], Any], within_s: float = 30) -> None:
    """Wait until it does."""
    for _ in range(int(within_s / 0.05)):
        if true():
            return
        await asyncio.sleep(0.05)
    raise AssertionError("it did not come about")


def there(path: str) -> bool:
    return Path(path).exists()


def sandboxes(node: Node) -> set[Path]:
    return {folder for top in node.folders() if top.name.startswith("lockstep-node-") for folder in top.iterdir()}


def settled(node: Node) -> set[Path]:
    """Its sandboxes, once the pool has made what earlier tests let it want."""
    seen: list[set[Path]] = []

    def unchanged() -> bool:
        seen.append(sandboxes(node))
        time.sleep(0.1)
        return len(seen) >= 12 and all(one == seen[-1] for one in seen[-12:])

    node.wait(unchanged)
    return seen[-1]


async def test_a_kernel_answers_on_every_channel_and_leaves_nothing(node: Node) -> None:
    install(node.socket)
    before = settled(node)
    async with started() as (manager, client):
        assert await told(client, REPLICAS) == "4\n"
        assert there(manager.connection_file)
        await comes(client.hb_channel.is_beating)
        client.control_channel.send(client.session.msg("kernel_info_request"))
        reply = await client.control_channel.get_msg(timeout=20)
        assert reply["msg_type"] == "kernel_info_reply"
        (sandbox,) = sandboxes(node) - before
        links = Path(manager.ip).parent
        assert links.stat().st_mode & 0o077 == 0
        outside = [str(links), str(ROOT / "tests"), manager.connection_file]
        assert await told(client, f"import os; print([p for p in {outside} if os.path.exists(p)])") == "[]\n"
    assert not sandbox.exists()
    assert not links.exists()
    assert not there(manager.connection_file)


async def test_an_interrupt_stops_a_cell_and_keeps_what_was_there(node: Node) -> None:
    install(node.socket)
    async with started("lockstep-cpu") as (manager, client):
        await told(client, "x = 41")
        heard: list[str] = []
        endless = asyncio.create_task(told(client, "print('going', flush=True)\nwhile True: pass", heard=heard))
        await comes(lambda: heard)
        await manager.interrupt_kernel()
        assert await asyncio.wait_for(endless, 20) == "going\nKeyboardInterrupt"
        assert await told(client, "print(x + 1)") == "42\n"


@pytest.mark.parametrize("now", [True, False])
async def test_a_restart_is_a_fresh_kernel_at_the_same_place(node: Node, now: bool) -> None:
    install(node.socket)
    async with started("lockstep-cpu") as (manager, client):
        await told(client, "x = 1\nopen('/tmp/kept', 'w').close()")
        before = dict(manager.get_connection_info()), settled(node)
        await manager.restart_kernel(now=now)
        await client.wait_for_ready(timeout=60)
        assert (dict(manager.get_connection_info()), sandboxes(node)) == before
        assert await told(client, "import os; print(os.path.exists('/tmp/kept'), 'x' in globals())") == "True False\n"


async def test_input_asks_the_client_and_refuses_where_nobody_is_there(node: Node) -> None:
    install(node.socket)
    async with started("lockstep-cpu") as (_, client):
        assert await told(client, "print('Hello', input('Who? '))", typed="Ada") == "Hello Ada\n"
        assert await told(client, "import getpass; print(getpass.getpass())", typed="secret") == "secret\n"
        assert await told(client, "input()") == "StdinNotImplementedError"


async def test_a_kernel_that_dies_is_noticed_and_started_again(node: Node) -> None:
    install(node.socket)
    async with started("lockstep-cpu", AsyncIOLoopKernelManager) as (manager, client):
        manager.autorestart = True
        restarted = asyncio.Event()
        manager.start_restarter()
        manager.add_restart_callback(restarted.set, "restart")
        client.execute("import os; os.kill(os.getpid(), 11)")
        await asyncio.wait_for(restarted.wait(), 30)
        await client.wait_for_ready(timeout=60)
        assert await told(client, "print(1 + 1)") == "2\n"


async def test_the_exit_status_is_the_kernels_own(node: Node) -> None:
    install(node.socket)
    async with started("lockstep-cpu") as (manager, client):
        client.execute("import os; os._exit(7)")
        assert await asyncio.wait_for(manager.provisioner.wait(), 20) == 7
        assert not await manager.is_alive()


def test_a_manager_without_a_loop_of_its_own_works_too(node: Node) -> None:
    install(node.socket)
    manager, client = start_new_kernel(kernel_name="lockstep-cpu")
    try:
        heard: list[str] = []
        time.sleep(3)  # nobody turns a loop meanwhile; the lease is held all the same
        client.execute_interactive(
            "print(6 * 7)", timeout=60, output_hook=lambda m: heard.append(m["content"].get("text", ""))
        )
        assert "".join(heard) == "42\n"
        assert manager.is_alive()
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
    assert not manager.is_alive()


async def test_memory_is_limited_as_in_a_session_and_the_next_kernel_is_well() -> None:
    node = Node(limits__memory_mb=512, warm_kernels=0)
    try:
        node.start()
        install(node.socket)
        async with started("lockstep-cpu") as (manager, client):
            client.execute("x = b'x' * 700_000_000\nimport time; time.sleep(60)")
            assert await asyncio.wait_for(manager.provisioner.wait(), 40) == -signal.SIGKILL
            await manager.restart_kernel(now=True)
            await client.wait_for_ready(timeout=60)
            assert await told(client, "print(1)") == "1\n"
    finally:
        node.remove()


async def test_kernels_take_places_and_a_full_node_says_so(narrow: Node) -> None:
    install(narrow.socket)
    async with started("lockstep-cpu"):
        assert narrow.health()["sessions"] == 1
        second = AsyncKernelManager(kernel_name="lockstep-cpu")
        with pytest.raises(NoLease, match="no place is free on this node, which has 1"):
            await second.start_kernel()
    async with started("lockstep-cpu") as (_, client):
        assert await told(client, "print(1)") == "1\n"


async def test_a_supervisor_that_is_killed_is_a_dead_kernel_that_can_be_restarted(mortal: Node) -> None:
    install(mortal.socket)
    async with started("lockstep-cpu") as (manager, client):
        await told(client, "x = 1")
        mortal.stop(signal.SIGKILL)
        assert await asyncio.wait_for(manager.provisioner.wait(), 20) == -signal.SIGKILL
        mortal.start()
        await manager.restart_kernel(now=True)
        await client.wait_for_ready(timeout=60)
        assert await told(client, "print('x' in globals())") == "False\n"


async def test_a_lease_that_nobody_reads_ends(node: Node) -> None:
    before = settled(node)
    lease = await asyncio.to_thread(Lease.take, node.socket, KernelSpec(topology="cpu", key="k" * 32))
    (sandbox,) = sandboxes(node) - before
    await comes(lambda: not sandbox.exists())
    with pytest.raises(NoLease, match="no kernel"):
        await asyncio.to_thread(lease.restart, KernelSpec(topology="cpu", key="k" * 32))


async def test_a_sandbox_keeps_its_keras(node: Node) -> None:
    lease = await asyncio.to_thread(Lease.take, node.socket, KernelSpec(topology="cpu", key="k" * 32))
    with pytest.raises(NoLease, match="this kernel has Keras 3"):
        await asyncio.to_thread(lease.restart, KernelSpec(topology="cpu", key="k" * 32, keras=2))
    await asyncio.to_thread(lease.close)


async def test_a_lesson_read_by_jupytext_runs_in_nbclient(node: Node) -> None:
    install(node.socket)
    lesson = jupytext.read(ROOT / "lessons/distributed-tensorflow/distribution-strategies/lesson.md")
    lesson.cells = lesson.cells[:8]
    done = await NotebookClient(lesson, kernel_name="lockstep-gpu-4", timeout=120).async_execute()
    cells = [cell for cell in done.cells if cell.cell_type == "code"]
    assert [cell.metadata["name"] for cell in cells] == ["strategy", "components", "assign", "model"]
    assert all(cell.outputs for cell in cells)
    assert cells[0].outputs[0]["text"].startswith("Replicas: 4\n")


PROGRAM = """
import nbclient, nbformat, sys
notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(code) for code in sys.argv[2:]])
nbclient.NotebookClient(notebook, kernel_name=sys.argv[1], timeout=120).execute()
for cell in notebook.cells:
    print(''.join(o.get('text', '') for o in cell.outputs), end='', flush=True)
"""


class Alone:
    """A Jupyter process that has no supervisor but its own, and what it has on the machine."""

    def __init__(self, node: Node, *cells: str) -> None:
        self.node = node
        environment = os.environ | {
            "TMPDIR": str(node.temporary),
            "LOCKSTEP_SERVICE_UID": str(node.uids[0]),
            "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]),
        }
        command = [sys.executable, "-c", PROGRAM, "lockstep-gpu-4", *cells]
        self.process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def end(self) -> tuple[str, str]:
        out, err = self.process.communicate(timeout=120)
        return out.decode(), err.decode()

    async def has_nothing_left(self) -> None:
        await comes(lambda: not self.node.processes(), 20)
        await comes(lambda: not self.node.folders(), 20)


@pytest.fixture
async def place() -> AsyncIterator[Node]:
    """Folders and a plain user of their own, but no supervisor."""
    async with AsyncExitStack() as stack:
        node = Node()
        stack.callback(node.remove)
        install(node.socket)
        yield node


async def test_where_no_supervisor_runs_jupyter_starts_one_for_as_long_as_it_lives(place: Node) -> None:
    alone = Alone(place, REPLICAS, "print('so it is')")
    assert await asyncio.to_thread(alone.end) == ("4\nso it is\n", "")
    await alone.has_nothing_left()


async def test_two_jupyters_at_once_have_kernels_of_their_own(node: Node) -> None:
    install(node.socket)
    both = [Alone(node, f"x = {n}", "import time\ntime.sleep(1)\nprint(x)") for n in (1, 2)]
    assert [await asyncio.to_thread(one.end) for one in both] == [("1\n", ""), ("2\n", "")]


async def test_a_jupyter_that_is_killed_leaves_nothing(place: Node) -> None:
    alone = Alone(place, "import subprocess, time\nsubprocess.Popen(['setsid', 'sleep', '1000'])\ntime.sleep(1000)")
    await comes(lambda: any("sleep" in process for process in place.processes()), 60)
    assert place.folders()
    alone.process.kill()
    alone.process.communicate()
    await alone.has_nothing_left()


async def test_a_jupyter_that_is_killed_leaves_nothing_with_a_supervisor_that_goes_on(node: Node) -> None:
    install(node.socket)
    before = settled(node)
    alone = Alone(node, "import time\ntime.sleep(1000)")
    await comes(lambda: [f for f in node.folders() if f.name.startswith("lockstep-jupyter-")], 60)
    await comes(lambda: sandboxes(node) - before)
    alone.process.kill()
    alone.process.communicate()
    await comes(lambda: not sandboxes(node) - before)
    await comes(lambda: not [f for f in node.folders() if f.name.startswith("lockstep-jupyter-")])


def packageless(folder: Path) -> str:
    """A Python that knows its standard library only, and ``runners``."""
    python = folder / "python"
    python.write_text(f'#!/bin/sh\nexec {sys.base_prefix}/bin/python3 -S "$@"\n')
    python.chmod(0o755)
    return str(python)


@pytest.mark.parametrize(
    ("python", "sentence"),
    [("/nowhere/python", "Run `lockstep kernelspec install` again"), ("packageless", "install lockstep.runner. there")],
)
async def test_a_supervisor_that_cannot_be_started_says_what_to_do(
    python: str, sentence: str, jupyter: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", packageless(jupyter) if python == "packageless" else python)
    install("")
    with pytest.raises(NoSupervisor, match=sentence):
        await AsyncKernelManager(kernel_name="lockstep-cpu").start_kernel()


async def test_a_kernel_that_cannot_be_is_refused_with_a_sentence(node: Node, jupyter: Path) -> None:
    install(node.socket, "--topology=gpu:2")
    manager = AsyncKernelManager(kernel_name="lockstep-gpu-2")
    manager.kernel_spec.metadata["kernel_provisioner"]["config"]["topology"] = "gpu:9"
    with pytest.raises(NoLease, match=r"topology: .*possible: cpu, gpu:1 … gpu:8"):
        await manager.start_kernel()


async def test_a_socket_that_the_operator_named_must_answer(jupyter: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install("")
    monkeypatch.setenv("LOCKSTEP_RUNNER_SOCKET", str(jupyter / "nobody.sock"))
    with pytest.raises(NoSupervisor, match="which LOCKSTEP_RUNNER_SOCKET names"):
        await AsyncKernelManager(kernel_name="lockstep-cpu").start_kernel()


def executed(kernel: str, *cells: str, allow_errors: bool = False) -> list[list[Any]]:
    """The outputs of each cell, run in a real nbclient."""
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(code) for code in cells])
    NotebookClient(notebook, kernel_name=kernel, timeout=120, allow_errors=allow_errors).execute()
    return [cell.outputs for cell in notebook.cells]


def text_of(outputs: list[Any], stream: str) -> str:
    return "".join(output["text"] for output in outputs if output.output_type == "stream" and output.name == stream)


WHO = """
import json, os
print("I am", json.loads(os.environ["TF_CONFIG"])["task"]["index"])
"""
TRAINS = """
import tensorflow as tf
strategy = tf.distribute.MultiWorkerMirroredStrategy()
@tf.function
def step():
    context = tf.distribute.get_replica_context()
    return context.all_reduce("sum", tf.cast(context.replica_id_in_sync_group, tf.float32) + 1)
print(float(strategy.run(step)))
"""


def test_a_notebook_on_two_workers_says_in_words_whose_each_line_is(node: Node) -> None:
    install(node.socket, "--topology=workers:2")
    who, trained, failed = executed(
        "lockstep-workers-2", WHO, TRAINS, "if json.loads(os.environ['TF_CONFIG'])['task']['index']:\n    1 / 0",
        allow_errors=True,
    )  # fmt: skip

    assert sorted(text_of(who, "stdout").splitlines()) == ["worker 0 | I am 0", "worker 1 | I am 1"]
    assert sorted(text_of(trained, "stdout").splitlines()) == ["worker 0 | 3.0", "worker 1 | 3.0"]
    (error,) = [output for output in failed if output.output_type == "error"]
    assert error.traceback[0] == "worker 1 |"
    assert error.ename == "ZeroDivisionError"


REPLICAS_PRINT = """
import sys
import tensorflow as tf
strategy = tf.distribute.MirroredStrategy(cross_device_ops=tf.distribute.NcclAllReduce())
@tf.function
def step():
    tf.print("here", output_stream=sys.stdout)
    return tf.distribute.get_replica_context().all_reduce("sum", tf.constant(1.0))
strategy.run(step)
import lockstep
with strategy.scope():
    lockstep.placement([tf.Variable(1.0, name="weight")])
lockstep.log(1, loss=0.5)
print("done")
"""


def test_a_notebook_reads_the_lanes_of_replicas_and_notices_as_text(node: Node) -> None:
    install(node.socket)
    (outputs,) = executed("lockstep-gpu-4", REPLICAS_PRINT)

    assert sorted(text_of(outputs, "stdout").splitlines()) == ["done", *(f"replica {i} | here" for i in range(4))]
    assert "NCCL needs real GPUs." in text_of(outputs, "stderr")
    (picture,) = [output for output in outputs if output.output_type == "display_data"]
    assert "MirroredVariable" in picture.data["text/plain"]


def test_a_notebook_executed_by_nbclient_has_four_replicas(node: Node) -> None:
    install(node.socket)
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(REPLICAS)])
    NotebookClient(notebook, kernel_name="lockstep-gpu-4", timeout=60).execute()
    assert [o["text"] for o in notebook.cells[0].outputs] == ["4\n"]
