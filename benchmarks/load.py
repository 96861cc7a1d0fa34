"""How a site does as it grows, and with a class on it.

    python benchmarks/load.py growth [--steps 3] [--database URL] [--svg FILE]
    python benchmarks/load.py class [--workers 2] [--readers 200] [--streams 1000] [--running 30] [--seconds 30]

``growth`` fills one database after another (``growth_data.py``), each about ten times as large as the one before, up
to 1,000,000 learners, 1,000,000 comments, 10,000,000 events of runs and 800 lessons, and asks the application one thing
at a time, without a socket. It prints the CPU time of the process for each answer, SQLite's included, which other
programs on the machine change little, and the wall time, which includes PostgreSQL's. ``--database`` names an
empty database of PostgreSQL's server to make a database of each step in; without it, SQLite is used.

``class`` serves a site with its real runner: signed-in readers open a lesson (the page, and its pieces) every five
seconds, others keep the bell's stream open, and some run a cell that prints for as long as it is measured. Raise the
limit on open files first: ``ulimit -n 8192``.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import resource
import statistics
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter, process_time

import growth_data
import httpx
import psutil
import uvloop
from fastapi import FastAPI
from growth_data import Size
from page_throughput import COURSE, LESSON, LOCKSTEP, PAGE, Server, environment_of, serving, sign_in
from seed import plan_for, write_lessons
from sqlalchemy import text
from sqlalchemy.engine import make_url

from app.accounts.models import Role
from app.db import Database
from app.main import create_app

STEPS = (
    Size(100, 1_000, 10_000, 13),
    Size(1_000, 10_000, 100_000, 13),
    Size(10_000, 100_000, 1_000_000, 100),
    Size(100_000, 1_000_000, 1_000_000, 800),
    Size(1_000_000, 1_000_000, 10_000_000, 800),
)
_LESSONS = Path(__file__).parents[1] / "lessons"
_KEY = f"{COURSE}/{LESSON}"
_MIDDLE = f"{500:014d}{0:016d}"
ASKED = {
    "page": PAGE,
    "pieces": f"/en/pieces?course={COURSE}",
    "comments": f"{PAGE}/comments",
    "older comments": f"{PAGE}/comments?before={_MIDDLE}",
    "runs of a lesson": f"/runs?lesson={_KEY}",
    "events of a run": f"/runs/{0:030d}/events",
    "notifications": "/en/notifications",
    "moderation": "/en/moderation",
    "admin: people": "/en/admin/people",
    "admin: a name": "/en/admin/people?name=learner-77",
    "admin: storage": "/en/admin/storage",
}
"""What is asked, of the learner or, from ``moderation`` on, of an admin."""
_STAFF = list(ASKED)[list(ASKED).index("moderation") :]
_MOST, _LONG_S = 60, 2.0
_EVERY_S = 5.0
_LOOP = "import time\nfor step in range(100_000):\n    print(step, flush=True)\n    time.sleep(1)"


@dataclass(frozen=True, slots=True)
class Cost:
    """Of one answer, in milliseconds."""

    cpu_ms: float
    wall_ms: float


async def cost(client: httpx.AsyncClient, path: str) -> Cost:
    """The CPU time of this process for an answer, the client's included, and the median wall time."""
    headers = {"hx-request": "true"} if "/comments" in path or "/pieces" in path else {}
    for _ in range(3):
        (await client.get(path, headers=headers)).raise_for_status()
    took: list[float] = []
    begun, cpu = perf_counter(), process_time()
    while len(took) < _MOST and perf_counter() - begun < _LONG_S:
        asked = perf_counter()
        (await client.get(path, headers=headers)).raise_for_status()
        took.append(perf_counter() - asked)
    return Cost(1000 * (process_time() - cpu) / len(took), 1000 * statistics.median(took))


@contextmanager
def database(url: str | None, folder: Path, number: int) -> Iterator[str]:
    """An empty database for a step: a file in the folder, or a database of PostgreSQL's server that is dropped."""
    if url is None:
        yield f"sqlite+aiosqlite:///{folder / 'lockstep.db'}"
        return
    name = f"growth_{os.getpid()}_{number}"
    asyncio.run(_administer(url, f"CREATE DATABASE {name}"))
    try:
        yield make_url(url).set(database=name).render_as_string(hide_password=False)
    finally:
        asyncio.run(_administer(url, f"DROP DATABASE {name} WITH (FORCE)"))


async def _administer(url: str, statement: str) -> None:
    db = Database(url)
    async with db.engine.connect() as connection:
        await (await connection.execution_options(isolation_level="AUTOCOMMIT")).execute(text(statement))
    await db.close()


