"""How many requests a second one web process answers about a lesson, to anyone and to a learner who is signed in.

Served by ``lockstep serve`` with one worker on SQLite, once with little in the database and once with what
``seed.py`` makes: 100,000 learners, 1,000,000 comments, 800 lessons. Beside them, by turns in the same run, uvicorn
serves FastAPI's plain text and a bare Jinja page. All are asked over 32 kept connections on loopback.

A request is one GET with its whole answer, compressed as a browser asks for it:

* ``page``: the HTML of the lesson, the same for everyone; a learner's request brings the cookie of the sign-in.
* ``pieces``: all that the learner's page then shows of them, in one answer: header, outline, menu and bell.
* ``header``, ``outline``, ``menu``, ``bell``: the same, each by itself, as htmx asks for them when they change.
* ``comments``: the first page of the lesson's comments. The panel of the session is not here: it asks the runner.

An ``opening`` is not one request but all that a browser asks for when a learner opens a lesson: page and pieces.

    python benchmarks/page_throughput.py [--quick]
"""

from __future__ import annotations

import argparse
import asyncio
import os
import re
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from datetime import timedelta
from itertools import cycle
from pathlib import Path
from time import perf_counter, sleep
from typing import cast

import httpx
import psutil
import seed
import uvloop
from fastapi import FastAPI
from fastapi.responses import HTMLResponse, PlainTextResponse
from jinja2 import Environment

from app.accounts.auth_sessions import create_auth_session
from app.accounts.models import Role
from app.accounts.service import create_account
from app.accounts.session_cookie import ACCOUNT_COOKIE, SESSION_COOKIE
from app.accounts.tokens import learner_marker
from app.db import Database, now
from app.progress.models import LedgerEntry, LessonProgress

COURSE, LESSON = "distributed-tensorflow", "distribution-strategies"
PAGE = f"/en/courses/{COURSE}/{LESSON}"
CONNECTIONS = 32
_LESSONS = Path(__file__).parents[1] / "lessons"
LOCKSTEP = (sys.executable, "-c", "from app.cli.main import app; app()")
CONTENT_LENGTH = re.compile(rb"content-length: (\d+)", re.IGNORECASE)
_PIECES = {
    "page": PAGE,
    "pieces": f"/en/pieces?course={COURSE}&lesson={LESSON}",
    "header": f"/en/progress?course={COURSE}",
    "outline": f"/en/progress/outline?course={COURSE}",
    "menu": "/en/account-menu",
    "bell": "/en/notifications/bell",
    "comments": f"{PAGE}/comments",
}
_WHOLE = (PAGE, _PIECES["outline"], "/plain", "/jinja")
"""Not asked for by htmx."""
_MOST_TRIES, _TRY_EVERY_S = 600, 0.5
_CPU_TICK_S = 0.01
"""The resolution of the CPU time of a process."""
_OPENING = ("page", "pieces")
_GOALS = {"page, anyone": 4_000, "page, signed in": 900, "comments, signed in": 400, "opening, signed in": 1_500}

peers = FastAPI()
_bare = Environment(autoescape=True).from_string(
    "<!doctype html><html lang=en><title>{{ title }}</title><h1>{{ title }}</h1><nav><ol>"
    "{% for name in lessons %}<li><a href='/{{ name }}'>{{ name }}</a></li>{% endfor %}</ol></nav>"
    "{% for text in texts %}<p>{{ text }}</p>{% endfor %}</html>"
)
_WORDS = {
    "title": "A lesson",
    "lessons": [f"lesson {number}" for number in range(13)],
    "texts": [f"{number}: gradients < weights & the sum of all replicas' losses" for number in range(100)],
}


@peers.get("/plain")
async def plain_text() -> PlainTextResponse:
    """The least that FastAPI can do."""
    return PlainTextResponse("hello")


@peers.get("/jinja")
async def bare_jinja() -> HTMLResponse:
    """A page of 10 kB that Jinja renders each time, without a database."""
    return HTMLResponse(_bare.render(_WORDS))


