"""The web application's process: this one or, if root has started Lockstep and its runner, a child of another user.

An attacker who breaks into the web application then gets its database and secrets, but not the machine, the runner or
the files of the lessons.
"""

from __future__ import annotations

import ipaddress
import os
import resource
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType

import typer
import uvicorn
from sqlalchemy.engine import make_url
from uvicorn.config import STARTUP_FAILURE
from uvicorn.supervisors import Multiprocess

from app.cli.console import fail, print_message, read_settings
from app.cli.db import upgrade_database
from app.cli.log_filter import copy_to_terminal
from app.cli.main import import_quickly
from app.cli.setup_link import print_setup_link
from app.cli.web_user import web_user_environment
from app.monitoring.counted import SHARED_FOLDER
from app.observability import LOGS_ON_TERMINAL
from app.settings import Settings
from app.web.http_protocol import LimitedHttpProtocol
from runners.wire.users import END_AT_ONCE, WEB_USER, is_root_of_the_machine

_SHUTDOWN_S = 3
_KEEP_ALIVE_S = 75
"""An idle connection stays open longer than proxies keep theirs (nginx: 60 s). Otherwise a proxy now and then sends a
request just as the connection closes, and the learner sees a 502."""
_WORKER_PATIENCE_S = 15
"""How long one of several workers may say nothing before it is replaced. On a busy machine, uvicorn's 5 s kill workers
that are starting, and those that could not start before they have said so."""
_PATIENCE_S = 10
"""How long a web application of another user has to end before it and everything in it are killed."""
_LAST_PATIENCE_S = 2
_DATA_DIR_MODE = 0o1770
"""The web application makes files there, and cannot replace those of root or the runner."""
_NOT_ITS_OWN = {"run": 0o700, "datasets": 0o755}
"""Folders that root and the runner use, and their modes. They exist before the web application could make them."""


def serve_web(listener: socket.socket, workers: int) -> int:
    """Serve in this process until Ctrl-C; returns the exit status."""
    raise_open_files_limit()
    config = uvicorn.Config(
        "app.main:create_local_app" if is_local(listener) else "app.main:create_app",
        factory=True,
        workers=workers,
        access_log=False,
        log_config=None,
        log_level="warning",
        server_header=False,
        timeout_graceful_shutdown=_SHUTDOWN_S,
        timeout_keep_alive=_KEEP_ALIVE_S,
        timeout_worker_healthcheck=_WORKER_PATIENCE_S,
        proxy_headers=True,
        http=LimitedHttpProtocol,
    )
    if workers > 1:
        web_processes = Multiprocess(config, sockets=[listener])
        with _shared_metrics():
            web_processes.run()
        # One that cannot start ends all of them, because another one could not start either.
        failed = any(process.exitcode == STARTUP_FAILURE for process in web_processes.processes)
        return STARTUP_FAILURE if failed else 0
    import_quickly("app.main")
    server = uvicorn.Server(config)
    with suppress(KeyboardInterrupt):
        server.run(sockets=[listener])
    return 0 if server.started else 1


def raise_open_files_limit() -> None:
    """Raise the limit on open files as far as possible, for this process and its workers.

    Each open page holds a connection for its stream. Many systems start processes with 1,024 files; with that many
    connections, browsers wait for an answer, and SQLite "cannot open" its database.
    """
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


@contextmanager
def _shared_metrics() -> Iterator[None]:
    """Let the web processes that start inside the block add up their metrics, if there are any."""
    if not read_settings().metrics_address:
        yield
        return
    with tempfile.TemporaryDirectory(prefix="lockstep-metrics-") as folder:
        os.environ.setdefault(SHARED_FOLDER, folder)
        yield


def is_local(listener: socket.socket) -> bool:
    """Whether only this machine can reach it."""
    return ipaddress.ip_address(listener.getsockname()[0]).is_loopback


