"""How long pages take while many read, many streams are open and many run code, all on one machine.

    python benchmarks/busy_site.py [--quick] [--database URL] [--running PORT PID]

``lockstep serve`` with one web process and a runner of its own. Readers who are signed in each open a lesson every five
seconds: its page, then its pieces. Others only keep the stream of their bell open. Some run code that multiplies
matrices and prints until the end, and follow the run. The three are added one after the other. Each answer is timed
from the request to its last byte. Beside them, uvicorn serves a bare Jinja page of 10 kB, which is asked for as often:
on a machine that is busy with learners' code, that page takes longer, too.

``--database`` names an empty database on a PostgreSQL server; without it, SQLite is used. ``--running`` measures a site
that already serves, such as that of Docker Compose, instead. PID is its web process as this machine counts, and
``--database`` its database. A thousand accounts stay there, so use a site that you can throw away.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter, time_ns

import httpx
import psutil
import structlog
import uvloop
from harness import Row
from page_throughput import (
    CONTENT_LENGTH,
    COURSE,
    LESSON,
    LOCKSTEP,
    PAGE,
    Server,
    environment_of,
    serving,
    serving_peers,
)

from app.accounts.auth_sessions import create_auth_session
from app.accounts.service import create_account
from app.accounts.session_cookie import ACCOUNT_COOKIE, SESSION_COOKIE
from app.accounts.tokens import learner_marker
from app.db import Database

EVERY_S = 5.0
"""Between two openings of one reader."""
GOAL_MS = 150
_PIECES = f"/en/pieces?course={COURSE}&lesson={LESSON}"
_CODE = """import time
import tensorflow as tf
matrix = tf.random.normal([256, 256])
end = time.monotonic() + {seconds}
while time.monotonic() < end:
    for _ in range(200):
        matrix = tf.math.l2_normalize(matrix @ matrix, axis=0)
    print(float(tf.reduce_sum(matrix)))
"""


@dataclass(frozen=True)
class Plan:
    """How many do what, and for how long each part is measured."""

    readers: int = 200
    streams: int = 1_000
    runs: int = 30
    seconds: float = 60.0


@dataclass
class Latencies:
    """Milliseconds of each answer, and what went wrong."""

    page: list[float] = field(default_factory=list)
    pieces: list[float] = field(default_factory=list)
    peer: list[float] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    cpu: float = 0.0
    """Of the web process, as a share of one core."""

    def row(self, name: str) -> str:
        """The figures as a line of a table."""
        rows = (Row(name, each, "ms") for each in (self.page, self.pieces, self.peer))
        shown = (f"{row.median:.0f}, {row.p95:.0f}, {max(row.figures):.0f}" for row in rows)
        return f"| {name} | {' | '.join(shown)} | {self.cpu:.1%} | {len(self.wrong)} |"


async def accounts(url: str, how_many: int) -> list[str]:
    """The cookies of new accounts that are signed in."""
    db = Database(url)
    cookies = []
    begun = time_ns()  # the database may have the accounts of an earlier measurement
    async with db.writing() as session:
        for number in range(how_many):
            account = await create_account(
                session, email=f"learner-{begun}-{number}@example.org", name=f"Learner {number}", confirmed=True
            )
            token = await create_auth_session(session, account, method="password")
            cookies.append(f"{SESSION_COOKIE}={token}; {ACCOUNT_COOKIE}={learner_marker(account.learner_id)}")
    await db.close()
    return cookies


def cpu_of_web(site: Server) -> float:
    """Seconds of CPU that the site's processes have taken, without its runner and the sessions."""
    processes, total = [site.process], 0.0
    for process in processes:
        if "runners.supervisor.server" in process.cmdline():
            continue
        total += sum(process.cpu_times()[:2])
        processes += process.children()
    return total


