"""The supervisor: HTTP over a Unix socket in front of one node.

Run as ``python -m runners.supervisor.server --socket PATH``. Locally it is a child of ``lockstep serve``, under Compose
it is the runner container. It ends, with everything that it started, on SIGTERM, SIGINT, or when its parent ends
(``--die-with-parent``).
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import ctypes
import fcntl
import os
import resource
import signal
import socket
import sys
import time
from errno import EROFS
from pathlib import Path
from typing import NoReturn

import structlog
import uvicorn
from starlette.applications import Starlette

from runners.config.settings import InvalidRunnerSettings, RunnerSettings
from runners.sandbox import linux
from runners.sandbox.seccomp import LibseccompMissing, compile_service_filter
from runners.sandbox.user_pool import NoUserRange
from runners.supervisor.node import Node
from runners.supervisor.root import give_up_root
from runners.supervisor.routes import create_app
from runners.wire.log_text import escape_entry
from runners.wire.users import is_root_of_the_machine

log = structlog.get_logger()

_PATIENCE_S = 5.0
"""How long a supervisor that has been told to end may still hold its socket."""

_KEEP_ALIVE_S = 60
"""An idle connection stays open longer than clients keep theirs. Otherwise one now and then sends a request just as the
connection closes, and on a busy machine often: the runner would seem to be away."""
_M_MMAP_THRESHOLD, _LARGE_BLOCK = -3, 131_072
"""An option of glibc's ``mallopt``, and its value in bytes: the default one, but fixed."""


class SocketInUse(RuntimeError):
    """Another supervisor already serves this socket."""


def bind_socket(path: Path) -> tuple[socket.socket, int]:
    """Bind the supervisor's socket; only this user (and group, if the folder allows) may connect.

    Returns:
        The socket, and the descriptor of the lock on it, which has to stay open.

    Raises:
        SocketInUse: another supervisor holds the lock.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    lock = os.open(path.with_suffix(".lock"), os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    give_up_at = time.monotonic() + _PATIENCE_S
    while not _locked(lock):
        if time.monotonic() >= give_up_at:
            os.close(lock)
            raise SocketInUse(f"another supervisor already serves {path}")
        time.sleep(0.1)
    path.unlink(missing_ok=True)
    s = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    s.bind(str(path))
    path.chmod(0o660)
    return s, lock


def _locked(lock: int) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def main() -> None:
    """``python -m runners.supervisor.server``."""
    parser = argparse.ArgumentParser(description="Lockstep's supervisor: runs learner code in sandboxes.")
    parser.add_argument("--socket", type=Path, required=True, help="path of the Unix socket to serve")
    parser.add_argument("--die-with-parent", action="store_true", help="end when the parent process ends")
    parser.add_argument(
        "--untrusted-users",
        action="store_true",
        help="untrusted users can reach it: run no code unless every required isolation layer is in force",
    )
    # What root has prepared for a supervisor that gives it up: the socket, its lock, and the first of its users.
    parser.add_argument("--prepared", type=int, nargs=3, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.die_with_parent:
        linux.die_with_parent(signal.SIGTERM)
    _log_to_stderr()
    raise_open_files_limit()
    return_freed_memory()
    refuse_rare_calls()
    try:
        settings = RunnerSettings.read()
        if arguments.untrusted_users:
            settings = settings.model_copy(update={"untrusted_users": True})
        if arguments.prepared:
            bound, lock, first_user = arguments.prepared
            for descriptor in (bound, lock):
                os.set_inheritable(descriptor, False)
            listening = socket.socket(fileno=bound)
            node = Node(settings, first_user)
        else:
            listening, lock = bind_socket(arguments.socket)
            if is_root_of_the_machine():
                give_up_root(settings, (listening.fileno(), lock))
            node = Node(settings)
    except OSError as e:
        _refuse(describe_error(e))
    except (InvalidRunnerSettings, SocketInUse, NoUserRange) as e:
        _refuse(str(e))
    # Streams end with their run. On shutdown they are cut, and the web application reconnects with its last number.
    asyncio.run(uvicorn.Server(server_config(create_app(node))).serve(sockets=[listening]))


def server_config(app: Starlette) -> uvicorn.Config:
    """How the supervisor serves its clients."""
    return uvicorn.Config(
        app,
        log_level="warning",
        timeout_graceful_shutdown=2,
        timeout_keep_alive=_KEEP_ALIVE_S,
        lifespan="on",
        ws="none",
    )


def raise_open_files_limit() -> None:
    """Raise the limit on open files as far as possible, for the supervisor and its zygotes.

    The same limit applies to the descriptors that a user has in transit in sockets. If sessions run as the supervisor's
    own user, one of them can fill that up to its own limit, so ours has to be higher.
    """
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def return_freed_memory() -> None:
    """Have glibc return each large block to the system once it is free, whatever it has allocated after that.

    By default, glibc learns from the first large message to keep such blocks in its heap, and an event that outlives
    its message then keeps all that was below it: several times the size of the output.
    """
    with contextlib.suppress(AttributeError):  # another C library
        ctypes.CDLL(None).mallopt(_M_MMAP_THRESHOLD, _LARGE_BLOCK)


def refuse_rare_calls() -> None:
    """Refuse system calls that nothing of the runner needs, here and in all that is started from here.

    Only where no program can gain rights: elsewhere, such a filter would take them from a set-uid bubblewrap. Without
    libseccomp there is none; no sandbox can be made then, and the node says so. A filter that lacks a call or is not in
    force ends the supervisor.
    """
    if not linux.has_no_new_privileges():
        return
    try:
        linux.install_service_filter(compile_service_filter(makes_sandboxes=True))
    except LibseccompMissing as e:
        log.warning("the runner may make every system call", error=str(e))
    except (RuntimeError, OSError) as e:
        _refuse(f"The runner cannot refuse rare system calls: {e}.")


def _log_to_stderr() -> None:
    """Set up logging, with plain tracebacks: rich ones show local variables, and learners' code with them."""
    renderer = structlog.dev.ConsoleRenderer(
        colors=sys.stderr.isatty(), exception_formatter=structlog.dev.plain_traceback
    )
    text = (structlog.processors.format_exc_info, escape_entry)
    processors = [*structlog.get_config()["processors"][:-1], *text, renderer]
    structlog.configure(processors=processors, logger_factory=structlog.PrintLoggerFactory(sys.stderr))


def describe_error(error: OSError) -> str:
    """Say what the system has refused, and if it is for lack of rights, to whom."""
    if not error.filename:
        return str(error)
    what = f"Cannot use {error.filename}: {error.strerror}."
    denied = isinstance(error, PermissionError) or error.errno == EROFS
    return f"{what} The runner runs as user {os.geteuid()}, which must be able to write there." if denied else what


def _refuse(why: str) -> NoReturn:
    """Exit with the status that says that a restart would fail in the same way."""
    print(why, file=sys.stderr)
    sys.exit(2)


if __name__ == "__main__":
    main()
