"""A real supervisor for tests: ``python -m runners.supervisor.server`` with its own folders, settings and user.

Everything it starts runs as that user or one after it, so what it has left behind can be counted.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Any

import psutil

from runners.wire.client import ResourceNotFound, RunnerClient
from runners.wire.protocol import (
    CheckEvent,
    DisplayEvent,
    ErrorEvent,
    Event,
    FinishedEvent,
    KerasVersion,
    Outcome,
    RunAccepted,
    RunRequest,
    SessionSpec,
    submission_verdict,
)
from tests.factories.process_tree import children, command_line, name

SECRET = "do-not-tell-8d1f0c"
"""Lies in the environment of every supervisor of the tests; no session may see it."""

_TIMEOUT_S = 90.0
_START_TIMEOUT_S = 250.0
"""A little more than the node itself gives a zygote: a busy machine may take that long to import TensorFlow."""
_REPOSITORY = Path(__file__).resolve().parents[2]
_USERS = 512
"""As many as a node of the tests may have."""
_NODES = 256
"""As many as one process of tests may start; the next process has others, up to the last user there may be."""
_PROCESSES = 16_000


def claim_number() -> int:
    """A number that no other process of tests on this machine has, until this one ends: process IDs are too large."""
    for further in range(_PROCESSES):
        number = (os.getpid() + further) % _PROCESSES
        with socket.socket(socket.AF_UNIX) as claim, contextlib.suppress(OSError):
            claim.bind(f"\0lockstep-test-process-{number}")
            claim.detach()
            return number
    raise AssertionError(f"more than {_PROCESSES:,} processes of tests")


_first_uid = 1_000_000 + claim_number() * _NODES * _USERS
_uids = iter(range(_first_uid, _first_uid + _NODES * _USERS, _USERS))


def next_uids() -> range:
    """Users that nothing else runs as: the supervisor's, the zygotes', then the sessions'. Without root, our own."""
    if os.geteuid() != 0:
        return range(os.geteuid(), os.geteuid() + 1)
    first = next(_uids, None)
    assert first is not None, f"more than {_NODES} nodes in one process of tests"
    return range(first, first + _USERS)


def cgroups_of(supervisor: int) -> list[Path]:
    """The cgroups in which a supervisor makes those of its sessions, whether it lives or not."""
    name = f"lockstep-{supervisor}"
    found = [Path(top, name) for top, folders, _ in os.walk("/sys/fs/cgroup") if name in folders]
    return [group for group in found if not (group / name).exists()]  # one that root has delegated holds another


class _Connection(HTTPConnection):
    """HTTP over a Unix socket; unlike httpx, it leaves no socket open if nobody listens."""

    def __init__(self, path: str) -> None:
        super().__init__("node", timeout=20)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


