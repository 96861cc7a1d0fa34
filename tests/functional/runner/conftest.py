"""Real supervisors, each started once for all tests that can share it."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from runners.client import RunnerClient
from tests.factories.node import Learner, Node


@pytest.fixture(scope="session")
def node() -> Iterator[Node]:
    """A node with room for everybody."""
    node = Node(limits__run_s=60, max_sessions=50)
    yield node.start()
    node.remove()


@pytest.fixture(scope="session")
def narrow() -> Iterator[Node]:
    """A node with one place, for one session a learner, that ends after a moment without work."""
    node = Node(limits__run_s=30, max_sessions=1, sessions_per_learner=1, idle_s=1.5)
    yield node.start()
    node.remove()


@pytest.fixture(scope="session")
def crowded() -> Iterator[Node]:
    """A node with three places, whose sessions give way when they have been idle for a moment."""
    node = Node(limits__run_s=30, max_sessions=3, give_way_s=0.5)
    yield node.start()
    node.remove()


@pytest.fixture(scope="session")
def _mortal() -> Iterator[Node]:
    node = Node(limits__run_s=60, limits__processes=256)
    yield node
    node.remove()


@pytest.fixture
def mortal(_mortal: Node) -> Node:
    """A node that may be killed; it lives again for the next test."""
    return _mortal if _mortal.alive else _mortal.start()


@pytest.fixture(scope="session")
def bare() -> Iterator[Node]:
    """A node in a container's place: /proc is partly covered, no cgroup can be written."""
    if os.geteuid() != 0:
        pytest.skip("only root can cover /proc for a test")
    covered = next((p for p in ("/proc/acpi", "/proc/scsi", "/proc/tty") if Path(p).is_dir()), None)
    if covered is None:
        pytest.skip("this kernel has no folder in /proc to cover")
    mounts = f"mount --make-rprivate / && mount -t tmpfs none {covered} && mount -t tmpfs none /sys/fs/cgroup"
    node = Node(
        ("unshare", "--mount", "sh", "-c", f'{mounts} && exec "$@"', "sh"),
        limits__run_s=300,
        limits__cpu_s=8,
        limits__memory_mb=512,
        limits__processes=128,
    )
    yield node.start()
    node.remove()


@pytest.fixture
async def client(node: Node) -> AsyncIterator[RunnerClient]:
    """A client of the node."""
    async with node.client() as client:
        yield client


@pytest.fixture
async def learner(client: RunnerClient) -> AsyncIterator[Learner]:
    """A learner in a session on four simulated GPUs."""
    learner = Learner(client)
    yield learner
    await learner.leave()


@pytest.fixture
def jupyter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home for Jupyter's own files."""
    monkeypatch.delenv("LOCKSTEP_RUNNER_SOCKET", raising=False)
    for name in ("JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR", "JUPYTER_CONFIG_DIR", "IPYTHONDIR"):
        monkeypatch.setenv(name, str(tmp_path / name))
    return tmp_path
