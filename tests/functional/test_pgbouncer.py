"""PgBouncer in transaction mode: every transaction may get another connection of PostgreSQL."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
import structlog
from sqlalchemy import func, make_url, select, text

from app import migrate
from app.bus import publish_on_commit
from app.db import Database
from app.runs.models import Run
from app.topic_relay import TopicRelay
from tests.factories.http_server import free_port
from tests.factories.stored_runs import store_run
from tests.factories.unpacked_programs import program, with_unpacked_libraries

_SERVER_CONNECTIONS = 2
_CLIENT_CONNECTIONS = 6
_PATIENCE_S = 30.0
_CONFIGURATION = """
[databases]
{database} = host={host} dbname={database} user={user}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = {connections}
logfile = {folder}/log
"""


@pytest.fixture(scope="module")
def pooler_url(migrated_postgresql: str) -> Iterator[str]:
    """The URL of the database through PgBouncer. Skips the test if that is not installed."""
    command = [program("pgbouncer"), "--quiet"]
    direct = make_url(migrated_postgresql)
    host = direct.query.get("host", direct.host)
    port = free_port()
    with tempfile.TemporaryDirectory(prefix="lb-") as folder:
        configuration = Path(folder) / "pgbouncer.ini"
        configuration.write_text(
            _CONFIGURATION.format(
                database=direct.database,
                host=host,
                user=direct.username,
                port=port,
                connections=_SERVER_CONNECTIONS,
                folder=folder,
            )
        )
        if os.geteuid() == 0:  # it refuses to run as root
            shutil.chown(folder, "postgres")
            command.append("--user=postgres")
        with subprocess.Popen([*command, str(configuration)], env=with_unpacked_libraries(), cwd="/") as process:
            try:
                asyncio.run(_until_open(port))
                yield f"postgresql+asyncpg://{direct.username}@127.0.0.1:{port}/{direct.database}"
            finally:
                process.terminate()


async def _until_open(port: int) -> None:
    async with asyncio.timeout(_PATIENCE_S):
        while True:
            with suppress(OSError):
                _reader, writer = await asyncio.open_connection("127.0.0.1", port)
                writer.close()
                return
            await asyncio.sleep(0.05)


async def test_many_transactions_share_few_connections(pooler_url: str) -> None:
    db = Database(pooler_url, connections=_CLIENT_CONNECTIONS, pooled=True)
    try:
        assert await migrate.current_revision(db) == migrate.HEAD_REVISION
        await migrate.upgrade(db)

        async def work(number: int) -> None:
            learner = f"pooled {number}"
            for _ in range(5):
                run_id = await store_run(db, learner_id=learner)
                async with db.session() as session:
                    assert (await session.get_one(Run, run_id)).learner_id == learner
                    assert await session.scalar(text(f"SELECT {number}")) == number
                    await session.scalar(select(func.count()).select_from(Run).where(Run.learner_id == learner))

        await asyncio.gather(*(work(number) for number in range(2 * _CLIENT_CONNECTIONS)))
        async with db.writing() as session:
            pooled = select(func.count()).select_from(Run).where(Run.learner_id.startswith("pooled "))
            assert await session.scalar(pooled) == 5 * 2 * _CLIENT_CONNECTIONS
    finally:
        await db.close()


@pytest.mark.parametrize("has_listen_url", [True, False])
async def test_topics_need_an_address_of_postgresql_itself(
    pooler_url: str, migrated_postgresql: str, has_listen_url: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.topic_relay._ARRIVAL_TIMEOUT_S", _PATIENCE_S if has_listen_url else 1.0)
    here, elsewhere = (Database(pooler_url, connections=2, pooled=True) for _ in range(2))
    with structlog.testing.capture_logs() as logs:
        async with TopicRelay(here, here.bus, migrated_postgresql if has_listen_url else "").running():
            async with asyncio.timeout(_PATIENCE_S):
                while not logs:  # noqa: ASYNC110 - what the log says is the point
                    await asyncio.sleep(0.02)
            with here.bus.subscribe("bell") as bell:
                async with elsewhere.writing() as session:
                    publish_on_commit(session, "bell")
                arrives = await bell.wait(_PATIENCE_S if has_listen_url else 0.2)
            here.bus.close()
    for db in (here, elsewhere):
        await db.close()

    assert arrives == has_listen_url
    assert [line["log_level"] for line in logs] == ["info" if has_listen_url else "warning"]
