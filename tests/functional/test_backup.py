"""``lockstep backup``, ``restore`` and ``db copy``: every row of every table, on both databases and between them."""

from __future__ import annotations

import asyncio
import gzip
import json
import os
import re
import shutil
import signal
import stat
import sys
import tarfile
from collections.abc import AsyncIterator, Callable, Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text
from watchfiles import awatch

from app import migrate
from app.accounts.signing import load_secrets
from app.backup.archive import ArchiveReader, ArchiveWriter, BackupError, Manifest
from app.backup.service import copy_database, restore_backup, verify_backup, write_backup
from app.backup.site_files import alone_in
from app.db import Database
from app.settings import Settings
from app.tables import TABLES
from tests.factories import cli_process
from tests.factories.cli_process import lockstep
from tests.factories.course import write_course
from tests.factories.databases import drop_tables, postgresql_database
from tests.factories.filled_database import add_runs, all_rows, fill_every_table
from tests.factories.small_disk import small_disk

ROOT = Path(__file__).parents[2]


def silent(done: int, total: int) -> None: ...


@pytest.fixture
def site(tmp_path: Path, empty_database_url: str) -> Settings:
    """The settings of a site with secrets and lessons. Its database is empty."""
    data = tmp_path / "data"
    load_secrets(data / "secrets" / "sign-in")
    load_secrets(data / "secrets" / "unsubscribe")
    lessons = write_course(tmp_path / "lessons")
    if empty_database_url.startswith("sqlite"):
        empty_database_url = f"sqlite+aiosqlite:///{data / 'lockstep.db'}"
    return Settings(data_dir=data, lessons_dir=lessons, database_url=empty_database_url)


@pytest.fixture
async def db(site: Settings) -> AsyncIterator[Database]:
    """The site's database, with rows in every table."""
    db = Database(site.database)
    await fill_every_table(db)
    yield db
    await db.close()


@pytest.fixture
def new_site(tmp_path: Path) -> Settings:
    """The settings of a new site on SQLite, in folders that do not exist yet."""
    return Settings(data_dir=tmp_path / "new" / "data", lessons_dir=tmp_path / "new" / "lessons")


@pytest.fixture
def postgresql() -> Iterator[str]:
    """The URL of an empty database of PostgreSQL."""
    with postgresql_database() as url:
        yield url


def options(site: Settings) -> dict[str, Any]:
    found = {"data_dir": site.data_dir, "lessons_dir": site.lessons_dir}
    return found | ({"database_url": site.database_url} if site.database_url else {})


async def rows_of(url: str) -> dict[str, list[dict[str, Any]]]:
    db = Database(url)
    try:
        return await all_rows(db)
    finally:
        await db.close()


