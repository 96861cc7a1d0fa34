"""The application behind a real server on a port of its own, for what only a socket shows."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Generator
from contextlib import asynccontextmanager, contextmanager

import httpx
import uvicorn
from fastapi import FastAPI


class Server(uvicorn.Server):
    """One that leaves signals to the tests."""

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        yield


@asynccontextmanager
async def serving(app: FastAPI) -> AsyncIterator[httpx.AsyncClient]:
    """Serve while the block lasts; yields a client that behaves as our own page would."""
    listener = socket.create_server(("127.0.0.1", 0))
    url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    server = Server(uvicorn.Config(app, log_config=None, access_log=False, timeout_graceful_shutdown=5))
    task = asyncio.create_task(server.serve(sockets=[listener]))
    while not server.started:  # noqa: ASYNC110 - uvicorn sets a plain flag
        await asyncio.sleep(0.01)
    try:
        async with httpx.AsyncClient(base_url=url, headers={"origin": url}, timeout=20) as client:
            yield client
    finally:
        app.state.bus.close()
        server.should_exit = True
        await task
        listener.close()
