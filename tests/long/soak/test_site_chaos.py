"""Twenty learners run cells and comment while each part of a site is killed, its disk fills, its database freezes.

The site is as Compose starts it: Caddy, web processes, a runner, and PostgreSQL. What a learner was told stays: output,
comments and awards are stored once. Each part is back by itself: Caddy and PostgreSQL are started again as Docker does.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import secrets
import shutil
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

import httpx
import psutil
import pytest
from sqlalchemy import select, text

from app.accounts.models import Account
from app.comments.models import Comment
from app.db import Database, now
from app.progress.models import LedgerEntry
from app.runs.models import Run, RunEvent
from tests.factories.accounts import store_account
from tests.factories.comments import COMMENTS_URL
from tests.factories.course import LESSON
from tests.factories.http_server import free_port
from tests.factories.postgresql_server import PostgresqlServer, postgresql_server
from tests.factories.process_tree import children, name, web_processes
from tests.factories.serve_command import ServeCommand
from tests.factories.small_disk import SmallDisk, small_disk
from tests.factories.sse_client import live_stream
from tests.factories.unpacked_programs import program
from tests.functional.test_reverse_proxies import ROOT, replaced
from tests.functional.test_several_web_processes import sign_in
from tests.long.soak.conftest import CHAOS_S, SEED
from tests.long.soak.test_chaos import Pressed, what_is_wrong

LEARNERS = 20
_WORKERS = 2
_DISK_MB = 400
_FROZEN_S = min(60.0, CHAOS_S)
_FULL_S = min(10.0, CHAOS_S)
_BACK_S = 240.0
"""How long a part may take to be back. The supervisor's longest pause before it is started again is 30 s."""
_RESTART_S = 1.0
"""How often what Docker would start again is looked at."""
_REFUSED = (429, 502, 503)
"""What a learner is told who has to try again; 429 has nothing to do with failures."""


@dataclass
class Learner:
    """What one learner was told."""

    account: Account
    client: httpx.AsyncClient
    runs: list[Pressed] = field(default_factory=list)
    comments: list[str] = field(default_factory=list)
    """Texts of those that were accepted."""


@dataclass
class Site:
    """The parts, and what happened to them."""

    url: str
    service: ServeCommand
    database: PostgresqlServer
    disk: SmallDisk
    caddy: asyncio.subprocess.Process
    refusals: Counter[int] = field(default_factory=Counter)
    well: list[float] = field(default_factory=list)
    """When a run was pressed that ended well, and after which a comment was accepted."""

    def web_processes(self) -> list[psutil.Process]:
        return web_processes(self.service.web())


@pytest.fixture
def parts() -> Iterator[tuple[ServeCommand, PostgresqlServer, SmallDisk]]:
    """PostgreSQL on a disk of its own, and the command that starts the rest."""
    if os.geteuid() != 0 or shutil.which("bwrap") is None:
        pytest.skip("needs bubblewrap, and root to give the sessions users of their own")
    with small_disk(_DISK_MB) as disk, postgresql_server(disk.path) as database:
        service = ServeCommand(warm_kernels=1, database_url=database.url)
        try:
            yield service, database, disk
        finally:
            service.remove()


@pytest.mark.timeout(600 + 8 * _BACK_S)
async def test_whatever_fails_nothing_that_was_accepted_is_lost_or_doubled(
    parts: tuple[ServeCommand, PostgresqlServer, SmallDisk], tmp_path: Path
) -> None:
    service, database, disk = parts
    direct = await asyncio.to_thread(service.start, "--workers", str(_WORKERS))
    db = Database(database.url, connections=2)
    async with _behind_caddy(direct, tmp_path) as (url, caddy):
        site = Site(url, service, database, disk, caddy)
        learners = [await _sign_up(site, db) for _ in range(LEARNERS)]
        over = asyncio.Event()
        restarts = [asyncio.create_task(_restart_database(site, over)), asyncio.create_task(_restart_caddy(site, over))]
        working = [asyncio.create_task(_learn(site, each, over)) for each in learners]
        rows = await _injure(site, working)
        over.set()
        await asyncio.gather(*working, *restarts)
        runs, comments = (sum(len(getattr(each, kind)) for each in learners) for kind in ("runs", "comments"))
        print(f"\n{runs} runs, {comments} comments of {LEARNERS} learners; told to try again: {dict(site.refusals)}")
        print("\n".join(f"{name:<40} back after {seconds:5.1f} s" for name, seconds in rows))
        wrong = [fault for learner in learners for fault in await _faults(db, learner)]
        unfinished = await _unfinished(db)
        for learner in learners:
            await learner.client.aclose()
    await db.close()
    assert await asyncio.to_thread(service.stop) == 0
    left = await asyncio.to_thread(service.left_behind)
    assert wrong == []
    assert unfinished == []
    assert left == []


