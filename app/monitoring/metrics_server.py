"""A port of its own for ``/metrics``, which a proxy does not publish.

Every web process listens on it, and Linux gives each connection to one of them. Whichever it is answers for all.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

import uvicorn

from app.monitoring.routes import LookAtSite, metrics_app

_MAX_CONNECTIONS = 20
_KEEP_ALIVE_S = 30


class _Server(uvicorn.Server):
    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals to the web application's own server."""
        yield


@asynccontextmanager
async def serve_metrics(host: str, port: int, look_at_site: LookAtSite) -> AsyncIterator[None]:
    """Serve the metrics during the block. Raises OSError if the address cannot be used."""
    config = uvicorn.Config(
        metrics_app(look_at_site),
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        limit_concurrency=_MAX_CONNECTIONS,
        timeout_keep_alive=_KEEP_ALIVE_S,
        timeout_graceful_shutdown=1,
    )
    server = _Server(config)
    with listen(host, port, shared=True) as listener:
        serving = asyncio.create_task(server.serve(sockets=[listener]))
        try:
            yield
        finally:
            server.should_exit = True
            await serving


def listen(host: str, port: int, *, shared: bool) -> socket.socket:
    """Bind the port. ``shared``: other processes of this user may listen on it, too. Raises OSError."""
    family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    listener = socket.socket(family, kind, protocol)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if shared:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        listener.bind(address)
    except OSError:
        listener.close()
        raise
    return listener