def _request(path: str, cookie: str) -> bytes:
    headers = "host: 127.0.0.1\r\naccept: text/html\r\naccept-encoding: gzip\r\naccept-language: en"
    headers += f"\r\ncookie: {cookie}" if cookie else ""
    headers += "" if path in _WHOLE else "\r\nhx-request: true"
    return f"GET {path} HTTP/1.1\r\n{headers}\r\n\r\n".encode()


class Asker(asyncio.Protocol):
    """One connection that asks the next thing as soon as it is answered."""

    def __init__(self, paths: tuple[str, ...], cookie: str) -> None:
        self._requests = cycle([_request(path, cookie) for path in paths])
        self._paths = len(paths)
        self._head = b""
        self._left = 0
        self.answered = 0
        self.warm = asyncio.Event()
        """Each path was answered once, or the connection ended."""
        self.asking = True
        """False: the answer on its way is the last one, so that what is measured next has the server alone."""
        self.over = asyncio.Event()
        self.wrong = ""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._transport.write(next(self._requests))

    def data_received(self, data: bytes) -> None:
        if self._left:
            self._left -= len(data)
        else:
            self._head += data
            head, found, body = self._head.partition(b"\r\n\r\n")
            if not found:
                return
            length = CONTENT_LENGTH.search(head)
            if not head.startswith(b"HTTP/1.1 200") or length is None:
                self.wrong = head.decode("latin-1")
                self._transport.close()
                return
            self._left, self._head = int(length[1]) - len(body), b""
        if not self._left:
            self.answered += 1
            if self.answered == self._paths:
                self.warm.set()
            if self.asking:
                self._transport.write(next(self._requests))
            else:
                self._transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        self.warm.set()
        self.over.set()


@dataclass(frozen=True)
class Server:
    """A server that answers at a port."""

    port: int
    process: psutil.Process

    def cpu_s(self) -> float:
        """Seconds of CPU that it has taken, with its child processes."""
        return sum(sum(each.cpu_times()[:2]) for each in (self.process, *self.process.children(recursive=True)))


@dataclass(frozen=True)
class Pace:
    """How fast a server answers."""

    a_second: float
    a_cpu_second: float
    """By the server's own CPU time. Unlike the other figure, it hardly depends on what else the machine does."""


@dataclass(frozen=True)
class Target:
    """What is asked of one server."""

    name: str
    server: Server
    paths: tuple[str, ...]
    cookie: str = ""
    whole: bool = False
    """All paths together count as one."""


async def pace(target: Target, seconds: float) -> Pace:
    """Answers a second, once every connection has been answered at every path.

    Raises:
        AssertionError: A path did not answer with 200, or a connection ended before all of them had answered.
    """
    loop = asyncio.get_running_loop()
    pairs = [
        await loop.create_connection(lambda: Asker(target.paths, target.cookie), "127.0.0.1", target.server.port)
        for _ in range(CONNECTIONS)
    ]
    for _, asker in pairs:
        await asyncio.wait_for(asker.warm.wait(), 60)
    before, begun, cpu_before = sum(asker.answered for _, asker in pairs), perf_counter(), target.server.cpu_s()
    await asyncio.sleep(seconds)
    answered, took = sum(asker.answered for _, asker in pairs) - before, perf_counter() - begun
    cpu = max(target.server.cpu_s() - cpu_before, _CPU_TICK_S)
    for _, asker in pairs:
        asker.asking = False
    for _, asker in pairs:
        await asyncio.wait_for(asker.over.wait(), 60)
        assert not asker.wrong, f"{target.name}: {asker.wrong}"
        assert asker.answered >= len(target.paths), f"{target.name}: a connection ended before all of {target.paths}"
    answers = answered / (len(target.paths) if target.whole else 1)
    return Pace(answers / took, answers / cpu)


@dataclass(frozen=True)
class Site:
    """A folder with lessons and a database, and a learner who is signed in to it."""

    folder: Path
    cookie: str

    @property
    def environment(self) -> dict[str, str]:
        """The settings: no runner is started, and none is asked."""
        return environment_of(self.folder)