# --- the site ---------------------------------------------------------------------------------------------------


@asynccontextmanager
async def _behind_caddy(direct: str, folder: Path) -> AsyncIterator[tuple[str, asyncio.subprocess.Process]]:
    """Caddy with Lockstep's own file in front of that address."""
    url = f"http://127.0.0.1:{free_port()}"
    file = folder / "Caddyfile"
    file.write_text(replaced((ROOT / "docker" / "Caddyfile").read_text(), ("web:8000", direct.removeprefix("http://"))))
    process = await _start_caddy(url, folder)
    try:
        yield url, process
    finally:
        for each in children(os.getpid()):
            if name(each) == "caddy":
                each.kill()


async def _start_caddy(url: str, folder: Path) -> asyncio.subprocess.Process:
    places = {"HOME": str(folder), "XDG_DATA_HOME": str(folder), "XDG_CONFIG_HOME": str(folder)}
    return await asyncio.create_subprocess_exec(
        *(program("caddy"), "run", "--adapter", "caddyfile", "--config", str(folder / "Caddyfile")),
        stdin=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
        env=os.environ | places | {"LOCKSTEP_PUBLIC_URL": url},
    )


async def _restart_caddy(site: Site, over: asyncio.Event) -> None:
    folder = Path(psutil.Process(site.caddy.pid).environ()["HOME"])
    while not over.is_set():
        if site.caddy.returncode is not None:
            site.caddy = await _start_caddy(site.url, folder)
        await asyncio.sleep(_RESTART_S)


async def _restart_database(site: Site, over: asyncio.Event) -> None:
    while not over.is_set():
        if not site.database.running():
            with suppress(AssertionError):  # on a full disk it may not start
                await asyncio.to_thread(site.database.start)
        await asyncio.sleep(_RESTART_S)


# --- learners ---------------------------------------------------------------------------------------------------


async def _sign_up(site: Site, db: Database) -> Learner:
    account = await store_account(db)
    async with db.writing() as session:  # new accounts may comment less often
        await session.merge(account)
        await session.execute(
            text("UPDATE accounts SET created_at = :then WHERE id = :id"),
            {"then": now() - timedelta(days=90), "id": account.id},
        )
    client = httpx.AsyncClient(base_url=site.url, headers={"origin": site.url}, timeout=40)
    await sign_in(db, client, account)
    return Learner(account, client)


async def _learn(site: Site, learner: Learner, over: asyncio.Event) -> None:
    """Run cells and comment until it is over."""
    chance = random.Random(f"{SEED} {learner.account.id}")
    while not over.is_set():
        begun = time.monotonic()
        if (run := await _press(site, learner, chance)) is not None:
            learner.runs.append(run)
            await asyncio.wait_for(_watch(learner, run), _BACK_S)
            if run.seen[-1].data["outcome"] == "ok" and await _comment(site, learner, over):
                site.well.append(begun)
        await asyncio.sleep(chance.uniform(0.5, 1.5))


async def _press(site: Site, learner: Learner, chance: random.Random) -> Pressed | None:
    lines, pause_s = chance.choice([(1, 0.0), (20, 0.05), (40, 0.1)])
    word = secrets.token_hex(8)
    code = f"import time\nfor i in range({lines}):\n    print('{word}', i)\n    time.sleep({pause_s})"
    answer = await _ask(site, learner.client.post("/runs", json={"lesson": LESSON, "cell": "hello", "code": code}))
    if answer is None:
        return None
    return Pressed(answer.json()["id"], "".join(f"{word} {i}\n" for i in range(lines)))


async def _watch(learner: Learner, run: Pressed) -> None:
    """Follow the run as a page does, resuming after the last number seen, until the end."""
    while not run.ended:
        after = max((frame.id for frame in run.seen if frame.id), default=0)
        with suppress(httpx.TransportError, AssertionError):  # the stream is refused while the database is away
            async with live_stream(learner.client, f"/runs/{run.id}/stream", params={"after": after}) as frames:
                async for frame in frames:
                    if frame.id is not None:
                        run.seen.append(frame)
                    if frame.event == "finished":
                        run.ended = True
                        return
        await asyncio.sleep(0.5)


