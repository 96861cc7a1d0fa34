"""The application behind a real server on its own port, for behavior that only a socket shows."""

from __future__ import annotations

import asyncio
import random
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import httpx
import uvicorn
from fastapi import FastAPI

from app.web.http_protocol import LimitedHttpProtocol

_TURNS = 5
"""Of the event loop, until whatever was accepted before the end is among the connections."""
_PORTS = range(20_000, 32_000)
"""Below those that Linux gives to whoever asks for any: no connection takes one of these, and no other listener."""


_given: set[int] = set()


def free_port() -> int:
    """A free port for a process that needs a fixed one; another each time, because it may be taken only later."""
    while True:
        port = random.SystemRandom().choice(_PORTS)
        with suppress(OSError), socket.create_server(("127.0.0.1", port)):
            if port not in _given:
                _given.add(port)
                return port


class HttpServer(uvicorn.Server):
    """A server that leaves signals to the tests, and starts and stops at once: uvicorn's own polls every 0.1 s."""

    async def start(self, sockets: list[socket.socket] | None = None) -> None:
        """Start serving."""
        self.config.load()
        self.lifespan = self.config.lifespan_class(self.config)
        await self.startup(sockets)
        await self.on_tick(0)  # the date of every answer

    async def stop(self) -> None:
        """Stop accepting connections, let requests finish within the configured grace period, then cancel them."""
        state = self.server_state
        for server in self.servers:
            for listener in server.sockets:
                asyncio.get_running_loop().remove_reader(listener)
        for _ in range(_TURNS):  # asyncio leaks a connection that was accepted but not yet made when its server closes
            await asyncio.sleep(0)
        for server in self.servers:
            server.close()
        for connection in list(state.connections):
            connection.shutdown()
        while state.tasks:
            _done, late = await asyncio.wait(set(state.tasks), timeout=self.config.timeout_graceful_shutdown)
            for task in late:
                task.cancel()
        while state.connections:  # the last of them is closing, and uvicorn has no event for it
            for connection in list(state.connections):
                connection.shutdown()
            await asyncio.sleep(0.001)
        await self.lifespan.shutdown()


@asynccontextmanager
async def serving(app: FastAPI) -> AsyncIterator[httpx.AsyncClient]:
    """Serve during the block; yields a client that behaves like our own pages."""
    listener = socket.create_server(("127.0.0.1", 0))
    url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    server = HttpServer(
        uvicorn.Config(app, http=LimitedHttpProtocol, log_config=None, access_log=False, timeout_graceful_shutdown=5)
    )
    await server.start([listener])
    try:
        async with httpx.AsyncClient(base_url=url, headers={"origin": url}, timeout=20) as client:
            yield client
    finally:
        app.state.bus.close()
        await server.stop()
        listener.close()