def make_site(folder: Path, users: int, comments: int, lessons: int) -> Site:
    """Fill a database as ``seed.py`` does, and sign a learner in who has done the whole course."""
    shutil.copytree(_LESSONS, folder / "lessons")
    plan = seed.plan_for(folder / "lessons", users=users, comments=comments, lessons=lessons)
    seed.write_lessons(folder / "lessons", plan)
    asyncio.run(seed.fill(f"sqlite+aiosqlite:///{folder / 'lockstep.db'}", plan))
    return Site(folder, asyncio.run(_sign_in(f"sqlite+aiosqlite:///{folder / 'lockstep.db'}")))


async def _sign_in(url: str) -> str:
    db = Database(url)
    try:
        return await sign_in(db, "ada@example.org")
    finally:
        await db.close()


async def sign_in(db: Database, email: str, role: Role = Role.learner) -> str:
    """Make an account that has done the whole course. Returns the cookies of its browser."""
    modules = tomllib.loads((_LESSONS / COURSE / "course.toml").read_text())["modules"]
    done = [f"{COURSE}/{slug}" for module in modules for slug in module["lessons"]]
    at = now() - timedelta(days=1)
    async with db.writing() as session:
        account = await create_account(session, email=email, name="Ada Byron", confirmed=True)
        account.role = role
        whose = {"learner_id": account.learner_id}
        for lesson in done:
            session.add(LedgerEntry(**whose, kind="read", subject=lesson, xp=0, occurred_at=at))
            session.add(LedgerEntry(**whose, kind="lesson", subject=lesson, xp=25, occurred_at=at))
            session.add(
                LessonProgress(**whose, lesson=lesson, started_at=at, last_seen_at=at, completed_at=at, anchor="")
            )
        for days in range(20):
            day = (at - timedelta(days=days)).date().isoformat()
            session.add(LedgerEntry(**whose, kind="day", subject=day, xp=0, occurred_at=at))
        token = await create_auth_session(session, account, method="password")
    return f"{SESSION_COOKIE}={token}; {ACCOUNT_COOKIE}={learner_marker(account.learner_id)}"


def environment_of(folder: Path) -> dict[str, str]:
    """Settings that keep everything in this folder. No runner is started."""
    chosen: dict[str, Path | str] = {"DATA_DIR": folder, "LESSONS_DIR": folder / "lessons", "LOG_FORMAT": "json"}
    chosen["RUNNER_SOCKET"] = folder / "none.sock"
    clean = {name: value for name, value in os.environ.items() if not name.startswith("LOCKSTEP_")}
    return clean | {f"LOCKSTEP_{name}": str(value) for name, value in chosen.items()}


@contextmanager
def serving(folder: Path, *command: str, probe: str, **environment: str) -> Iterator[Server]:
    """Serve with one process; yields it once it answers."""
    port = _free_port()
    with (folder / "log").open("w") as log:
        server = subprocess.Popen([*command, "--port", str(port)], stderr=log, env=environment or os.environ)
    try:
        _wait_for(f"http://127.0.0.1:{port}{probe}", server, folder / "log")
        yield Server(port, psutil.Process(server.pid))
    finally:
        server.terminate()
        server.wait(30)


def _wait_for(url: str, server: subprocess.Popen[bytes], log: Path) -> None:
    """Wait until the server answers: that can take minutes on a busy machine."""
    for _ in range(_MOST_TRIES):
        assert server.poll() is None, log.read_text()[-2000:]
        try:
            httpx.get(url, timeout=300).raise_for_status()
        except (httpx.NetworkError, httpx.HTTPStatusError):  # such as 503, because its runner is not ready
            sleep(_TRY_EVERY_S)
        else:
            return
    raise TimeoutError(f"{url} never answered with success: {log.read_text()[-2000:]}")


def serving_peers(folder: Path) -> AbstractContextManager[Server]:
    """Serve what Lockstep is compared with; the log goes to ``folder``."""
    uvicorn = (sys.executable, "-m", "uvicorn", "page_throughput:peers", "--app-dir", str(Path(__file__).parent))
    return serving(folder, *uvicorn, "--no-access-log", "--log-level", "warning", probe="/plain")


