"""A page that waits for the end of its session."""

from __future__ import annotations

import asyncio
from pathlib import Path

from app.bus import Bus
from app.runs.session_panel import watch_until_gone
from runners.wire.client import RunnerClient
from runners.wire.protocol import SessionInfo


class _Waiting(RunnerClient):
    """Its sessions never end."""

    def __init__(self, socket: Path) -> None:
        super().__init__(socket)
        self.asked = asyncio.Event()

    async def wait_until_gone(self, session: str) -> SessionInfo:
        """Wait forever."""
        self.asked.set()
        return await asyncio.Future()


async def test_a_page_that_stops_listening_leaves_no_task_behind(tmp_path: Path) -> None:
    before = asyncio.all_tasks()
    runner = _Waiting(tmp_path / "socket")
    listening = asyncio.ensure_future(anext(watch_until_gone(runner, Bus(), ["one", "two"])))
    await runner.asked.wait()

    listening.cancel()
    await asyncio.wait({listening})
    await asyncio.sleep(0)

    assert asyncio.all_tasks() == before