async def _prepare(url: str, size: Size) -> dict[str, str]:
    """Fill the database; returns the cookies of a learner, who has all that ``learner-0`` has done, and an admin."""
    db = Database(url)
    await growth_data.fill(db, size, _KEY)
    cookies = {role: await sign_in(db, f"{role}@example.org", Role(role)) for role in ("learner", "admin")}
    async with db.writing() as session:
        taken = "(SELECT learner_id FROM accounts WHERE email = 'learner@example.org')"
        await session.execute(text(f"UPDATE runs SET learner_id = {taken} WHERE learner_id = 'learner-0'"))
    await db.close()
    return cookies


def measure_step(size: Size, number: int, url: str | None) -> dict[str, Cost]:
    """The cost of everything that is asked, of a site of this size."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        (folder / "lessons").symlink_to(_LESSONS) if size.lessons <= 13 else _many_lessons(folder, size)
        here = stack.enter_context(database(url, folder, number))
        begun = perf_counter()
        cookies = asyncio.run(_prepare(here, size))
        print(f"filled in {perf_counter() - begun:.0f} s: {size}", flush=True)
        os.environ |= environment_of(folder) | {"LOCKSTEP_DATABASE_URL": here, "LOCKSTEP_LOG_LEVEL": "warning"}
        found = asyncio.run(_ask_all(create_app(only_local=True), cookies))
    print({name: round(each.cpu_ms, 1) for name, each in found.items()}, flush=True)
    return found


async def _ask_all(app: FastAPI, cookies: dict[str, str]) -> dict[str, Cost]:
    costs = {}
    async with app.router.lifespan_context(app):
        for name, path in ASKED.items():
            cookie = cookies["admin" if name in _STAFF else "learner"]
            async with httpx.AsyncClient(
                transport=httpx.ASGITransport(app), base_url="http://127.0.0.1", headers={"cookie": cookie}
            ) as client:
                costs[name] = await cost(client, path)
    return costs


def _many_lessons(folder: Path, size: Size) -> None:
    (folder / "lessons").mkdir()
    for course in _LESSONS.iterdir():
        (folder / "lessons" / course.name).symlink_to(course)
    write_lessons(folder / "lessons", plan_for(_LESSONS, users=0, comments=0, lessons=size.lessons))


def growth(steps: int, url: str | None, svg: Path | None) -> None:
    """Print the table, and draw it."""
    found = [measure_step(size, number, url) for number, size in enumerate(STEPS[:steps])]
    print(f"ms of CPU for an answer (and of wall time); load {os.getloadavg()[0]:.1f}")
    print("| learners / comments / events / lessons | " + " | ".join(map(str, STEPS[:steps])) + " |")
    print("|---" * (steps + 1) + "|")
    for name in ASKED:
        cells = [f"{step[name].cpu_ms:.1f} ({step[name].wall_ms:.1f})" for step in found]
        print(f"| {name} | " + " | ".join(cells) + " |")
    if svg is not None:
        _draw(found, steps, svg)


def _draw(found: list[dict[str, Cost]], steps: int, svg: Path) -> None:
    import matplotlib as mpl

    mpl.use("svg")
    from matplotlib import pyplot

    mpl.rcParams["svg.hashsalt"] = "lockstep"
    figure, axes = pyplot.subplots(figsize=(7, 4))
    for name in ASKED:
        axes.plot(range(steps), [max(step[name].cpu_ms, 0.1) for step in found], marker="o", label=name)
    axes.set_xticks(range(steps), [f"{size.learners:,}" for size in STEPS[:steps]])
    axes.set(xlabel="learners", ylabel="CPU for an answer, ms", yscale="log")
    axes.legend(fontsize=7, ncols=3)
    figure.savefig(svg, bbox_inches="tight", metadata={"Date": None})


@dataclass(slots=True)
class Class:
    """What a class saw."""

    opened: dict[str, list[float]] = field(default_factory=lambda: {"page": [], "pieces": []})
    errors: list[str] = field(default_factory=list)
    printed: int = 0


async def _read(client: httpx.AsyncClient, cookie: str, delay: float, until: float, seen: Class) -> None:
    await asyncio.sleep(delay)
    while perf_counter() < until:
        begun = perf_counter()
        for name, more in (("page", {}), ("pieces", {"hx-request": "true"})):
            asked = perf_counter()
            try:
                (await client.get(ASKED[name], headers={"cookie": cookie, **more})).raise_for_status()
            except httpx.HTTPError as e:
                seen.errors.append(f"{name}: {e!r}")
            else:
                seen.opened[name].append(perf_counter() - asked)
        await asyncio.sleep(max(0.0, begun + _EVERY_S - perf_counter()))


async def _listen(client: httpx.AsyncClient, path: str, cookie: str, opened: asyncio.Semaphore, seen: Class) -> None:
    """Keep a stream open until this is cancelled."""
    headers = {"cookie": cookie, "accept": "text/event-stream"}
    try:
        async with client.stream("GET", path, headers=headers) as response:
            response.raise_for_status()
            opened.release()
            async for line in response.aiter_lines():
                seen.printed += line.startswith("data:")
        seen.errors.append(f"{path}: the stream ended")
    except httpx.HTTPError as e:
        seen.errors.append(f"{path}: {e!r}")


async def _start_run(client: httpx.AsyncClient, cookie: str) -> str:
    sent = {"lesson": _KEY, "cell": "strategy", "code": _LOOP}
    answer = await client.post("/runs", json=sent, headers={"cookie": cookie, "sec-fetch-site": "same-origin"})
    answer.raise_for_status()
    return f"/runs/{answer.json()['id']}/stream"


async def have_class(server: Server, cookies: list[str], numbers: argparse.Namespace) -> Class:
    """Readers, streams and runs at once, until the time is over."""
    seen, opened = Class(), asyncio.Semaphore(0)
    limits = httpx.Limits(max_connections=None)
    base = f"http://127.0.0.1:{server.port}"
    async with httpx.AsyncClient(base_url=base, limits=limits, timeout=httpx.Timeout(60, read=300)) as client:
        runs = [await _start_run(client, cookie) for cookie in cookies[: numbers.running]]
        bells = [("/notifications/stream", cookies[n % len(cookies)]) for n in range(numbers.streams - len(runs))]
        streams = [*zip(runs, cookies, strict=False), *bells]
        listening = [asyncio.create_task(_listen(client, *stream, opened, seen)) for stream in streams]
        for _ in streams:
            await asyncio.wait_for(opened.acquire(), 120)
        cpu, begun = server.cpu_s(), perf_counter()
        readers = cookies[: numbers.readers]
        spread = _EVERY_S / max(1, len(readers))
        until = begun + numbers.seconds
        await asyncio.gather(*(_read(client, who, n * spread, until, seen) for n, who in enumerate(readers)))
        took = perf_counter() - begun
        print(f"CPU of web, runner and sessions: {(server.cpu_s() - cpu) / took:.2f} cores for {took:.0f} s")
        for task in listening:
            task.cancel()
        await asyncio.gather(*listening, return_exceptions=True)
    return seen


async def _members(url: str, number: int) -> list[str]:
    db = Database(url)
    await growth_data.fill(db, STEPS[1], _KEY)
    cookies = [await sign_in(db, f"member-{n}@example.org") for n in range(number)]
    await db.close()
    return cookies


def hold_class(numbers: argparse.Namespace) -> None:
    """Serve a site with a runner, have the class, and print what it saw."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        url = numbers.database or f"sqlite+aiosqlite:///{folder / 'lockstep.db'}"
        cookies = asyncio.run(_members(url, max(numbers.readers, numbers.running)))
        (folder / "lessons").symlink_to(_LESSONS)
        chosen = environment_of(folder, runner=True) | {
            "LOCKSTEP_DATABASE_URL": url,
            "LOCKSTEP_MAX_SESSIONS": str(numbers.running + 2),
        }
        command = (*LOCKSTEP, "serve", "--workers", str(numbers.workers))
        server = stack.enter_context(serving(folder, *command, probe=PAGE, **chosen))
        seen = uvloop.run(have_class(server, cookies, numbers))
        memory = sum(
            each.memory_full_info().pss for each in psutil.Process(server.process.pid).children(recursive=True)
        )
        memory += server.process.memory_full_info().pss
    for name, took in seen.opened.items():
        ordered = sorted(took)
        p50, p95 = (1000 * ordered[int(len(ordered) * share)] for share in (0.5, 0.95))
        print(f"{name}: {len(took)} answers, median {p50:.0f} ms, 95th percentile {p95:.0f} ms")
    print(f"errors: {len(seen.errors)} {seen.errors[:3]}; {seen.printed} lines of streams; {memory / 2**20:.0f} MiB")
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores; {json.dumps(vars(numbers), default=str)}")


def main() -> None:
    """Parse the arguments and measure."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    kinds = parser.add_subparsers(dest="kind", required=True)
    growing, group = kinds.add_parser("growth"), kinds.add_parser("class")
    growing.add_argument("--steps", type=int, default=len(STEPS), choices=range(1, len(STEPS) + 1))
    growing.add_argument("--svg", type=Path, help="draw a plot")
    for each in (growing, group):
        each.add_argument("--database", help="URL of an empty database of PostgreSQL; default: SQLite")
    group.add_argument("--workers", type=int, default=1)
    for name, default in (("readers", 200), ("streams", 1_000), ("running", 30), ("seconds", 30)):
        group.add_argument(f"--{name}", type=int, default=default)
    chosen = parser.parse_args()
    if chosen.kind == "class":
        hold_class(chosen)
    else:
        growth(chosen.steps, chosen.database, chosen.svg)


if __name__ == "__main__":
    main()
