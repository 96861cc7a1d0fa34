"""``lockstep db``, and a database of a newer version, on both databases."""

from __future__ import annotations

import asyncio
import signal
from asyncio.subprocess import Process
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import pytest
from sqlalchemy import func, insert, inspect, select, text

from app import migrate
from app.accounts.models import Account, Authenticator
from app.db import Database
from app.health.checks import check_database
from app.settings import Settings
from app.version import lockstep_version
from tests.factories import cli_process
from tests.factories.cli_process import lockstep
from tests.factories.databases import mainly_on
from tests.factories.http_server import free_port
from tests.factories.scripted_supervisor import ScriptedSupervisor

_PATIENCE_S = 120.0
"""For a start on a busy machine. A process that ends is noticed at once."""
HEAD, BEFORE = migrate.known_revisions()[:2]
NEWER = "made_by_a_newer_version"
TIME = datetime(2026, 1, 1, tzinfo=UTC)
ACCOUNT = {
    **{"id": "a", "learner_id": "l", "email": "a@b.test", "email_key": "a@b.test", "name": "Ada", "handle": "ada"},
    "created_at": TIME,
}


@pytest.fixture
async def upgraded(empty_database_url: str) -> AsyncIterator[Database]:
    """A database at this version's revision, with an account."""
    db = Database(empty_database_url)
    await migrate.upgrade(db)
    async with db.writing() as session:
        await session.execute(insert(Account), [ACCOUNT])
        codes = {"account_id": "a", "secret": "S", "last_step": 1, "created_at": TIME}
        await session.execute(insert(Authenticator), [codes])
    yield db
    await db.close()


def options(db: Database, tmp_path: Path) -> dict[str, Any]:
    return {"data_dir": tmp_path / "data", "database_url": db.url}


async def lines_until(process: Process, beginning: str) -> list[str]:
    """What a process prints up to the line that begins so."""
    assert process.stderr
    lines = [""]
    while not lines[-1].startswith(beginning):
        lines.append((await asyncio.wait_for(process.stderr.readline(), _PATIENCE_S)).decode())
        assert lines[-1], lines
    return lines


async def set_revision(db: Database, revision: str) -> None:
    async with db.engine.begin() as connection:
        await connection.execute(text("UPDATE alembic_version SET version_num = :revision"), {"revision": revision})


async def test_it_goes_one_revision_back_and_an_upgrade_returns(upgraded: Database, tmp_path: Path) -> None:
    down = await lockstep("db", "downgrade", "--yes", **options(upgraded, tmp_path))

    assert (down.status, down.out) == (0, "")
    assert down.err == (f"The database is at revision {BEFORE}. Start the version of Lockstep that it belongs to.\n")
    assert await migrate.current_revision(upgraded) == BEFORE
    async with upgraded.session() as session:
        assert await session.scalar(select(Account.name)) == "Ada"
    up = await lockstep("db", "upgrade", **options(upgraded, tmp_path))
    assert up.err == f"The database is at revision {HEAD}.\n"


async def test_it_asks_first_and_changes_nothing_without_a_yes(upgraded: Database, tmp_path: Path) -> None:
    refused = await lockstep("db", "downgrade", typed=b"n\n", **options(upgraded, tmp_path))

    assert refused.status == 1
    assert refused.err.startswith(f"This reverts {HEAD}, and deletes what only they hold.\n")
    assert await migrate.current_revision(upgraded) == HEAD

    agreed = await lockstep("db", "downgrade", BEFORE, typed=b"y\n", **options(upgraded, tmp_path))
    assert agreed.status == 0, agreed.err
    assert await migrate.current_revision(upgraded) == BEFORE


@mainly_on("sqlite", "empty_database_url")
@pytest.mark.parametrize("revision", ["base", "-1", HEAD, NEWER, "create_runs", "x'; DROP TABLE accounts; --"])
async def test_a_revision_that_is_not_an_earlier_one_is_refused(
    upgraded: Database, tmp_path: Path, revision: str
) -> None:
    refused = await lockstep("db", "downgrade", "--yes", "--", revision, **options(upgraded, tmp_path))

    assert refused.status == 1
    assert refused.err == (
        f"The database is at revision {HEAD} and cannot go back to {revision!r}. "
        f"Choose an earlier revision: {', '.join(migrate.known_revisions()[1:])}.\n"
    )
    async with upgraded.session() as session:
        assert await session.scalar(select(func.count()).select_from(Authenticator)) == 1


