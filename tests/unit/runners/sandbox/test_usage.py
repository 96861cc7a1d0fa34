"""What the watcher of a sandbox does if it cannot read."""

from __future__ import annotations

import asyncio
import os
import socket
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from runners.config.settings import Limits
from runners.sandbox import usage
from runners.sandbox.cgroups import CgroupStats, NullCgroup
from runners.sandbox.handle import Sandbox
from runners.sandbox.usage import UsageWatcher


class Mistaken(NullCgroup):
    """A group that fails in an unexpected way, twice, and then reports a lot of CPU time."""

    asked = 0

    def facts(self) -> CgroupStats:
        """Created, started, and polled twice."""
        self.asked += 1
        if self.asked in (3, 4):
            raise LookupError("a mistake of ours")
        return CgroupStats(cpu_s=1000.0 if self.asked > 4 else 0.0, peak_bytes=0)


async def test_a_look_that_fails_is_said_once_and_the_limits_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(usage, "_SOONEST_S", 0.01)
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours, theirs, capture_logs() as logs:
        watch = UsageWatcher(Sandbox("s", tmp_path, os.getpid(), -1, ours, Mistaken()), Limits(cpu_s=10))
        watch.begin_run()
        async with watch:
            await asyncio.wait_for(watch.exceeded.wait(), 10)

    assert watch.met == "cpu"
    assert [entry["event"] for entry in logs] == ["sandbox could not be watched; continuing"]
