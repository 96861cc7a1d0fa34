"""The web application that root starts: what it leaves behind ends with it, and root's terminal obeys nothing of it."""

from __future__ import annotations

import os
import pty
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import httpx
import psutil
import pytest

from runners.wire.users import WEB_USER
from tests.factories.http_server import free_port
from tests.factories.serve_command import ServeCommand

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can start it as another user")

RUN_AS = (sys.executable, "-P", "-m", "runners.sandbox.run_as", str(WEB_USER), "--", sys.executable, "-c")
AS_WEB_USER = ("setpriv", f"--reuid={WEB_USER}", f"--regid={WEB_USER}", "--clear-groups", sys.executable, "-c")
STAYS = f"""
# of the tests in process {os.getpid()}, because others run beside them
import signal, time
for signum in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1):
    signal.signal(signum, signal.SIG_IGN)
print("detached", flush=True)
time.sleep(600)
"""
DETACHED = f"""
import os, sys
if os.fork():
    os._exit(0)
os.setsid()
if os.fork():
    os._exit(0)
os.execv(sys.executable, [sys.executable, "-c", {STAYS!r}])
"""
STARTS_IT = f"""
import os, signal, subprocess, sys, time
started = subprocess.Popen([sys.executable, "-c", {DETACHED!r}], stdout=subprocess.PIPE, text=True)
print(started.stdout.readline(), end="", flush=True)
"""
AS_DEEP_AS_LINUX_ALLOWS = """
import os, sys
from runners.sandbox import linux
while True:
    try:
        linux.unshare(linux.CLONE_NEWPID)
    except OSError:  # the 32nd namespace in another
        os.execv(sys.argv[1], sys.argv[1:])
    if inner := os.fork():
        os._exit(os.waitstatus_to_exitcode(os.waitpid(inner, 0)[1]))
"""


@pytest.fixture
def service() -> Iterator[ServeCommand]:
    """A server of root."""
    service = ServeCommand(warm_kernels=0)
    try:
        yield service
    finally:
        service.remove()


def detached() -> list[psutil.Process]:
    return [p for p in psutil.process_iter(["cmdline"]) if STAYS in (p.info["cmdline"] or ())]


@pytest.mark.parametrize(
    ("end", "status"),
    [
        ("", 0),
        ("sys.exit(3)", 3),
        ("sys.exit(255)", 255),
        ("os.kill(os.getpid(), signal.SIGKILL)", -signal.SIGKILL),
        ("os.kill(os.getpid(), signal.SIGTERM)", -signal.SIGTERM),
    ],
    ids=["by itself", "with a status", "with the highest status", "killed", "terminated"],
)
def test_what_a_command_has_started_ends_with_it_and_its_status_is_kept(end: str, status: int) -> None:
    done = subprocess.run([*RUN_AS, STARTS_IT + end], capture_output=True, text=True, timeout=60)

    assert (done.returncode, done.stdout, done.stderr) == (status, "detached\n", "")
    assert detached() == []


@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGINT, signal.SIGUSR1, signal.SIGKILL])
def test_a_signal_ends_the_command_and_all_that_it_has_started(signum: signal.Signals) -> None:
    code = STARTS_IT + "signal.signal(signal.SIGINT, signal.SIG_DFL)\nprint('ready', flush=True)\ntime.sleep(600)"
    with subprocess.Popen([*RUN_AS, code], stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout
            assert (process.stdout.readline(), process.stdout.readline()) == ("detached\n", "ready\n")
            left = detached()
            assert len(left) == 1

            process.send_signal(signum)

            assert process.wait(20) == -(signal.SIGKILL if signum == signal.SIGUSR1 else signum)
            assert psutil.wait_procs(left, timeout=20)[1] == []
        finally:
            process.kill()


def test_it_sees_only_its_own_processes_and_cannot_access_those_that_wait_for_it() -> None:
    code = "import os; print(os.getpid(), *sorted(n for n in os.listdir('/proc') if n.isdigit()))\nopen('/proc/1/mem')"

    done = subprocess.run([*RUN_AS, code], capture_output=True, text=True, timeout=60)

    assert done.stdout == "2 1 2\n"
    assert "Permission denied" in done.stderr


def test_where_no_pid_namespace_can_be_made_the_command_runs_all_the_same() -> None:
    done = subprocess.run(
        [sys.executable, "-c", AS_DEEP_AS_LINUX_ALLOWS, *RUN_AS, "import os; print(os.getuid())"],
        capture_output=True,
        text=True,
        timeout=60,
    )

    assert done.returncode == 0
    assert "what the web application starts may outlive it" in done.stdout
    assert done.stdout.endswith(f"{WEB_USER}\n")


@contextmanager
def terminal_of(service: ServeCommand) -> Iterator[int]:
    """A terminal, what it shows is in the server's log."""
    screen, terminal = pty.openpty()

    def show() -> None:
        with suppress(OSError), service.log.open("ab", buffering=0) as log:  # an error, once nobody has it open
            while shown := os.read(screen, 65_536):
                log.write(shown)

    showing = threading.Thread(target=show)
    showing.start()
    try:
        yield terminal
    finally:
        os.close(terminal)
        showing.join(20)
        os.close(screen)


@pytest.mark.long
@pytest.mark.parametrize("workers", [1, 2])
def test_its_terminal_obeys_no_attacker_and_all_that_one_detaches_ends_with_it(
    service: ServeCommand, workers: int
) -> None:
    orders = b"\x1b]52;c;cm0=\x07\x1b[2J\x9b6n\r\x1b[31mred\x1b[0m and\ttext\n"
    with terminal_of(service) as terminal:
        options = ("--workers", str(workers), "--port", str(free_port()))  # one that nobody takes after its end
        url = httpx.URL(service.start(*options, output=terminal, runs=False))
        web = service.web()
        outputs = {str(Path(f"/proc/{web.pid}/fd/{descriptor}").readlink()).partition(":")[0] for descriptor in (1, 2)}
        for descriptor in (1, 2):
            with Path(f"/proc/{web.pid}/fd/{descriptor}").open("wb", buffering=0) as output:
                output.write(orders)
        assert httpx.get(url.join("/nowhere"), timeout=30).status_code == 404
        processes = [web, *web.children(recursive=True)]
        assert len(processes) >= (1 if workers == 1 else 1 + workers)
        inside = ("nsenter", f"--target={web.pid}", "--pid", "--mount")
        with subprocess.Popen([*inside, *AS_WEB_USER, DETACHED], stdout=subprocess.PIPE) as process:
            assert process.stdout
            process.stdout.readline()
        left = detached()
        assert len(left) == 1

        assert service.stop() == 0

    assert not any(process.is_running() for process in (*processes, *left))
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((url.host, url.port))
    shown = service.log.read_bytes()
    assert outputs == {"pipe"}
    assert re.search(rb"\x1b\[\d+mrequest", shown)
    assert shown.count(b"\\x1b]52;c;cm0=\\x07\\x1b[2J\\x9b6n\\r\x1b[31mred\x1b[0m and\ttext\r\n") == 2