async def test_the_first_revision_and_a_missing_database_are_left_alone(tmp_path: Path) -> None:
    missing = await lockstep("db", "downgrade", "--yes", data_dir=tmp_path)
    assert (missing.status, missing.err) == (1, f"There is no database {tmp_path / 'lockstep.db'}.\n")
    assert not (tmp_path / "lockstep.db").exists()

    db = Database(f"sqlite+aiosqlite:///{tmp_path / 'lockstep.db'}")
    await migrate.upgrade(db, migrate.known_revisions()[-1])
    await db.close()
    first = await lockstep("db", "downgrade", "--yes", data_dir=tmp_path)
    assert first.err == f"The database is at revision {migrate.known_revisions()[-1]}, the first one.\n"


@mainly_on("sqlite", "empty_database_url")
@pytest.mark.parametrize("command", [("db", "upgrade"), ("db", "downgrade", "--yes"), ("serve", "--port", "0")])
async def test_a_newer_database_is_refused_with_one_sentence(
    upgraded: Database, tmp_path: Path, command: tuple[str, ...]
) -> None:
    await set_revision(upgraded, NEWER)
    async with upgraded.engine.connect() as connection:
        before = await connection.run_sync(lambda c: inspect(c).get_table_names())
    runner: dict[str, Any] = {"runner_socket": tmp_path / "s.sock"} if command[0] == "serve" else {}

    refused = await lockstep(*command, **options(upgraded, tmp_path), **runner)

    assert refused.status == 1
    said = refused.err.splitlines()[-1]
    assert said.startswith(f"The database is at revision {NEWER}, from a newer version of Lockstep than this one")
    assert lockstep_version() in said
    assert f"'lockstep db downgrade {HEAD}'" in said
    assert "Traceback" not in refused.err
    async with upgraded.engine.connect() as connection:
        assert await connection.run_sync(lambda c: inspect(c).get_table_names()) == before
    assert (await check_database(upgraded)).detail == said


@mainly_on("postgresql", "empty_database_url")
async def test_the_web_container_waits_for_a_database_that_it_knows(
    upgraded: Database, tmp_path: Path, supervisor: ScriptedSupervisor, settings: Settings
) -> None:
    await set_revision(upgraded, NEWER)
    port = free_port()
    process = await cli_process.start(
        *("serve", "--port", str(port), "--wait-for-database"),
        **options(upgraded, tmp_path),
        runner_socket=supervisor.socket,
        lessons_dir=settings.lessons_dir,
    )
    try:
        *_, refusal, waiting = await lines_until(process, "Waiting: ")
        assert refusal.startswith(f"The database is at revision {NEWER}, from a newer version")
        assert waiting == "Waiting: Lockstep starts as soon as it can use the database.\n"

        await set_revision(upgraded, HEAD)  # as the newer version's `lockstep db downgrade` does

        await lines_until(process, f"Lockstep {lockstep_version()}")
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=_PATIENCE_S) as client:
            assert (await client.get("/readyz")).json() == {"status": "ready", "missing": []}
    finally:
        process.send_signal(signal.SIGTERM)
        await cli_process.finish(process)


@mainly_on("postgresql", "empty_database_url")
async def test_what_waits_for_a_database_ends_when_it_is_asked_to(upgraded: Database, tmp_path: Path) -> None:
    await set_revision(upgraded, NEWER)
    process = await cli_process.start(
        *("serve", "--port", "0", "--wait-for-database"),
        **options(upgraded, tmp_path),
        runner_socket=tmp_path / "s.sock",
    )
    await lines_until(process, "Waiting: ")
    process.send_signal(signal.SIGTERM)

    ended = await cli_process.finish(process, within_s=10)

    assert (ended.status, ended.err) == (0, "")


async def test_a_server_with_its_own_runner_does_not_wait(tmp_path: Path) -> None:
    refused = await lockstep("serve", "--wait-for-database", data_dir=tmp_path)
    assert (refused.status, refused.err) == (2, "--wait-for-database requires LOCKSTEP_RUNNER_SOCKET.\n")
