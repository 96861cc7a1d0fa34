"""A node without cgroups: what the supervisor counts by itself."""

from __future__ import annotations

from runners.protocol import Outcome
from tests.factories.node import Learner, Node


async def test_files_count_as_memory_where_no_cgroup_counts_them(bare: Node) -> None:
    async with bare.client() as client:
        learner = Learner(client)
        told = await learner.run(
            "import time\n"
            "for place in ('/tmp/a', '/home/learner/a'):\n"
            "    with open(place, 'wb') as f:\n"
            "        for _ in range(300): f.write(bytes(2**20))\n"
            "time.sleep(20)"
        )
        await learner.leave()
    assert told.outcome == Outcome.memory
    assert told.finished.limit
    assert told.finished.limit.name == "memory"
