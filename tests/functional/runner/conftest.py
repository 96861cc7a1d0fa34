"""One real supervisor for all tests that need no special one; others start their own, once per file."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from runners.wire.client import RunnerClient
from tests.factories.real_supervisor import RealSupervisor, SessionClient


@pytest.fixture(scope="session")
def node() -> Iterator[RealSupervisor]:
    """A node with enough room for all tests."""
    node = RealSupervisor(limits__run_s=240, max_sessions=50, prepare_data_sets=1)
    yield node.start()
    node.remove()


@pytest.fixture
async def client(node: RealSupervisor) -> AsyncIterator[RunnerClient]:
    """A client of the node."""
    async with node.client() as client:
        yield client


@pytest.fixture
async def learner(client: RunnerClient) -> AsyncIterator[SessionClient]:
    """A learner in a session on four simulated GPUs."""
    learner = SessionClient(client)
    yield learner
    await learner.leave()


@pytest.fixture
def jupyter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for Jupyter's own files."""
    monkeypatch.delenv("LOCKSTEP_RUNNER_SOCKET", raising=False)
    for name in ("JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR", "JUPYTER_CONFIG_DIR", "IPYTHONDIR"):
        monkeypatch.setenv(name, str(tmp_path / name))
    return tmp_path
