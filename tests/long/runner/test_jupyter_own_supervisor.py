"""A Jupyter that starts its own supervisor, and its messages if it cannot."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from jupyter_client.manager import AsyncKernelManager

from runners.jupyter.lease_client import LeaseRefused
from runners.jupyter.supervisor_process import SupervisorUnavailable
from tests.factories.jupyter_kernels import REPLICAS, ROOT, install_kernels, sandboxes, settled_sandboxes, wait_until
from tests.factories.real_supervisor import RealSupervisor

pytestmark = pytest.mark.usefixtures("jupyter")


PROGRAM = """
import nbclient, nbformat, sys
notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(code) for code in sys.argv[2:]])
nbclient.NotebookClient(notebook, kernel_name=sys.argv[1], timeout=120).execute()
for cell in notebook.cells:
    print(''.join(o.get('text', '') for o in cell.outputs), end='', flush=True)
"""


class Alone:
    """A Jupyter process with only its own supervisor, and its resources on the machine."""

    def __init__(self, node: RealSupervisor, *cells: str) -> None:
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
        await wait_until(lambda: not self.node.processes(), 20)
        await wait_until(lambda: not self.node.folders(), 20)


@pytest.fixture
async def place() -> AsyncIterator[RealSupervisor]:
    """Folders and a plain user of their own, but no supervisor."""
    async with AsyncExitStack() as stack:
        node = RealSupervisor()
        stack.callback(node.remove)
        install_kernels(node.socket)
        yield node


async def test_where_no_supervisor_runs_jupyter_starts_one_for_as_long_as_it_lives(place: RealSupervisor) -> None:
    alone = Alone(place, REPLICAS, "print('so it is')")
    assert await asyncio.to_thread(alone.end) == ("4\nso it is\n", "")
    await alone.has_nothing_left()


async def test_two_jupyters_at_once_have_kernels_of_their_own(node: RealSupervisor) -> None:
    install_kernels(node.socket)
    both = [Alone(node, f"x = {n}", "import time\ntime.sleep(1)\nprint(x)") for n in (1, 2)]
    assert [await asyncio.to_thread(one.end) for one in both] == [("1\n", ""), ("2\n", "")]


async def test_a_jupyter_that_is_killed_leaves_nothing_whoever_started_its_supervisor(
    place: RealSupervisor, node: RealSupervisor
) -> None:
    own = Alone(place, "import subprocess, time\nsubprocess.Popen(['setsid', 'sleep', '1000'])\ntime.sleep(1000)")
    await wait_until(lambda: any("sleep" in process for process in place.processes()), 60)
    assert place.folders()
    install_kernels(node.socket)
    before = settled_sandboxes(node)
    guest = Alone(node, "import time\ntime.sleep(1000)")  # of a supervisor that goes on
    await wait_until(lambda: [f for f in node.folders() if f.name.startswith("lockstep-jupyter-")], 60)
    await wait_until(lambda: sandboxes(node) - before)
    for alone in (own, guest):  # both at once: what they have had is missed after a silence of seconds
        alone.process.kill()
        alone.process.communicate()
    await own.has_nothing_left()
    await wait_until(lambda: not sandboxes(node) - before)
    await wait_until(lambda: not [f for f in node.folders() if f.name.startswith("lockstep-jupyter-")])


def packageless(folder: Path) -> str:
    """A Python with only its standard library and ``runners``."""
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
    install_kernels("")
    with pytest.raises(SupervisorUnavailable, match=sentence):
        await AsyncKernelManager(kernel_name="lockstep-cpu").start_kernel()


async def test_a_kernel_that_cannot_be_is_refused_with_a_sentence(node: RealSupervisor, jupyter: Path) -> None:
    install_kernels(node.socket, "--topology=gpu:2")
    manager = AsyncKernelManager(kernel_name="lockstep-gpu-2")
    manager.kernel_spec.metadata["kernel_provisioner"]["config"]["topology"] = "gpu:9"
    with pytest.raises(LeaseRefused, match=r"topology: .*possible: cpu, gpu:1 … gpu:8"):
        await manager.start_kernel()


async def test_a_socket_that_the_operator_named_must_answer(jupyter: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install_kernels("")
    monkeypatch.setenv("LOCKSTEP_RUNNER_SOCKET", str(jupyter / "nobody.sock"))
    with pytest.raises(SupervisorUnavailable, match="the socket in LOCKSTEP_RUNNER_SOCKET"):
        await AsyncKernelManager(kernel_name="lockstep-cpu").start_kernel()