def serving_site(site: Site) -> AbstractContextManager[Server]:
    """Serve a site as ``lockstep serve`` does, with one worker."""
    return serving(site.folder, *LOCKSTEP, "serve", probe=PAGE, **site.environment)


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port


def targets_of(site: Site, server: Server) -> list[Target]:
    """What is asked of Lockstep."""
    pieces = [Target(f"{name}, signed in", server, (path,), site.cookie) for name, path in _PIECES.items()]
    opening = Target("opening, signed in", server, tuple(_PIECES[name] for name in _OPENING), site.cookie, whole=True)
    return [Target("page, anyone", server, (PAGE,)), *pieces, opening]


def measure(seconds: float, rounds: int, users: int, comments: int) -> None:
    """Ask everyone in turns, and print the table."""
    with ExitStack() as stack:
        root = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        sites = [
            make_site(root / "small", users=100, comments=1_000, lessons=13),
            make_site(root / "large", users=users, comments=comments, lessons=800),
        ]
        peer = stack.enter_context(serving_peers(root))
        asked = [[Target("FastAPI's plain text", peer, ("/plain",)), Target("bare Jinja", peer, ("/jinja",))]]
        asked += [targets_of(site, stack.enter_context(serving_site(site))) for site in sites]
        order = [asked[0][0], asked[0][1], *(t for pair in zip(asked[1], asked[2], strict=True) for t in pair)]
        paces: dict[tuple[str, int], list[Pace]] = {(target.name, target.server.port): [] for target in order}
        for _ in range(rounds):
            for target in order:
                paces[target.name, target.server.port].append(uvloop.run(pace(target, seconds)))
    found = [[_median(paces[target.name, target.server.port]) for target in targets] for targets in asked]
    report([target.name for target in asked[1]], found, f"{users:,} learners, {comments:,} comments, 800 lessons")
    print(f"n {rounds} x {seconds:g} s; load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")


def _median(paces: list[Pace]) -> Pace:
    return Pace(
        statistics.median(each.a_second for each in paces), statistics.median(each.a_cpu_second for each in paces)
    )


def report(names: list[str], found: list[list[Pace]], much: str) -> None:
    """The table: answers a second, medians, and what they are to each other."""
    (plain, jinja), small, large = found
    print(f"answers, or whole openings, a second and a second of the server's CPU; 'much' is with {much}")
    for name, peer in (("FastAPI plain text", plain), ("bare Jinja", jinja)):
        print(f"{name:22}{peer.a_second:8.0f}{peer.a_cpu_second:9.0f}")
    print(f"{'':22}{'little':>8}{'by CPU':>9}{'much':>8}{'by CPU':>9}{'goal':>8}   little to much, by CPU (within 1.2)")
    for name, little, much_of_it in zip(names, small, large, strict=True):
        goal = f"{_GOALS[name]:,}" if name in _GOALS else ""
        figures = (
            f"{little.a_second:8.0f}{little.a_cpu_second:9.0f}{much_of_it.a_second:8.0f}{much_of_it.a_cpu_second:9.0f}"
        )
        print(f"{name:22}{figures}{goal:>8}   ratio: {little.a_cpu_second / much_of_it.a_cpu_second:.2f}")
    pages = dict(zip(names, small, strict=True))
    print(f"ratio: {pages['page, anyone'].a_second / plain.a_second:.2f} (page for anyone to plain text)")
    print(f"ratio: {pages['opening, signed in'].a_second / jinja.a_second:.2f} (opening when signed in, to bare Jinja)")


def main() -> None:
    """Parse the arguments and measure."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument(
        "--quick", action="store_true", help="one short round, and 20,000 comments instead of 1,000,000"
    )
    quick = parser.parse_args().quick
    measure(*((1.0, 1, 2_000, 20_000) if quick else (4.0, 3, 100_000, 1_000_000)))


if __name__ == "__main__":
    main()