def give_files_to_web_user(settings: Settings) -> bool:
    """Give the web application's user its files in the data directory. False if it has to run as this user."""
    if not is_root_of_the_machine():
        return False
    url = make_url(settings.database)
    database = Path(url.database or "") if url.get_backend_name() == "sqlite" else None
    if database and database.parent != settings.data_dir:
        print_message(f"The web application keeps root, because {database} is not in {settings.data_dir}.")
        return False
    try:
        folder = os.open(settings.data_dir, os.O_RDONLY | os.O_DIRECTORY)
        try:
            for name, mode in _NOT_ITS_OWN.items():
                with suppress(FileExistsError):
                    os.mkdir(name, mode, dir_fd=folder)
            os.fchown(folder, 0, WEB_USER)
            os.fchmod(folder, _DATA_DIR_MODE)
            for name in ("secrets", "backups"):
                _give(folder, name, with_files=True)
            if database:
                for suffix in ("", "-wal", "-shm", "-journal"):
                    _give(folder, f"{database.name}{suffix}")
        finally:
            os.close(folder)
    except PermissionError:
        print_message(f"The web application keeps root, because the owner of {settings.data_dir} cannot be changed.")
        return False
    except OSError as e:  # the web application must not gain root through anything that it leaves there
        if e.filename is None:
            fail(f"The data directory {settings.data_dir} cannot be used: {e.strerror}.")
        fail(
            f"{e.filename} in {settings.data_dir} is in the way: it must be a file or folder ({e.strerror}). Remove it."
        )
    return True


def _give(folder: int, name: str, *, with_files: bool = False) -> None:
    """Give away a file or folder of root, but not what a link by that name leads to: its user could have made it.

    ``with_files`` includes what lies directly in the folder.
    """
    try:
        there = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder)
    except FileNotFoundError:
        return
    try:
        about = os.fstat(there)
        if with_files and stat.S_ISDIR(about.st_mode):
            with os.scandir(there) as entries:
                for entry in entries:
                    _give(there, entry.name)
        if about.st_uid == 0 and (stat.S_ISDIR(about.st_mode) or about.st_nlink == 1):
            os.fchown(there, WEB_USER, WEB_USER)
    finally:
        os.close(there)


def serve_as_web_user(settings: Settings, listener: socket.socket, workers: int) -> int:
    """Serve in a child process of the web application's user until Ctrl-C or SIGTERM; returns the exit status."""
    child = _start_as_web_user(settings, listener, workers)
    copies = [
        threading.Thread(target=copy_to_terminal, args=(stream, descriptor), daemon=True)
        for descriptor, stream in ((1, child.stdout), (2, child.stderr))
        if stream is not None
    ]
    for copy in copies:
        copy.start()
    status = _wait(child)
    for copy in copies:
        copy.join(_LAST_PATIENCE_S)
    return 0 if status == -signal.SIGTERM else status


def _start_as_web_user(settings: Settings, listener: socket.socket, workers: int) -> subprocess.Popen[bytes]:
    """Start the child process, with pipes in place of terminals: it must neither read nor control root's."""
    folders = [settings.data_dir, settings.lessons_dir]
    if not settings.socket.is_relative_to(settings.data_dir):
        folders.append(settings.socket.parent)
    python = (sys.executable, "-P", "-m")
    environment = web_user_environment(settings) | {"LOCKSTEP_RUNNER_SOCKET": str(settings.socket)}
    if os.isatty(2):
        environment[LOGS_ON_TERMINAL] = "1"
    return subprocess.Popen(
        [
            *(*python, "runners.sandbox.run_as", str(WEB_USER), *map(str, folders), "--"),
            *(*python, "app.cli.web_process", str(listener.fileno()), str(workers)),
        ],
        env=environment,
        bufsize=0,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE if os.isatty(1) else None,
        stderr=subprocess.PIPE if os.isatty(2) else None,
        pass_fds=[listener.fileno()],
        start_new_session=True,  # the terminal's Ctrl-C comes from here, once
    )


def _wait(child: subprocess.Popen[bytes]) -> int:
    """Wait for the end of the child process, and end it on Ctrl-C or SIGTERM; returns its status."""
    ended = threading.Event()

    def kill() -> None:
        child.send_signal(END_AT_ONCE)
        if not ended.wait(_LAST_PATIENCE_S):
            child.kill()

    killer = threading.Timer(_PATIENCE_S, kill)
    killer.daemon = True

    def stop(_signum: int, _frame: FrameType | None) -> None:
        child.send_signal(signal.SIGTERM)
        with suppress(RuntimeError):  # it has been asked before
            killer.start()

    before = {signum: signal.signal(signum, stop) for signum in (signal.SIGINT, signal.SIGTERM)}
    try:
        return child.wait()
    finally:
        ended.set()
        killer.cancel()
        for signum, handler in before.items():
            signal.signal(signum, handler)


def main(descriptor: int, workers: int) -> None:
    """``python -m app.cli.web_process DESCRIPTOR WORKERS``: serve on the socket that ``lockstep serve`` listens on."""
    os.umask(0o077)
    settings, listener = read_settings(), socket.socket(fileno=descriptor)
    upgrade_database(settings)
    print_setup_link(settings, listener)
    raise typer.Exit(serve_web(listener, workers))


if __name__ == "__main__":
    typer.run(main)