class Connection:
    """A kept connection of a browser. The standard library's streams cost less CPU time than an HTTP client."""

    def __init__(self, port: int, cookie: str) -> None:
        self._port = port
        self._cookie = f"cookie: {cookie}\r\n" if cookie else ""
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def ask(self, path: str, accept: str = "text/html") -> asyncio.StreamReader:
        """Send a request and read the answer's head. Asks again, as browsers do, if an idle connection was closed.

        Raises:
            AssertionError: the status is not 200.
        """
        was_open = self._streams is not None
        reader, writer = self._streams = self._streams or await asyncio.open_connection("127.0.0.1", self._port)
        of_htmx = "hx-request: true\r\n" if path == _PIECES else ""
        writer.write(
            f"GET {path} HTTP/1.1\r\nhost: 127.0.0.1\r\naccept: {accept}\r\naccept-encoding: gzip\r\n"
            f"{self._cookie}{of_htmx}\r\n".encode()
        )
        try:
            self._head = await reader.readuntil(b"\r\n\r\n")
        except (asyncio.IncompleteReadError, ConnectionResetError):
            self.close()
            if not was_open:
                raise
            return await self.ask(path, accept)
        assert self._head.startswith(b"HTTP/1.1 200"), self._head.decode("latin-1")
        return reader

    async def time(self, path: str) -> float:
        """Milliseconds from the request to the last byte of the answer."""
        begun = perf_counter()
        reader = await self.ask(path)
        length = CONTENT_LENGTH.search(self._head)
        assert length is not None, self._head
        await reader.readexactly(int(length[1]))
        return 1000 * (perf_counter() - begun)

    def close(self) -> None:
        if self._streams is not None:
            self._streams[1].close()
            self._streams = None


@dataclass
class Crowd:
    """Everyone who uses the site, from one process."""

    site: Server
    peer: Server
    cookies: list[str]
    plan: Plan
    events: int = 0
    """Lines of streams that have arrived."""
    ended: int = 0
    """Streams that ended, or were refused, before they were closed here."""

    async def read(self, number: int, found: Latencies, until: float) -> None:
        """Open the lesson every five seconds, and ask the peer as often."""
        mine, peers = Connection(self.site.port, self.cookies[number]), Connection(self.peer.port, "")
        await asyncio.sleep(EVERY_S * number / self.plan.readers)
        while (begun := perf_counter()) < until:
            try:
                found.page.append(await mine.time(PAGE))
                found.pieces.append(await mine.time(_PIECES))
                found.peer.append(await peers.time("/jinja"))
            except (AssertionError, OSError, EOFError) as error:
                found.wrong.append(repr(error))
                mine.close()
                mine = Connection(self.site.port, self.cookies[number])
            await asyncio.sleep(max(0, begun + EVERY_S - perf_counter()))
        mine.close()
        peers.close()

    async def measure(self, name: str) -> Latencies:
        """All readers, for as long as is planned."""
        found = Latencies()
        cpu, begun = cpu_of_web(self.site), perf_counter()
        until = begun + self.plan.seconds
        await asyncio.gather(*(self.read(number, found, until) for number in range(self.plan.readers)))
        found.cpu = (cpu_of_web(self.site) - cpu) / (perf_counter() - begun)
        print(found.row(name), flush=True)
        for wrong in sorted(set(found.wrong))[:3]:
            print(f"  {wrong}")
        return found

    async def follow(self, path: str, cookie: str) -> None:
        """Keep a stream open and read it, until this is cancelled or the stream ends."""
        connection = Connection(self.site.port, cookie)
        try:
            stream = await connection.ask(path, "text/event-stream")
            while await stream.readline():
                self.events += 1
        finally:
            connection.close()

    async def run(self, number: int) -> str:
        """Press Run; returns the path of the run's stream."""
        headers = {"cookie": self.cookies[number], "sec-fetch-site": "same-origin"}
        code = _CODE.format(seconds=self.plan.seconds + 60)
        async with httpx.AsyncClient(headers=headers, timeout=120) as client:
            asked = await client.post(
                f"http://127.0.0.1:{self.site.port}/runs",
                json={"lesson": f"{COURSE}/{LESSON}", "cell": "strategy", "code": code},
            )
        assert asked.status_code == 202, asked.text
        return f"/runs/{asked.json()['id']}/stream"

    async def everyone(self) -> list[Latencies]:
        """Measure readers alone, then with open streams, then with runs as well."""
        plan = self.plan
        print("| | page: median, p95, most, ms | pieces | peer | CPU of the web process | errors |")
        print("|---" * 6 + "|")
        found = [await self.measure(f"{plan.readers} readers")]
        followed = [
            asyncio.create_task(self.follow("/notifications/stream", cookie)) for cookie in self.cookies[plan.runs :]
        ]
        await asyncio.sleep(5)
        found.append(await self.measure(f"with {len(followed):,} streams"))
        paths = await asyncio.gather(*(self.run(number) for number in range(plan.runs)))
        followed += [asyncio.create_task(self.follow(path, self.cookies[number])) for number, path in enumerate(paths)]
        await asyncio.sleep(10)
        before = self.events
        last = await self.measure(f"and {plan.runs} runs")
        found.append(last)
        self.ended = sum(each.done() for each in followed)
        print(
            f"{self.events - before:,} lines of streams arrived; {self.ended} of {len(followed):,} streams have ended"
        )
        for each in followed:
            each.cancel()
        await asyncio.gather(*followed, return_exceptions=True)
        print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores; goal: 95 % of pages within {GOAL_MS} ms")
        ratio = Row("", last.page, "ms").p95 / Row("", last.peer, "ms").p95
        print(f"ratio: {ratio:.2f} (95th percentile of a page to that of a bare Jinja page)")
        return found