class RealSupervisor:
    """One supervisor process and its resources. ``start`` waits until it is ready."""

    def __init__(self, before: tuple[str, ...] = (), **settings: Any) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="ls-"))
        self.folder.chmod(0o755)
        self.socket = self.folder / "s.sock"
        self.data = self.folder / "data"
        self.log = self.folder / "log"
        self.temporary = self.folder / "t"
        for folder in (self.data, self.temporary):
            folder.mkdir()
        self.temporary.chmod(0o1777)  # as /tmp
        self.uids = next_uids()
        self._before = before
        usual = {"warm_kernels": 1, "prepare_data_sets": 0, "service_uid": self.uids[0]}
        self._settings = usual | settings
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        """The supervisor's process ID."""
        assert self._process
        return self._process.pid

    @property
    def command(self) -> list[str]:
        """The command that starts it."""
        server = [sys.executable, "-m", "runners.supervisor.server", "--socket", str(self.socket), "--die-with-parent"]
        return [*self._before, *server]

    @property
    def alive(self) -> bool:
        """Whether the supervisor is running."""
        return self._process is not None and self._process.poll() is None

    def start(self, *, warm: bool = True) -> RealSupervisor:
        """Start it and wait until it is ready, with a warm kernel unless ``warm`` says otherwise."""
        self.launch()
        wanted = 1 if warm and self._settings["warm_kernels"] else 0
        self.wait(
            lambda: self.health()["status"] == "ready" and self.health()["warm_kernels"] >= wanted, _START_TIMEOUT_S
        )
        return self

    def launch(self) -> None:
        """Start it without waiting."""
        environment = {k: v for k, v in os.environ.items() if not k.startswith("LOCKSTEP_")}
        environment |= {f"LOCKSTEP_{k.upper()}": str(v) for k, v in self._settings.items()}
        environment |= {
            "LOCKSTEP_DATA_DIR": str(self.data),
            "TMPDIR": str(self.temporary),
            "DATABASE_PASSWORD": SECRET,
            "LOCKSTEP_SECRET": SECRET,
        }
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                self.command, env=environment, cwd=_REPOSITORY, stderr=log, stdin=subprocess.DEVNULL
            )

    def wait(self, true: Any, patience_s: float = _TIMEOUT_S) -> None:
        """Wait until ``true()`` is true; fails with the supervisor's log if that takes too long."""
        deadline = time.monotonic() + patience_s
        while True:
            try:
                if true():
                    return
            except (OSError, HTTPException, psutil.NoSuchProcess):
                pass
            assert time.monotonic() < deadline, f"it did not come about\n{self.log.read_text()[-4000:]}"
            time.sleep(0.05)

    def health(self) -> dict[str, Any]:
        """The supervisor's health; raises OSError while it is down."""
        with contextlib.closing(_Connection(str(self.socket))) as http:
            http.request("GET", "/health")
            answer: dict[str, Any] = json.load(http.getresponse())
            return answer

    def ask(self, method: str, path: str, body: object = None) -> tuple[int, dict[str, Any]]:
        """Send any request unchanged; returns status and response."""
        with contextlib.closing(_Connection(str(self.socket))) as http:
            http.putrequest(method, path, skip_accept_encoding=True)
            content = json.dumps(body).encode() if body is not None else b""
            http.putheader("content-length", str(len(content)))
            http.endheaders(content)
            answer = http.getresponse()
            read = answer.read()
            return answer.status, json.loads(read) if read.startswith(b"{") else {}

    def client(self) -> RunnerClient:
        """A separate client for each test, because it belongs to that test's event loop."""
        return RunnerClient(self.socket)

    def stop(self, signum: int = signal.SIGTERM) -> int:
        """Send a signal and wait for the end; returns the exit status."""
        assert self._process
        self._process.send_signal(signum)
        return self._process.wait(30)

    def remove(self) -> None:
        """Stop it if need be and delete its folders."""
        if self.alive:
            self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    # --- what it has on the machine -----------------------------------------------------------------------------

    def processes(self) -> list[str]:
        """Its zygotes and all processes in its sessions, as ``number name`` (except zombies, which hold nothing)."""
        found = []
        own = set() if os.geteuid() == 0 else {p.pid for p in children(self.pid, all_below=True)}
        for process in psutil.process_iter(["uids", "status", "name"]):
            ours = process.info["uids"] and process.info["uids"].real in self.uids[1:]
            if own:  # a user who also runs other things; what ends here is the zygote's child until it is gone
                ours = process.pid in own and process.info["name"] != "bwrap"
            if ours and process.info["status"] != psutil.STATUS_ZOMBIE:
                found.append(f"{process.pid} {process.info['name']}")
        return found

    def zygotes(self) -> list[psutil.Process]:
        """The processes from which it starts sessions."""
        found: list[psutil.Process] = []
        for child in children(self.pid):
            inside = children(child) if name(child) == "bwrap" else [child]
            found += [p for p in inside if "runners.zygote.fork_server" in command_line(p) and name(p) != "bwrap"]
        return found

    def outer_sandboxes(self) -> list[psutil.Process]:
        """The bubblewrap processes around its zygotes."""
        return [p for p in children(self.pid) if name(p) == "bwrap"]

    def cgroups(self) -> list[Path]:
        """Its own cgroup for each controller; those of its sessions are below it."""
        return cgroups_of(self.pid)

    def folders(self) -> list[Path]:
        """The content of its temporary folder."""
        return sorted(self.temporary.iterdir())


