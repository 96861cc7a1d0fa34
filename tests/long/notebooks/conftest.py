"""A node whose runs may take as long as training does on a busy machine."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest

from runners.wire.client import RunnerClient
from tests.factories.real_supervisor import RealSupervisor


@pytest.fixture(scope="module")
def node() -> Iterator[RealSupervisor]:
    node = RealSupervisor(limits__run_s=240, limits__cpu_s=480, prepare_data_sets=1)
    yield node.start()
    node.remove()


@pytest.fixture
async def client(node: RealSupervisor) -> AsyncIterator[RunnerClient]:
    async with node.client() as client:
        yield client
