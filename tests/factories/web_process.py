"""A web process on its own port, which can be killed."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from multiprocessing.process import BaseProcess
from pathlib import Path

import httpx
import uvicorn

from app.settings import Settings
from tests.factories.cli_process import fork
from tests.factories.http_server import free_port

_ROOT = Path(__file__).parents[2]
_START_TIMEOUT_S = 120.0
_TIMEOUT_S = 30.0


class WebProcess:
    """Start it, kill it, start it again: it keeps its port, and is a fork of a process that has imported Lockstep."""

    def __init__(self, settings: Settings, database_url: str) -> None:
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._environment = os.environ | {
            "LOCKSTEP_DATA_DIR": str(settings.data_dir),
            "LOCKSTEP_LESSONS_DIR": str(settings.lessons_dir),
            "LOCKSTEP_RUNNER_SOCKET": str(settings.runner_socket),
            "LOCKSTEP_DATABASE_URL": database_url,
        }
        self._process: BaseProcess | None = None

    @property
    def alive(self) -> bool:
        return self._process is not None and self._process.is_alive()

    def launch(self) -> None:
        """Start it, without waiting."""
        self._process = fork(_serve, self.port, self._environment)

    def wait_until_ready(self) -> None:
        """Return once it answers."""
        deadline = time.monotonic() + _START_TIMEOUT_S
        while True:
            try:
                httpx.get(f"{self.url}/healthz", timeout=_TIMEOUT_S)
                return
            except httpx.TransportError:
                assert self.alive, "the web process has ended"
                assert time.monotonic() < deadline, "the web process did not start"
                time.sleep(0.05)

    async def start(self) -> None:
        """Start it, and return once it answers. Meanwhile, the event loop goes on."""
        self.launch()
        await asyncio.to_thread(self.wait_until_ready)

    def kill(self) -> None:
        """Kill it, as the kernel does when memory runs out."""
        if self._process is not None:
            self._process.kill()
            self._process.join()

    @asynccontextmanager
    async def visitor(self) -> AsyncIterator[httpx.AsyncClient]:
        """A browser of a visitor."""
        async with httpx.AsyncClient(base_url=self.url, headers={"origin": self.url}, timeout=_TIMEOUT_S) as client:
            yield client


def _serve(port: int, environment: dict[str, str]) -> None:
    """Serve in this process."""
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(_ROOT)
    uvicorn.run("app.main:create_local_app", factory=True, port=port, log_level="error")
