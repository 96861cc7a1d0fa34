"""The client of a lease: takes a bare kernel from a supervisor and holds it as long as it reads.

Jupyter calls a provisioner from an event loop that may not run between two calls. These calls therefore block, and a
thread holds the lease.
"""

from __future__ import annotations

import signal
import socket as sockets
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import closing, contextmanager
from http.client import HTTPConnection, HTTPException, HTTPResponse
from pathlib import Path
from typing import Self

from pydantic import ValidationError

from runners.wire.protocol import Health, KernelExit, KernelLease, KernelSignal, LeaseRequest, Refusal

_PATIENCE_S = 150.0
"""The first kernel of a supervisor waits until TensorFlow is loaded."""
_SILENCE_S = 30.0
"""The supervisor sends a line every two seconds; one that is silent for this long has ended."""
_PAUSE_S = 0.2


class LeaseRefused(RuntimeError):
    """The supervisor refuses a kernel, or takes this one back; ``str()`` says why."""


class SupervisorUnreachable(LeaseRefused):
    """Nothing responds on the supervisor's socket."""


class Lease:
    """One leased kernel. ``close`` ends the lease; so does the end of the process."""

    def __init__(self, socket: Path, told: KernelLease) -> None:
        self.socket = socket
        self.told = told

    @classmethod
    def take(cls, socket: Path, spec: LeaseRequest) -> Self:
        """Request a kernel; blocks until its sandbox exists.

        Raises:
            LeaseRefused: the node is full, or the machine cannot create a sandbox.
        """
        answer = _send(socket, "POST", "/kernels", spec.model_dump_json())
        return cls(socket, KernelLease.model_validate_json(answer))

    @property
    def files(self) -> list[Path]:
        """The kernel's sockets, as numbered in ``told.ports``."""
        return [Path(f"{self.told.ip}-{port}") for port in self.told.ports]

    def restart(self, spec: LeaseRequest) -> None:
        """Start a fresh kernel in the same sandbox. Raises LeaseRefused."""
        answer = _send(self.socket, "POST", f"/kernels/{self.told.id}/restart", spec.model_dump_json())
        self.told = KernelLease.model_validate_json(answer)

    def signal(self, signum: int) -> None:
        """Signal the kernel's process. Raises LeaseRefused."""
        _send(self.socket, "POST", f"/kernels/{self.told.id}/signal", KernelSignal(signum=signum).model_dump_json())

    def close(self) -> None:
        """End the kernel and its sandbox. Raises LeaseRefused."""
        _send(self.socket, "DELETE", f"/kernels/{self.told.id}")

    def hold(self, on_end: Callable[[KernelExit], None] = lambda end: None) -> Future[KernelExit]:
        """Hold the running kernel, in a separate thread, which calls ``on_end`` before the future is done.

        Returns:
            How it has ended. When a supervisor ends, so do its kernels, as if killed.
        """
        end: Future[KernelExit] = Future()
        reader = threading.Thread(target=self._hold, args=(end, on_end), name=f"lease-{self.told.id}", daemon=True)
        reader.start()
        return end

    def _hold(self, end: Future[KernelExit], on_end: Callable[[KernelExit], None]) -> None:
        exited: KernelExit | None = None
        while exited is None:
            try:
                exited = self._read()
            except LeaseRefused:
                exited = KernelExit(status=-signal.SIGKILL)
            except (OSError, HTTPException, ValidationError):
                time.sleep(_PAUSE_S)  # the stream broke: the supervisor has ended or is only slow
        on_end(exited)
        end.set_result(exited)

    def _read(self) -> KernelExit | None:
        with _asked(self.socket, "GET", f"/kernels/{self.told.id}/exit", timeout_s=_SILENCE_S) as answer:
            while line := answer.readline():
                if line.strip():
                    return KernelExit.model_validate_json(line)
        time.sleep(_PAUSE_S)
        return None


def fetch_health(socket: Path) -> Health:
    """Fetch the supervisor's health. Raises SupervisorUnreachable."""
    return Health.model_validate_json(_send(socket, "GET", "/health"))


def _send(socket: Path, method: str, path: str, body: str | None = None) -> bytes:
    with _asked(socket, method, path, body) as answer:
        try:
            return answer.read()
        except (OSError, HTTPException) as e:
            raise SupervisorUnreachable(f"Lockstep's supervisor at {socket} dropped the connection: {e!r}") from e


class _UnixSocketConnection(HTTPConnection):
    """HTTP over a Unix socket. (httpx would leave a socket open if nobody listens.)"""

    def __init__(self, path: Path, timeout_s: float) -> None:
        super().__init__("supervisor", timeout=timeout_s)
        self._path = path

    def connect(self) -> None:
        """Connect; called by the first request."""
        self.sock = sockets.socket(sockets.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(str(self._path))


@contextmanager
def _asked(
    socket: Path, method: str, path: str, body: str | None = None, timeout_s: float = _PATIENCE_S
) -> Iterator[HTTPResponse]:
    """Send a request and yield its response, whose body is still to be read.

    Raises:
        SupervisorUnreachable: nothing responds.
        LeaseRefused: the response is a refusal.
    """
    with closing(_UnixSocketConnection(socket, timeout_s)) as connection:
        try:
            connection.request(method, path, body, {"content-type": "application/json"} if body else {})
            answer = connection.getresponse()
        except (OSError, HTTPException) as e:
            raise SupervisorUnreachable(f"Lockstep's supervisor at {socket} is not responding: {e!r}") from e
        with answer:
            if answer.status >= 400:
                raise _refused(answer.status, answer.read())
            yield answer


def _refused(status: int, body: bytes) -> LeaseRefused:
    try:
        return LeaseRefused(Refusal.model_validate_json(body).message)
    except ValidationError:
        return LeaseRefused(f"Lockstep's supervisor responded with status {status} and no reason")
