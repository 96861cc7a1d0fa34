"""``lockstep serve``: runs all of Lockstep on this machine, web application and runner, until Ctrl-C."""

from __future__ import annotations

import asyncio
import errno
import http.client
import ipaddress
import os
import signal
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer

from app.cli.console import USAGE_ERROR, fail, print_message, read_settings
from app.cli.db import upgrade_database
from app.cli.local_runner import BelongsToAnotherUser, LocalRunner, make_private_directory
from app.cli.setup_link import print_setup_link
from app.cli.shell_settings import invalid_settings, unknown_variables
from app.cli.web_process import give_files_to_web_user, is_local, serve_as_web_user, serve_web
from app.monitoring.metrics_server import listen
from app.settings import Settings, is_public_url
from app.version import described_version
from app.web.assets import docs_built
from runners.wire.client import RunnerClient, RunnerError
from runners.wire.users import WEB_USER, is_root_of_the_machine

_ALL_INTERFACES_WARNING = (
    "The server listens on every address of this machine, so untrusted users may reach it, and every isolation layer "
    "must be in force. Check with 'lockstep doctor'."
)
_SQLITE_WORKERS_WARNING = (
    "With SQLite, one worker at a time can write, and each hears of changes by the others up to 15 seconds late. For "
    "several workers, set LOCKSTEP_DATABASE_URL to a PostgreSQL database; 'lockstep db copy' takes the data there."
)
_ROOT_WARNING = (
    "The web application runs as root. It need not: start it as a user that may connect to the runner's socket, or "
    "without LOCKSTEP_RUNNER_SOCKET."
)