@contextmanager
def serving_site(folder: Path, database: str | None) -> Iterator[tuple[Server, str]]:
    """``lockstep serve`` with its runner, and the URL of its database."""
    environment = environment_of(folder) | {
        "LOCKSTEP_DATABASE_URL": database or f"sqlite+aiosqlite:///{folder / 'lockstep.db'}",
        "LOCKSTEP_PREPARE_DATA_SETS": "0",
        "LOCKSTEP_LESSONS_DIR": str(Path(__file__).parents[1] / "lessons"),
        "LOCKSTEP_LIMITS__MEMORY_MB": "512",
        "LOCKSTEP_MAX_SESSIONS": "40",
    }
    del environment["LOCKSTEP_RUNNER_SOCKET"]
    with serving(folder, *LOCKSTEP, "serve", probe="/readyz", **environment) as server:
        yield server, environment["LOCKSTEP_DATABASE_URL"]


def measure_site(plan: Plan, url: str | None = None, running: Server | None = None) -> tuple[list[Latencies], Crowd]:
    """The latencies with readers, then streams, then runs as well, and the crowd that measured them."""
    with (
        tempfile.TemporaryDirectory() as folder,
        tempfile.TemporaryDirectory() as logs,
        serving_peers(Path(logs)) as peer,
        nullcontext((running, url)) if running and url else serving_site(Path(folder), url) as (site, database),
    ):
        crowd = Crowd(site, peer, asyncio.run(accounts(database, plan.runs + plan.streams)), plan)
        return uvloop.run(crowd.everyone()), crowd


def main() -> None:
    """Parse the arguments and measure."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true", help="a tenth of everybody, for 15 seconds each")
    parser.add_argument("--database", help="URL of an empty database of PostgreSQL; default: SQLite")
    parser.add_argument(
        "--running", nargs=2, type=int, metavar=("PORT", "PID"), help="measure this site instead; needs --database"
    )
    chosen = parser.parse_args()
    if chosen.running and not chosen.database:
        parser.error("--running needs --database: the accounts of the readers are made there")
    plan = Plan(20, 100, 3, 15) if chosen.quick else Plan()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))  # no line per account
    running = chosen.running and Server(chosen.running[0], psutil.Process(chosen.running[1]))
    measure_site(plan, chosen.database, running)


if __name__ == "__main__":
    main()