async def _comment(site: Site, learner: Learner, over: asyncio.Event) -> bool:
    """Post a comment, as often as a page has to, with the same key: it is stored once."""
    fields = {"text": f"I saw {secrets.token_hex(8)}", "key": secrets.token_hex(16)}
    while not over.is_set():
        answer = await _ask(site, learner.client.post(COMMENTS_URL, data=fields))
        if answer is not None:
            learner.comments.append(fields["text"])
            return True
        await asyncio.sleep(1)
    return False


async def _ask(site: Site, request: Awaitable[httpx.Response]) -> httpx.Response | None:
    """The answer; None if the learner has to try again, or will never know."""
    try:
        answer = await request
    except httpx.TransportError:
        site.refusals[0] += 1
        return None
    if answer.status_code in _REFUSED:
        site.refusals[answer.status_code] += 1
        return None
    assert answer.status_code in (200, 202, 303), (answer.status_code, answer.text[:500])
    return answer


# --- what fails -------------------------------------------------------------------------------------------------


async def _injure(site: Site, working: list[asyncio.Task[None]]) -> list[tuple[str, float]]:
    """Everything in turn, and again until time is up. Returns how long each took to be back."""

    async def full() -> None:
        site.disk.fill()
        await asyncio.sleep(_FULL_S)
        site.disk.free()

    async def frozen() -> None:
        with site.database.frozen():
            await asyncio.sleep(_FROZEN_S)

    def kill(processes: Callable[[], list[psutil.Process]]) -> Callable[[], Awaitable[None]]:
        async def kill_all() -> None:
            for process in processes():
                with suppress(psutil.NoSuchProcess):
                    process.kill()

        return kill_all

    async def database() -> None:
        await asyncio.to_thread(site.database.kill)

    async def caddy() -> None:
        site.caddy.kill()

    injuries: dict[str, Callable[[], Awaitable[None]]] = {
        "one of two web processes, kill -9": kill(lambda: site.web_processes()[:1]),
        "both web processes, kill -9": kill(site.web_processes),
        "supervisor, kill -9": kill(site.service.supervisor),
        "PostgreSQL, kill -9": database,
        "Caddy, kill -9": caddy,
        f"disk of PostgreSQL full for {_FULL_S:g} s": full,
        f"PostgreSQL frozen for {_FROZEN_S:g} s": frozen,
    }
    rows: list[tuple[str, float]] = []
    ends = time.monotonic() + CHAOS_S
    await _works_again(site, time.monotonic(), working)
    while not rows or time.monotonic() < ends:
        for injury, injure in injuries.items():
            await injure()
            rows.append((injury, await _works_again(site, time.monotonic(), working)))
    return rows


async def _works_again(site: Site, since: float, working: list[asyncio.Task[None]]) -> float:
    """Seconds until somebody's run, pressed since then, has ended well and a comment after it was accepted."""
    while not any(begun > since for begun in site.well):
        assert time.monotonic() < since + _BACK_S, "the site is not back"
        for task in working:
            if task.done():
                task.result()
        await asyncio.sleep(0.05)
    return time.monotonic() - since


# --- the judge --------------------------------------------------------------------------------------------------


async def _unfinished(db: Database) -> list[str]:
    """Runs that do not end: one whose learner was never told that it was accepted may be the last to do so."""
    deadline = time.monotonic() + _BACK_S
    while True:
        async with db.session() as session:
            found = list(await session.scalars(select(Run.id).where(Run.state != "finished")))
        if not found or time.monotonic() > deadline:
            return found
        await asyncio.sleep(0.5)


async def _faults(db: Database, learner: Learner) -> list[str]:
    """What was promised to a learner and is not so."""
    async with db.session() as session:
        award = await session.get(LedgerEntry, (learner.account.learner_id, "cell", f"{LESSON}#hello"))
        mine = select(Comment.source).where(Comment.author_id == learner.account.id)
        comments = Counter(await session.scalars(mine))
        faults = []
        for run in learner.runs:
            rows = select(RunEvent.seq, RunEvent.payload).where(RunEvent.run_id == run.id).order_by(RunEvent.seq)
            stored = {seq: json.loads(payload) for seq, payload in await session.execute(rows)}
            faults += what_is_wrong(run, stored)
    # There cannot be two: the learner, the kind and the subject are the key of the ledger.
    if any(run.seen[-1].data["outcome"] == "ok" for run in learner.runs) and (award is None or award.xp != 2):
        faults.append("no award for a run that ended well")
    faults += [f"stored {comments[said]} times: {said}" for said in learner.comments if comments[said] != 1]
    faults += [f"stored {count} times: {said}" for said, count in comments.items() if count > 1]
    return [f"@{learner.account.handle}: {fault}" for fault in faults]