def serve(
    host: Annotated[str, typer.Option(help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port to listen on; 0 picks a free one.")] = 8000,
    workers: Annotated[int, typer.Option(min=1, max=64, help="Number of web processes. They share one runner.")] = 1,
    wait_for_database: Annotated[
        bool,
        typer.Option(
            "--wait-for-database",
            help="While the database does not respond or belongs to a newer version, say so and wait, instead of "
            "ending. For containers that are restarted when they end.",
        ),
    ] = False,
) -> None:
    """Serve the site, and start a runner unless LOCKSTEP_RUNNER_SOCKET names one."""
    if errors := invalid_settings(os.environ):
        fail("\n".join(errors), USAGE_ERROR)
    for sentence in unknown_variables(os.environ):
        print_message(f"{sentence} It has no effect.")
    settings = read_settings()
    if wait_for_database and settings.runner_socket is None:
        fail("--wait-for-database requires LOCKSTEP_RUNNER_SOCKET.", USAGE_ERROR)
    os.umask(0o077)  # learners' code and cookies' hashes are in the files of SQLite
    _make_private(settings.data_dir, "data directory")
    listener = listen_on(host, port)
    _check_metrics_address(settings)
    address = settings.known_url or _url(host, listener.getsockname()[1])
    banner = f"Lockstep {described_version()} is at {address} (press Ctrl-C to stop).\n{_documentation(address)}"
    if ipaddress.ip_address(listener.getsockname()[0]).is_unspecified:
        banner += f"\n{_ALL_INTERFACES_WARNING}"
    if workers > 1 and settings.database.startswith("sqlite"):
        banner += f"\n{_SQLITE_WORKERS_WARNING}"
    untrusted_users = not is_local(listener) or is_public_url(settings.public_url)
    if settings.runner_socket is not None:
        if untrusted_users:
            asyncio.run(_require_untrusted_mode(settings.runner_socket))
        if is_root_of_the_machine():
            print_message(_ROOT_WARNING)
        upgrade_database(settings, wait=wait_for_database)
        print_setup_link(settings, listener)
        call_when_ready(listener, lambda: print_message(banner))
        status = serve_web(listener, workers)
    else:
        status = _serve_with_runner(settings, listener, workers, banner, untrusted_users=untrusted_users)
    if status:
        raise typer.Exit(status)


def _make_private(folder: Path, what: str, client_group: int | None = None) -> None:
    try:
        make_private_directory(folder, client_group)
    except OSError as e:
        own = f"Run 'sudo chown -R {os.getuid()} {folder}', or set" if isinstance(e, BelongsToAnotherUser) else "Set"
        fail(f"The {what} {folder} cannot be used: {e.strerror}. {own} LOCKSTEP_DATA_DIR to another directory.")


def _documentation(address: str) -> str:
    """Say where the documentation is: on the server itself once it is built, until then in the source."""
    site = f"{address.rstrip('/')}/docs/"
    if docs_built():
        return f"Documentation: {site}"
    return f"Documentation: docs/index.md in the source of Lockstep. 'make docs' builds it for {site}"


def _serve_with_runner(
    settings: Settings, listener: socket.socket, workers: int, banner: str, *, untrusted_users: bool
) -> int:
    """Serve with a local runner; returns the exit status. If the runner refuses to start, the server ends, too."""
    has_web_user = give_files_to_web_user(settings)
    _make_private(settings.socket.parent, "folder of the runner's socket", WEB_USER if has_web_user else None)
    if not has_web_user:
        upgrade_database(settings)
        print_setup_link(settings, listener)
    runner = LocalRunner(
        settings.socket,
        settings.data_dir,
        untrusted_users=untrusted_users,
        client_group=WEB_USER if has_web_user else None,
        tell=print_message,
        on_refusal=_interrupt_self,
    )

    def announce() -> None:
        runner.settled.wait()
        if not runner.refused:
            print_message(banner)

    status = 0
    with suppress(KeyboardInterrupt), runner:
        call_when_ready(listener, announce)
        status = serve_as_web_user(settings, listener, workers) if has_web_user else serve_web(listener, workers)
    if not runner.refused:
        return status
    if asyncio.run(_responds(settings.socket)):
        print_message(
            f"Another Lockstep is already using {settings.data_dir}. Choose another directory with LOCKSTEP_DATA_DIR."
        )
    return USAGE_ERROR


def call_when_ready(listener: socket.socket, then: Callable[[], None]) -> threading.Thread:
    """Call ``then`` in a thread once the web application responds for the first time."""
    host, port = listener.getsockname()[:2]
    if ipaddress.ip_address(host).is_unspecified:
        host = "127.0.0.1" if listener.family == socket.AF_INET else "::1"

    def ask() -> None:
        connection = http.client.HTTPConnection(host, port)  # the port is ours: the request waits
        with suppress(OSError, http.client.HTTPException):
            connection.request("GET", "/healthz", headers={"Connection": "close"})
            connection.getresponse().read()
            then()

    herald = threading.Thread(target=ask, name="herald", daemon=True)
    herald.start()
    return herald


def _interrupt_self() -> None:
    """Do what Ctrl-C does. Called in a thread; the main thread gets the signal."""
    os.kill(os.getpid(), signal.SIGINT)


async def _require_untrusted_mode(runner: Path) -> None:
    """Warn if a runner that somebody else starts does not know that untrusted users can reach it.

    The web processes tell it with each request (``RunnerClient``), so a runner that responds only later learns it as
    well.
    """
    async with RunnerClient(runner) as client:
        try:
            health = await client.health()
        except RunnerError:
            print_message(f"The runner at {runner} is not responding yet. It must be started with --untrusted-users.")
            return
    if not health.untrusted_users:
        fail(
            f"Untrusted users can reach this server, and the runner at {runner} does not know it: "
            "start it with --untrusted-users or LOCKSTEP_UNTRUSTED_USERS=1, so that it checks its isolation first.",
            USAGE_ERROR,
        )


async def _responds(runner: Path) -> bool:
    async with RunnerClient(runner) as client:
        try:
            await client.health()
        except RunnerError:
            return False
    return True


def listen_on(host: str, port: int) -> socket.socket:
    """Bind the port before anything is started, so that a port in use is reported at once."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    except (OSError, UnicodeError) as e:
        why = getattr(e, "strerror", None) or "it is not an address of this machine"
        fail(f"Cannot listen on {host}: {why}. Choose another with --host, such as 127.0.0.1 or 0.0.0.0.")
    try:
        listener = socket.socket(family, kind, protocol)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(2048)
    except OSError as e:
        option = "--host" if e.errno == errno.EADDRNOTAVAIL else "--port"
        fail(f"Cannot listen on {host} port {port}: {e.strerror or e}. Choose another with {option}.")
    listener.set_inheritable(True)
    return listener


def _check_metrics_address(settings: Settings) -> None:
    """Report at once that the web processes cannot listen on the address of the metrics."""
    if settings.metrics_listener is None:
        return
    try:
        listen(*settings.metrics_listener, shared=False).close()
    except OSError as e:
        fail(
            f"Cannot serve metrics on {settings.metrics_address}: {e.strerror or e}. "
            "Choose another address with LOCKSTEP_METRICS_ADDRESS."
        )


def _url(host: str, port: int) -> str:
    shown = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(host, f"[{host}]" if ":" in host else host)  # noqa: S104
    return f"http://{shown}:{port}/"
