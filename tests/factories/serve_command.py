"""``lockstep serve`` as an operator starts it: web application and supervisor, with their own folders and user."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import psutil

from runners.wire.client import RunnerClient, RunnerError
from runners.wire.protocol import Health
from tests.factories.cli_process import LOCKSTEP
from tests.factories.course import write_course
from tests.factories.process_tree import children, command_line, name
from tests.factories.real_supervisor import cgroups_of, next_uids

_PATIENCE_S = 120.0
"""For a start on a busy machine. A process that ends is noticed at once."""
_URL = re.compile(r"http://\S+?(?=/ )")
_REPOSITORY = Path(__file__).resolve().parents[2]


class ServeCommand:
    """Start it; its resources on the machine can be found and ended."""

    def __init__(self, **settings: object) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="lc-"))
        self.folder.chmod(0o755)
        self.temporary = self.folder / "t"
        self.temporary.mkdir(mode=0o755)
        self.uids = next_uids()
        self.log = self.folder / "log"
        self._settings = settings
        self._web: subprocess.Popen[bytes] | None = None
        self.supervisors: set[int] = set()
        """Process numbers of all that were ever seen."""

    def start(self, *options: str, output: int | None = None, runs: bool = True) -> str:
        """Start it; returns its address once it can run code. With ``output``, its messages go there, and have to be
        copied to ``log``.

        Without ``runs``, it serves pages and its supervisor answers, but nobody waits until that has imported
        TensorFlow: what ends before has saved seconds.
        """
        environment = {k: v for k, v in os.environ.items() if not k.startswith("LOCKSTEP_")}
        environment |= {f"LOCKSTEP_{k.upper()}": str(v) for k, v in self._settings.items()}
        environment |= {
            "LOCKSTEP_DATA_DIR": str(self.folder / "data"),
            "LOCKSTEP_LESSONS_DIR": str(write_course(self.folder / "lessons")),
            "LOCKSTEP_SERVICE_UID": str(self.uids[0]),
            "TMPDIR": str(self.temporary),
        }
        with self.log.open("ab") as log:
            self._web = subprocess.Popen(
                ["setpriv", "--pdeathsig", "TERM", *LOCKSTEP, "serve", "--port", "0", *options],
                env=environment,
                cwd=_REPOSITORY,
                stdin=subprocess.DEVNULL,
                stdout=output or log,
                stderr=output or log,
            )
        self._wait(lambda: bool(_URL.search(self.log.read_text())))
        if runs:
            self._wait(self.ready)
        found = _URL.search(self.log.read_text())
        assert found
        return found[0]

    def ready(self) -> bool:
        """Whether the supervisor can create sessions."""
        try:
            return asyncio.run(_ask_health(self.folder / "data" / "run" / "supervisor.sock")).status == "ready"
        except RunnerError:
            return False

    def stop(self) -> int:
        """Ask it to end; returns its exit status."""
        assert self._web
        self._web.send_signal(signal.SIGINT)
        return self._web.wait(40)

    def remove(self) -> None:
        """End it if necessary, and delete its folders."""
        if self._web and self._web.poll() is None:
            self._web.kill()
            self._web.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def select(self, query: str) -> list[tuple[Any, ...]]:
        """Query its database from outside."""
        with closing(sqlite3.connect(f"file:{self.folder}/data/lockstep.db?mode=ro", uri=True)) as db:
            return db.execute(query).fetchall()

    # --- its processes ------------------------------------------------------------------------------------------

    def processes(self) -> list[psutil.Process]:
        """What ``lockstep serve`` itself has started: the supervisor, and the web process if it has its own user."""
        assert self._web
        return children(self._web.pid)

    def web(self) -> psutil.Process:
        """The web application, if it has its own user; its PID namespace is between it and ``lockstep serve``."""
        below = [p for child in self.processes() for p in children(child, all_below=True)]
        (web,) = [p for p in below if command_line(p)[3:4] == ["app.cli.web_process"]]
        return web

    def supervisor(self) -> list[psutil.Process]:
        """The supervisor, unless it is down."""
        found = [p for p in self.processes() if "runners.supervisor.server" in command_line(p)]
        self.supervisors.update(p.pid for p in found)
        return found

    def walls(self) -> list[psutil.Process]:
        """Bubblewrap around the zygote."""
        return [p for s in self.supervisor() for p in children(s) if name(p) == "bwrap"]

    def zygotes(self) -> list[psutil.Process]:
        """The zygote, behind its wall or without one."""
        above = [*self.walls(), *self.supervisor()]
        return [p for w in above for p in children(w) if command_line(p)[1:3] == ["-m", "runners.zygote.fork_server"]]

    def sessions(self) -> list[psutil.Process]:
        """PID 1 and kernel of every session, and what they started."""
        zygotes = {z.pid for z in self.zygotes()}
        return [p for p in self.belongings() if p.pid not in zygotes]

    def belongings(self) -> list[psutil.Process]:
        """Every process of the sessions' user that still has anything."""
        found = []
        for process in psutil.process_iter(["uids", "status", "name"]):
            uids, status = process.info["uids"], process.info["status"]
            if (
                uids
                and uids.real in self.uids[1:]
                and status != psutil.STATUS_ZOMBIE
                and process.info["name"] != "bwrap"
            ):
                found.append(process)
        return found

    def left_behind(self, patience_s: float = 20.0) -> list[str]:
        """What is on the machine once it has ended, after some patience: nothing, if all is well."""
        deadline = time.monotonic() + patience_s
        while (left := self._left()) and time.monotonic() < deadline:
            time.sleep(0.2)
        return left

    def _left(self) -> list[str]:
        groups = [group for supervisor in self.supervisors for group in cgroups_of(supervisor)]
        mounts = [line for line in Path("/proc/mounts").read_text().splitlines() if str(self.folder) in line]
        kept = {"data", "lessons", "t", "log"}
        files = [p for p in (*self.folder.iterdir(), *self.temporary.iterdir()) if p.name not in kept]
        return [*map(str, self.belongings()), *map(str, groups), *mounts, *map(str, files)]

    def _wait(self, true: Callable[[], bool]) -> None:
        deadline = time.monotonic() + _PATIENCE_S
        while not true():
            assert self._web, "it was not started"
            assert self._web.poll() is None, f"it ended\n{self.log.read_text()[-3000:]}"
            assert time.monotonic() < deadline, self.log.read_text()[-3000:]
            time.sleep(0.1)


async def _ask_health(socket: Path) -> Health:
    async with RunnerClient(socket) as client:
        return await client.health()
