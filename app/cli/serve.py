"""``lockstep serve``: the whole of Lockstep on this machine, web and runner, until Ctrl-C."""

from __future__ import annotations

import socket
from contextlib import ExitStack, suppress
from typing import Annotated

import typer
import uvicorn
from uvicorn.supervisors import Multiprocess

from app.cli.db import upgrade_now
from app.cli.local_runner import LocalRunner, make_private
from app.cli.speech import give_up, read_settings, say

_GRACE_S = 3


def serve(
    host: Annotated[str, typer.Option(help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes any free port.")] = 8000,
    workers: Annotated[int, typer.Option(min=1, max=64, help="Web processes; they share one runner.")] = 1,
) -> None:
    """Serve the course, with a runner of its own unless LOCKSTEP_RUNNER_SOCKET names one."""
    settings = read_settings()
    try:
        make_private(settings.data_dir)
    except OSError as e:
        give_up(f"The data directory {settings.data_dir} cannot be used: {e.strerror or e}.")
    listener = _listen(host, port)
    upgrade_now(settings)
    with ExitStack() as stack:
        if settings.runner_socket is None:
            stack.enter_context(LocalRunner(settings.socket, settings.data_dir, tell=say))
        address = listener.getsockname()
        say(f"Lockstep is at {settings.public_url or _url(host, address[1])} (Ctrl-C ends it).")
        _serve(listener, workers)


def _listen(host: str, port: int) -> socket.socket:
    """Take the port before anything is started, so that a taken one is said at once."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listener = socket.socket(family, kind, protocol)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(2048)
    except OSError as e:
        give_up(f"Cannot listen on {host} port {port}: {e.strerror or e}. Choose another with --port.")
    listener.set_inheritable(True)
    return listener


def _serve(listener: socket.socket, workers: int) -> None:
    config = uvicorn.Config(
        "app.main:create_app",
        factory=True,
        workers=workers,
        access_log=False,
        log_config=None,
        log_level="warning",
        server_header=False,
        timeout_graceful_shutdown=_GRACE_S,
        proxy_headers=True,
    )
    if workers > 1:
        Multiprocess(config, sockets=[listener]).run()
        return
    server = uvicorn.Server(config)
    with suppress(KeyboardInterrupt):
        server.run(sockets=[listener])
    if not server.started:
        raise typer.Exit(1)


def _url(host: str, port: int) -> str:
    shown = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(host, f"[{host}]" if ":" in host else host)  # noqa: S104
    return f"http://{shown}:{port}/"