@dataclass(frozen=True)
class RecordedRun:
    """A run, as described by its events."""

    id: str
    accepted: RunAccepted
    events: tuple[Event, ...]

    @property
    def finished(self) -> FinishedEvent:
        last = self.events[-1]
        assert isinstance(last, FinishedEvent)
        return last

    @property
    def outcome(self) -> Outcome:
        return self.finished.outcome

    @property
    def stdout(self) -> str:
        return "".join(e.text for e in self.events if e.kind == "text" and e.stream == "stdout")

    @property
    def stderr(self) -> str:
        return "".join(e.text for e in self.events if e.kind == "text" and e.stream == "stderr")

    @property
    def text(self) -> str:
        return "".join(e.text for e in self.events if e.kind == "text")

    def lanes(self, *streams: str) -> dict[str | None, str]:
        """The text of each lane, of these streams or of both."""
        lanes: dict[str | None, str] = defaultdict(str)
        for event in self.events:
            if event.kind == "text" and event.stream in (streams or ("stdout", "stderr")):
                lanes[event.lane] += event.text.replace("\r", "")
        return dict(lanes)

    @property
    def displays(self) -> list[DisplayEvent]:
        return [e for e in self.events if isinstance(e, DisplayEvent)]

    @property
    def result(self) -> Any:
        """The plain text of the last expression's value."""
        return next(d.data["text/plain"] for d in self.displays if d.result)

    @property
    def error(self) -> ErrorEvent:
        return next(e for e in self.events if isinstance(e, ErrorEvent))

    @property
    def checks(self) -> list[CheckEvent]:
        return [e for e in self.events if isinstance(e, CheckEvent)]

    @property
    def verdict(self) -> str:
        return submission_verdict(self.outcome, [check.outcome for check in self.checks])

    @property
    def kinds(self) -> list[str]:
        return [e.kind for e in self.events]


def new_name() -> str:
    """A unique name for a session or a run."""
    return secrets.token_hex(8)


class SessionClient:
    """One learner in one session."""

    def __init__(
        self,
        client: RunnerClient,
        *,
        topology: str = "gpu:4",
        keras: KerasVersion = 3,
        owner: str | None = None,
        session: str | None = None,
    ) -> None:
        self.client = client
        self.session = session or new_name()
        self.spec = SessionSpec(owner=owner or new_name(), topology=topology, keras=keras)

    def request(self, code: str, run: str | None = None, timeout_s: float | None = None) -> RunRequest:
        """A run of ``code``, not yet submitted."""
        return RunRequest(id=run or new_name(), session=self.session, spec=self.spec, code=code, timeout_s=timeout_s)

    async def submit(self, code: str, timeout_s: float | None = None) -> RunAccepted:
        """Submit a run without following it."""
        return await self.client.submit(self.request(code, timeout_s=timeout_s))

    async def leave(self) -> None:
        """End the session, if there is one."""
        with contextlib.suppress(ResourceNotFound):
            await self.client.end(self.session)

    async def run(self, code: str, timeout_s: float | None = None) -> RecordedRun:
        """Run ``code`` and read it to its end."""
        return await self.read(await self.submit(code, timeout_s))

    async def read(self, accepted: RunAccepted) -> RecordedRun:
        """Read a run to its end; the events are checked for gaps."""
        events = [event async for event in self.client.events(accepted.id)]
        assert [e.seq for e in events] == list(range(1, len(events) + 1))
        return RecordedRun(accepted.id, accepted, tuple(events))