def files_in(folder: Path) -> dict[str, bytes]:
    """All files below a folder."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


async def archive_of(site: Settings) -> BytesIO:
    file = BytesIO()
    await write_backup(site, file, silent)
    return file


def changed(archive: BytesIO, change: Callable[[str, bytes], bytes | None], **facts: Any) -> BytesIO:
    """A backup with other contents, and a manifest that says so: as if this program had made it."""
    archive.seek(0)
    new = BytesIO()
    writer = ArchiveWriter(new)
    with ArchiveReader(archive) as reader:
        for name, data in reader.members():
            if (other := change(name, data)) is not None:
                writer.add(name, other)
        manifest = reader.manifest
    told = {"version": manifest.version, "revision": manifest.revision, "rows": manifest.rows} | facts
    writer.finish(Manifest(created_at="2026", database="sqlite", members=writer.members, **told))
    return new


# --- there and back ---------------------------------------------------------------------------------------------


async def test_everything_comes_back_on_an_empty_machine(
    site: Settings, db: Database, new_site: Settings, tmp_path: Path
) -> None:
    file = tmp_path / "site.tar.gz"
    expected = await all_rows(db)

    saved = await lockstep("backup", str(file), **options(site))
    assert saved.status == 0, saved.err
    count = sum(map(len, expected.values()))
    assert saved.err.startswith(f"Backed up {count} rows of {len(TABLES)} tables, 2 secrets and ")
    assert saved.err.endswith("and read all of it back.\n")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600

    restored = await lockstep("restore", str(file), **options(new_site))
    assert restored.status == 0, restored.err
    assert restored.err.startswith(f"Restored {count} rows of {len(TABLES)} tables, 2 secrets and ")
    assert await rows_of(new_site.database) == expected
    assert files_in(new_site.data_dir / "secrets") == files_in(site.data_dir / "secrets")
    assert files_in(new_site.lessons_dir) == files_in(site.lessons_dir)
    assert stat.S_IMODE((new_site.data_dir / "secrets" / "sign-in").stat().st_mode) == 0o600
    assert sorted(path.name for path in new_site.data_dir.iterdir()) == ["lockstep.db", "secrets"]
    assert [path for path in tmp_path.iterdir() if path.name.endswith(".partial")] == []  # noqa: ASYNC240


async def test_a_backup_of_sqlite_restores_to_postgresql(tmp_path: Path, new_site: Settings, postgresql: str) -> None:
    db = Database(new_site.database)
    new_site.data_dir.mkdir(parents=True)
    await fill_every_table(db)
    expected = await all_rows(db)
    archive = await archive_of(new_site)
    await db.close()
    target = Settings(data_dir=tmp_path, lessons_dir=new_site.lessons_dir, database_url=postgresql)

    await restore_backup(target, archive, silent)

    assert await rows_of(postgresql) == expected
    assert await deferrable_constraints(postgresql) == 0


async def test_a_backup_travels_through_pipes(site: Settings, db: Database, new_site: Settings) -> None:
    process = await cli_process.start("backup", "-", **options(site))
    out, err = await asyncio.wait_for(process.communicate(), 60)
    assert process.returncode == 0, err

    restored = await lockstep("restore", "-", typed=out, **options(new_site))

    assert restored.status == 0, restored.err
    assert await rows_of(new_site.database) == await all_rows(db)


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


async def test_a_backup_of_an_older_version_is_upgraded(db: Database, site: Settings, new_site: Settings) -> None:
    before = migrate.known_revisions()[-1]
    await migrate.downgrade(db, before)
    archive = await archive_of(site)

    summary = await restore_backup(new_site, archive, silent)

    assert summary.backup.revision == before
    new = Database(new_site.database)
    try:
        assert await migrate.current_revision(new) == migrate.HEAD_REVISION
        assert len((await all_rows(new))["comments"]) == 5
    finally:
        await new.close()


async def test_tables_that_are_not_lockstep_s_are_left_out(db: Database, site: Settings, new_site: Settings) -> None:
    async with db.engine.begin() as connection:
        await connection.execute(text("CREATE TABLE of_the_operator (id INTEGER)"))

    await restore_backup(new_site, await archive_of(site), silent)

    assert await rows_of(new_site.database) == await all_rows(db)


async def test_there_is_no_column_that_a_sequence_fills() -> None:
    """A restored sequence would have to continue after the largest number: write that when one appears."""
    assert [table.name for table in TABLES if table.autoincrement_column is not None] == []


async def test_the_documented_recipe_restores_into_a_new_installation(
    tmp_path: Path, postgresql: str, unmigrated_postgresql: str
) -> None:
    """As it stands on the page, but that the commands for the web container run here."""
    page = (ROOT / "docs" / "operate" / "backup.md").read_text()
    back_up, _, _, restore, replace, *_ = re.findall(r"```sh\n(.*?)```", page, re.DOTALL)
    await drop_tables(unmigrated_postgresql)
    db = Database(unmigrated_postgresql)
    await fill_every_table(db)
    expected = await all_rows(db)
    await db.close()
    old, new = tmp_path / "old", tmp_path / "new"
    load_secrets(old / "secrets" / "sign-in")
    new.mkdir()

    await follow(back_up, tmp_path, old, unmigrated_postgresql)
    await follow(restore, tmp_path, new, postgresql)

    assert await rows_of(postgresql) == expected
    assert files_in(new / "secrets") == files_in(old / "secrets")

    changed_db = Database(postgresql)
    await add_runs(changed_db, 0, 1)
    await changed_db.close()
    log = await follow(replace, tmp_path, new, postgresql)
    assert await rows_of(postgresql) == expected
    assert log.splitlines()[-2:] == [
        "docker compose --profile backup stop web backup",
        "docker compose --profile backup up --detach",
    ]


async def follow(commands: str, folder: Path, data: Path, url: str) -> str:
    """Run commands of the documentation in a folder, until one fails. Returns what was asked of Docker."""
    tools = folder / "bin"
    tools.mkdir(exist_ok=True)
    shutil.copy(ROOT / "tests" / "functional" / "programs" / "docker.sh", tools / "docker")
    (tools / "docker").chmod(0o755)
    settings = {"LOCKSTEP_DATA_DIR": str(data), "LOCKSTEP_DATABASE_URL": url}
    paths = {"PATH": f"{tools}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT), "PYTHON": sys.executable}
    process = await asyncio.create_subprocess_exec(
        *("bash", "-e", "-c", commands),
        cwd=folder,
        env=settings | paths | {"LOG": str(folder / "log")},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    _, err = await asyncio.wait_for(process.communicate(), 120)
    assert process.returncode == 0, err
    log = folder / "log"
    return log.read_text() if log.exists() else ""


# --- what is there already --------------------------------------------------------------------------------------


async def test_a_database_with_rows_is_replaced_only_when_told(site: Settings, db: Database, tmp_path: Path) -> None:
    file = tmp_path / "site.tar.gz"
    file.write_bytes((await archive_of(site)).getvalue())
    expected, secrets = await all_rows(db), files_in(site.data_dir / "secrets")
    await add_runs(db, 0, 1)
    shutil.rmtree(site.data_dir / "secrets")
    load_secrets(site.data_dir / "secrets" / "sign-in")
    later = await all_rows(db)
    await db.close()

    refused = await lockstep("restore", str(file), **options(site))
    assert refused.status == 1
    assert refused.err.startswith("The database is not empty: the table ")
    assert "--replace" in refused.err
    assert await rows_of(site.database) == later
    assert len(files_in(site.data_dir / "secrets")) == 1

    replaced = await lockstep("restore", "--replace", str(file), **options(site))
    assert replaced.status == 0, replaced.err
    assert await rows_of(site.database) == expected
    assert files_in(site.data_dir / "secrets") == secrets


async def test_a_database_that_a_server_has_open_is_left_alone(site: Settings, db: Database) -> None:
    archive = await archive_of(site)
    async with db.session() as session:
        await session.execute(text("SELECT 1"))
        for replace in (True, False):
            with pytest.raises(BackupError, match=r"Another program is using|other connection"):
                await restore_backup(site, archive, silent, replace=replace)
    assert len((await all_rows(db))["accounts"]) == 3


async def test_a_database_of_a_newer_version_or_a_damaged_one_can_be_replaced(site: Settings, db: Database) -> None:
    archive = await archive_of(site)
    expected = await all_rows(db)
    async with db.engine.begin() as connection:
        await connection.execute(text("UPDATE alembic_version SET version_num = 'made_by_a_newer_version'"))
        await connection.execute(text("CREATE TABLE of_a_newer_version (id VARCHAR(9) REFERENCES accounts (id))"))
    await db.close()
    await restore_backup(site, archive, silent, replace=True)
    assert await rows_of(site.database) == expected

    if (file := db.file()) is not None:
        file.write_bytes(b"damaged" * 1000)
        await restore_backup(site, archive, silent, replace=True)
        assert await rows_of(site.database) == expected


async def test_tables_of_another_program_are_never_deleted(
    db: Database, site: Settings, tmp_path: Path, postgresql: str
) -> None:
    archive = await archive_of(site)
    other = Database(postgresql)
    async with other.engine.begin() as connection:
        await connection.execute(text("CREATE TABLE theirs (id INTEGER)"))
    await other.close()
    with pytest.raises(BackupError, match="tables that are not Lockstep's"):
        await restore_backup(Settings(data_dir=tmp_path, database_url=postgresql), archive, silent, replace=True)


async def test_other_lessons_are_left_alone_and_the_backups_are_put_beside(
    site: Settings, db: Database, new_site: Settings, tmp_path: Path
) -> None:
    file = tmp_path / "site.tar.gz"
    file.write_bytes((await archive_of(site)).getvalue())
    write_course(new_site.lessons_dir)
    (lesson, *_) = new_site.lessons_dir.rglob("lesson.md")
    lesson.write_text("changed")

    restored = await lockstep("restore", str(file), **options(new_site))

    assert lesson.read_text() == "changed"
    (beside,) = new_site.data_dir.glob("lessons-of-backup-*")
    assert f"The backup's are in {beside}" in restored.err
    assert files_in(beside) == files_in(site.lessons_dir)


# --- what fails -------------------------------------------------------------------------------------------------


def _refer_to_nobody(name: str, data: bytes) -> bytes:
    return data.replace(b'"a1000000', b'"ffffffff') if "/recovery_codes/" in name else data


def _too_long(name: str, data: bytes) -> bytes:
    lines = data.splitlines()
    if "/comments/" not in name:
        return data
    row = json.loads(lines[-1])
    row[json.loads(lines[0]).index("state")] = "a state that nobody knows"
    return b"\n".join([*lines[:-1], json.dumps(row).encode(), b""])


def _unknown_column(name: str, data: bytes) -> bytes:
    return data.replace(b'"account_id"', b'"account_id; DROP TABLE runs"', 1) if "/passkeys/" in name else data


def _no_row(name: str, data: bytes) -> bytes:
    return data.splitlines(keepends=True)[0] + b'"text"\n' if "/authenticators/" in name else data


def _no_time(name: str, data: bytes) -> bytes:
    return data.replace(b'{"time":', b'{"text":') if "/authenticators/" in name else data


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (_refer_to_nobody, "refers to|refuses a row of the table recovery_codes"),
        (_too_long, "The database refuses a row of the table comments"),
        (_unknown_column, "the rows of the table passkeys are damaged"),
        (_no_row, "the rows of the table authenticators are damaged"),
        (_no_time, "the rows of the table authenticators are damaged"),
    ],
)
async def test_a_restore_that_fails_midway_changes_nothing(
    site: Settings, db: Database, change: Callable[[str, bytes], bytes], sentence: str
) -> None:
    await add_runs(db, 0, 20)
    archive = changed(await archive_of(site), change)
    await add_runs(db, 20, 1)
    before, secrets = await all_rows(db), files_in(site.data_dir / "secrets")
    await db.close()

    with pytest.raises(BackupError, match=sentence) as refused:
        await restore_backup(site, archive, silent, replace=True)

    assert "\n" not in str(refused.value)
    assert await rows_of(site.database) == before
    assert files_in(site.data_dir / "secrets") == secrets
    assert list(site.data_dir.glob(".restore-*")) == []


async def test_a_restore_that_is_killed_changes_nothing_and_the_next_one_cleans_up(
    site: Settings, db: Database, tmp_path: Path
) -> None:
    await add_runs(db, 0, 4000, events=10)
    file = tmp_path / "site.tar.gz"
    file.write_bytes((await archive_of(site)).getvalue())
    await add_runs(db, 4000, 1)
    before, secrets = await all_rows(db), files_in(site.data_dir / "secrets")
    await db.close()
    process = await cli_process.start("restore", "--replace", str(file), **options(site))
    async for changes in awatch(site.data_dir, step=10):
        if any(".restore-" in path for _, path in changes):
            break
    process.send_signal(signal.SIGSTOP)
    refused = await lockstep("restore", "--replace", str(file), **options(site))
    assert refused.err == f"Another restore is running in {site.data_dir}. Wait for it.\n"
    process.kill()
    await process.wait()
    assert process.returncode == -signal.SIGKILL

    assert await rows_of(site.database) == before
    assert files_in(site.data_dir / "secrets") == secrets
    again = await lockstep("restore", "--replace", str(file), within_s=120, **options(site))
    assert again.status == 0, again.err
    assert list(site.data_dir.glob(".restore-*")) == []


async def test_secrets_that_a_killed_restore_had_replaced_are_kept_by_the_next(site: Settings, db: Database) -> None:
    archive = await archive_of(site)
    await db.close()
    left = site.data_dir / ".restore-abc"
    (left / "secrets before").mkdir(parents=True)
    (left / "secrets before" / "sign-in").write_text("of the old database")

    with alone_in(site.data_dir):
        await restore_backup(site, archive, silent, replace=True)

    assert (site.data_dir / "secrets-before-restore-abc" / "sign-in").read_text() == "of the old database"
    assert list(site.data_dir.glob(".restore-*")) == []


async def test_a_backup_of_a_newer_version_is_refused(site: Settings, db: Database, new_site: Settings) -> None:
    archive = changed(await archive_of(site), lambda _, data: data, revision="newer", version="9.1")

    with pytest.raises(BackupError, match=r"from a newer version of Lockstep \(9.1, at revision newer\)"):
        await restore_backup(new_site, archive, silent)
    assert not Path(new_site.database).exists()  # noqa: ASYNC240


async def test_rows_that_are_missing_are_noticed(site: Settings, db: Database) -> None:
    archive = changed(await archive_of(site), lambda name, data: None if "/outbox/" in name else data)
    with pytest.raises(BackupError, match="it has 0 rows of the table outbox instead of 2"):
        await verify_backup(archive)

    rows = {table.name: 0 for table in TABLES if table.name != "runs"}
    with pytest.raises(BackupError, match="its tables are not those of its revision"):
        await verify_backup(changed(archive, lambda *_: None, rows=rows))


@pytest.mark.parametrize(
    "content",
    [b"", b"text", gzip.compress(b""), gzip.compress(bytes(4096))],
    ids=["empty", "text", "nothing", "zeros"],
)
async def test_what_is_no_backup_is_refused_with_one_sentence(
    new_site: Settings, tmp_path: Path, content: bytes
) -> None:
    file = tmp_path / "x.tar.gz"
    file.write_bytes(content)
    refused = await lockstep("restore", str(file), **options(new_site))
    assert refused.status == 1
    assert refused.err == (
        "This backup cannot be used: it is incomplete, or not a backup of Lockstep. Use another one.\n"
    )


async def test_a_hostile_archive_writes_no_file_anywhere(new_site: Settings, tmp_path: Path) -> None:
    for name, kind in (("../../evil", tarfile.REGTYPE), ("lessons/evil", tarfile.SYMTYPE)):
        file = BytesIO()
        with tarfile.open(fileobj=file, mode="w:gz", format=tarfile.USTAR_FORMAT) as tar:
            info = tarfile.TarInfo(name)
            info.type, info.linkname = kind, "/etc/passwd"
            tar.addfile(info)
        (tmp_path / "x.tar.gz").write_bytes(file.getvalue())
        refused = await lockstep("restore", str(tmp_path / "x.tar.gz"), **options(new_site))
        assert refused.status == 1
        assert len(refused.err.splitlines()) == 1
    assert sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*")) == [  # noqa: ASYNC240
        *("new", "new/data", "x.tar.gz")
    ]


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


async def test_a_newer_or_older_than_supported_database_is_not_backed_up(db: Database, site: Settings) -> None:
    for revision, sentence in (("newer", "from a newer version of Lockstep"), ("add_run_pruning", "db upgrade")):
        async with db.engine.begin() as connection:
            await connection.execute(text("UPDATE alembic_version SET version_num = :revision"), {"revision": revision})
        ended = await lockstep("backup", "-", **options(site))
        assert ended.status == 1
        assert sentence in ended.err
        assert len(ended.err.splitlines()) == 1


# --- on a schedule ----------------------------------------------------------------------------------------------


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
    process = await cli_process.start("backup", "--every", "0.0003", "--keep", "2", str(folder), **options(site))
    assert process.stderr
    try:
        failed = (await asyncio.wait_for(process.stderr.readline(), 60)).decode()
        assert failed.startswith("No backup was made. ")
        db = Database(site.database)
        await fill_every_table(db)
        await db.close()
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


# --- from one database to another -------------------------------------------------------------------------------


async def deferrable_constraints(url: str) -> int:
    db = Database(url)
    try:
        async with db.engine.connect() as connection:
            count = await connection.scalar(text("SELECT count(*) FROM pg_constraint WHERE condeferrable"))
            return int(count or 0)
    finally:
        await db.close()


async def test_a_database_moves_from_sqlite_to_postgresql_and_back(tmp_path: Path, postgresql: str) -> None:
    sqlite, back = (f"sqlite+aiosqlite:///{tmp_path / name / 'lockstep.db'}" for name in ("one", "two"))
    (tmp_path / "one").mkdir()
    db = Database(sqlite)
    await fill_every_table(db)
    await add_runs(db, 0, 1500)
    expected = await all_rows(db)
    await db.close()
    for source, target in ((sqlite, postgresql), (postgresql, back)):
        plain = [url.replace("+aiosqlite", "").replace("+asyncpg", "") for url in (source, target)]
        copied = await lockstep("db", "copy", *plain, data_dir=tmp_path / "data")
        assert copied.status == 0, copied.err
        assert copied.err.startswith(f"Copied {sum(map(len, expected.values())):,} rows of {len(TABLES)} tables.")
        assert await rows_of(target) == expected
    again = await lockstep("db", "copy", sqlite, postgresql, data_dir=tmp_path / "data")
    assert again.status == 1
    assert again.err.startswith("The database is not empty: ")
    assert await deferrable_constraints(postgresql) == 0


async def test_a_text_that_postgresql_cannot_hold_is_named_and_nothing_is_copied(
    tmp_path: Path, postgresql: str
) -> None:
    db = Database(f"sqlite+aiosqlite:///{tmp_path / 'lockstep.db'}")
    await fill_every_table(db)
    async with db.engine.begin() as connection:
        await connection.execute(text("UPDATE comments SET source = 'a' || char(0)"))
    await db.close()
    with pytest.raises(BackupError, match="The database refuses a row of the table comments"):
        await copy_database(db.url, postgresql, silent)
    new = Database(postgresql)
    assert await migrate.current_revision(new) is None
    await new.close()


@pytest.mark.parametrize(
    ("source", "target", "sentence"),
    [
        ("lockstep.db", "sqlite:////x", "A database URL looks like"),
        ("mysql://x", "sqlite:////x", "A database URL looks like"),
        ("sqlite:////x", "sqlite+aiosqlite:////x", "Source and target are the same database."),
        ("sqlite:////nowhere/x", "sqlite:////y", "There is no database /nowhere/x."),
    ],
)
async def test_urls_that_cannot_be_copied_are_refused(tmp_path: Path, source: str, target: str, sentence: str) -> None:
    refused = await lockstep("db", "copy", source, target, data_dir=tmp_path)
    assert refused.status in (1, 2)
    assert refused.err.startswith(sentence)
