"""``lockstep backup``: one moment of a site in one file, or a sentence that says why not."""

from __future__ import annotations

import asyncio
import os
import stat
from pathlib import Path

import pytest
from sqlalchemy import text

from app.backup.archive import BackupError
from app.backup.service import restore_backup, verify_backup
from app.db import Database
from app.settings import Settings
from app.tables import TABLES
from tests.factories import cli_process
from tests.factories.backups import archive_of, changed, on_both_databases, options, rows_of, silent
from tests.factories.cli_process import lockstep
from tests.factories.filled_database import add_runs, all_rows
from tests.factories.small_disk import small_disk


@on_both_databases
async def test_a_backup_shows_one_moment_while_others_write(site: Settings, db: Database, new_site: Settings) -> None:
    """Runs come before their events. Without a snapshot, the backup would have events of runs that it lacks."""
    await add_runs(db, 0, 3000)
    written = 3000
    ended = asyncio.Event()

    async def write() -> None:
        nonlocal written
        while not ended.is_set():
            await add_runs(db, written, 50, events=2)
            written += 50

    writer = asyncio.create_task(write())
    archive = await archive_of(site)
    ended.set()
    await writer
    summary = await restore_backup(new_site, archive, silent)

    found = await rows_of(new_site.database)
    stored = [run for run in found["runs"] if run["id"].startswith("run-")]
    assert 3000 <= len(stored) < written
    assert sum(run["last_seq"] for run in stored) == len([e for e in found["run_events"] if "run-" in e["run_id"]])
    assert summary.backup.rows == sum(map(len, found.values()))


async def test_a_backup_travels_through_pipes(site: Settings, db: Database, new_site: Settings) -> None:
    process = await cli_process.start("backup", "-", **options(site))
    out, err = await asyncio.wait_for(process.communicate(), 60)
    assert process.returncode == 0, err

    restored = await lockstep("restore", "-", typed=out, **options(new_site))

    assert restored.status == 0, restored.err
    assert await rows_of(new_site.database) == await all_rows(db)


async def test_rows_that_are_missing_are_noticed(site: Settings, db: Database) -> None:
    archive = changed(await archive_of(site), lambda name, data: None if "/outbox/" in name else data)
    with pytest.raises(BackupError, match="it has 0 rows of the table outbox instead of 2"):
        await verify_backup(archive)

    rows = {table.name: 0 for table in TABLES if table.name != "runs"}
    with pytest.raises(BackupError, match="its tables are not those of its revision"):
        await verify_backup(changed(archive, lambda *_: None, rows=rows))


async def test_a_full_disk_leaves_the_earlier_backup(site: Settings, db: Database) -> None:
    await add_runs(db, 0, 300, events=20)
    with small_disk(1) as disk:
        file = disk.path / "site.tar.gz"
        file.write_bytes(b"earlier")
        disk.fill()

        refused = await lockstep("backup", str(file), **options(site))

        assert refused.status == 1
        assert refused.err == f"Cannot write {file}: No space left on device.\n"
        assert len(refused.err.splitlines()) == 1
        assert file.read_bytes() == b"earlier"
        assert sorted(path.name for path in disk.path.iterdir()) == ["filler", "site.tar.gz"]


@pytest.mark.parametrize(
    ("arguments", "status", "sentence"),
    [
        (["backup", "missing/x.tar.gz"], 1, "There is no folder {folder}/missing. Create it.\n"),
        (["backup", "--keep", "2", "x"], 2, "--keep and --every require a folder, and {folder}/x is not a folder.\n"),
        (["backup", "--every", "2", "-"], 2, "--keep and --every require a folder.\n"),
        (["backup", "pipe"], 1, "{folder}/pipe is not a file. Choose another name.\n"),
        (["restore", "missing"], 1, "There is no file missing.\n"),
        (["restore", "."], 1, ". is a folder. Name a backup in it.\n"),
    ],
)
async def test_a_path_that_cannot_be_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], status: int, sentence: str
) -> None:
    monkeypatch.chdir(tmp_path)
    os.mkfifo("pipe")
    ended = await lockstep(*arguments, data_dir=tmp_path / "data")
    assert (ended.status, ended.err) == (status, sentence.format(folder=tmp_path))


async def test_without_a_database_there_is_nothing_to_back_up(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    ended = await lockstep("backup", str(tmp_path / "x.tar.gz"), data_dir=tmp_path / "data")
    assert ended.status == 1
    assert ended.err.startswith(f"There is no database {tmp_path / 'data' / 'lockstep.db'}.")
    assert [path.name for path in tmp_path.rglob("*")] == ["data"]  # noqa: ASYNC240


async def test_an_empty_database_of_postgresql_is_not_backed_up(site: Settings, postgresql: str) -> None:
    with pytest.raises(BackupError, match="The database is empty"):
        await archive_of(site.model_copy(update={"database_url": postgresql}))


async def test_a_newer_or_older_than_supported_database_is_not_backed_up(db: Database, site: Settings) -> None:
    for revision, sentence in (("newer", "from a newer version of Lockstep"), ("add_run_pruning", "db upgrade")):
        async with db.engine.begin() as connection:
            await connection.execute(text("UPDATE alembic_version SET version_num = :revision"), {"revision": revision})
        ended = await lockstep("backup", "-", **options(site))
        assert ended.status == 1
        assert sentence in ended.err
        assert len(ended.err.splitlines()) == 1


async def test_only_the_newest_backups_are_kept_and_nothing_else_is_deleted(site: Settings, db: Database) -> None:
    folder = site.data_dir / "backups"
    folder.mkdir()
    old = [f"lockstep-2026010{day}T000000Z.tar.gz" for day in range(1, 5)]
    others = ["notes.txt", "lockstep-20260101T000000Z.tar.gz.copy", "lockstep-site.tar.gz"]
    for name in (*old, *others, ".lockstep-20260101T000000Z.tar.gz.partial"):
        (folder / name).touch()

    ended = await lockstep("backup", "--keep", "3", **options(site))

    assert ended.status == 0, ended.err
    assert ended.err.count("Deleted ") == 2
    left = {path.name for path in folder.iterdir()}
    (new,) = left - {*old, *others}
    assert left == {*others, *old[2:], new}
    assert stat.S_IMODE((folder / new).stat().st_mode) == 0o600


async def test_backups_on_a_schedule_go_on_after_one_that_failed(site: Settings, tmp_path: Path) -> None:
    folder = tmp_path / "backups"
    folder.mkdir()
    database = site.data_dir / "lockstep.db"
    database.rename(tmp_path / "lockstep.db")
    process = await cli_process.start("backup", "--every", "0.0001", "--keep", "2", str(folder), **options(site))
    assert process.stderr
    try:
        failed = (await asyncio.wait_for(process.stderr.readline(), 60)).decode()
        assert failed.startswith("No backup was made. ")
        (tmp_path / "lockstep.db").rename(database)
        lines: list[str] = []
        while sum(line.startswith("Backed up") for line in lines) < 3:
            lines.append((await asyncio.wait_for(process.stderr.readline(), 60)).decode())
            assert lines[-1]
    finally:
        process.terminate()
        await cli_process.finish(process)
    assert process.returncode == 0
    assert 1 <= len(list(folder.glob("lockstep-*.tar.gz"))) <= 3
    assert list(folder.glob(".*")) == []
