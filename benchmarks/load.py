"""How a site does as it grows.

    python benchmarks/load.py [--steps 3] [--database URL] [--svg FILE]

It fills one database after another (``growth_data.py``), each about ten times as large as the one before, up
to 1,000,000 learners, 1,000,000 comments, 10,000,000 events of runs and 800 lessons, and asks the application one thing
at a time, without a socket. It prints the CPU time of the process for each answer, SQLite's included, which other
programs on the machine change little, and the wall time, which includes PostgreSQL's. ``--database`` names an
empty database of PostgreSQL's server to make a database of each step in; without it, SQLite is used.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter, process_time

import growth_data
import httpx
from fastapi import FastAPI
from growth_data import Size
from page_throughput import COURSE, LESSON, PAGE, environment_of, sign_in
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
    "pieces": f"/en/pieces?course={COURSE}&lesson={LESSON}",
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

    mpl.rcParams.update({"svg.hashsalt": "lockstep", "svg.fonttype": "none"})
    figure, axes = pyplot.subplots(figsize=(7, 4))
    for number, name in enumerate(ASKED):
        took = [max(step[name].wall_ms, 0.1) for step in found]
        axes.plot(range(steps), took, label=name, marker="osD^"[number % 4], color=f"C{number % 10}", markersize=4)
    axes.set_xticks(range(steps), [f"{size.learners:,}" for size in STEPS[:steps]])
    axes.set(xlabel="learners", ylabel="median time for an answer, ms", yscale="log")
    axes.yaxis.set_major_formatter("{x:g}")
    axes.legend(fontsize=8, loc="center left", bbox_to_anchor=(1, 0.5), reverse=True)
    figure.savefig(svg, bbox_inches="tight", metadata={"Date": None})


def main() -> None:
    """Parse the arguments and measure."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--steps", type=int, default=len(STEPS), choices=range(1, len(STEPS) + 1))
    parser.add_argument("--svg", type=Path, help="draw a plot")
    parser.add_argument("--database", help="URL of an empty database of PostgreSQL; default: SQLite")
    chosen = parser.parse_args()
    growth(chosen.steps, chosen.database, chosen.svg)


if __name__ == "__main__":
    main()
