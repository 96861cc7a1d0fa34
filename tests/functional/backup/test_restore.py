"""``lockstep restore``: every row, secret and lesson comes back, on both databases, or nothing changes."""

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
import tempfile
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

from app import migrate
from app.accounts.signing import load_secrets
from app.backup.archive import BackupError
from app.backup.service import restore_backup
from app.backup.site_files import RestoredFiles, alone_in
from app.db import Database
from app.settings import Settings
from app.tables import TABLES
from tests.factories import cli_process
from tests.factories.backups import (
    archive_of,
    changed,
    deferrable_constraints,
    files_in,
    on_both_databases,
    options,
    rows_of,
    silent,
)
from tests.factories.cli_process import lockstep
from tests.factories.course import write_course
from tests.factories.databases import BACKENDS, mainly_on
from tests.factories.filled_database import add_runs, all_rows

ROOT = Path(__file__).parents[3]
UID = 62_700 + os.getpid() % 90


@on_both_databases
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


async def test_a_backup_of_sqlite_restores_to_postgresql(
    site: Settings, db: Database, tmp_path: Path, postgresql: str
) -> None:
    target = Settings(data_dir=tmp_path / "new", lessons_dir=tmp_path / "new lessons", database_url=postgresql)

    await restore_backup(target, await archive_of(site), silent)

    assert await rows_of(postgresql) == await all_rows(db)
    assert await deferrable_constraints(postgresql) == 0


@on_both_databases
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


@on_both_databases
async def test_tables_that_are_not_lockstep_s_are_left_out(db: Database, site: Settings, new_site: Settings) -> None:
    async with db.engine.begin() as connection:
        await connection.execute(text("CREATE TABLE of_the_operator (id INTEGER)"))

    await restore_backup(new_site, await archive_of(site), silent)

    assert await rows_of(new_site.database) == await all_rows(db)


async def test_there_is_no_column_that_a_sequence_fills() -> None:
    """A restored sequence would have to continue after the largest number: write that when one appears."""
    assert [table.name for table in TABLES if table.autoincrement_column is not None] == []


@pytest.mark.long
@pytest.mark.parametrize("database_kind", ["postgresql"], indirect=True)
async def test_the_documented_recipe_restores_into_a_new_installation(
    site: Settings, tmp_path: Path, postgresql: str
) -> None:
    """As it stands on the page, but that the commands for the web container run here."""
    page = (ROOT / "docs" / "operate" / "backup.md").read_text()
    back_up, _, _, restore, replace, *_ = re.findall(r"```sh\n(.*?)```", page, re.DOTALL)
    expected = await rows_of(site.database)
    new = tmp_path / "new"
    new.mkdir()

    await follow(back_up, tmp_path, site.data_dir, site.database)
    await follow(restore, tmp_path, new, postgresql)

    assert await rows_of(postgresql) == expected
    assert files_in(new / "secrets") == files_in(site.data_dir / "secrets")

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


@on_both_databases
async def test_the_secrets_are_replaced_only_once_nothing_else_can_fail(
    site: Settings, db: Database, new_site: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive, steps = await archive_of(site), list[str]()
    upgrade, put_in_place = migrate.upgrade_connection, RestoredFiles.put_secrets_in_place

    def noted_upgrade(*arguments: Any) -> None:
        steps.append("upgrade" if len(arguments) == 1 else "create")
        upgrade(*arguments)

    def noted_secrets(files: RestoredFiles) -> None:
        steps.append("secrets")
        put_in_place(files)

    monkeypatch.setattr(migrate, "upgrade_connection", noted_upgrade)
    monkeypatch.setattr(RestoredFiles, "put_secrets_in_place", noted_secrets)
    await restore_backup(new_site, archive, silent)
    assert steps[-2:] == ["upgrade", "secrets"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files to another user")
async def test_root_restores_for_the_user_whose_folder_it_is(site: Settings, db: Database, tmp_path: Path) -> None:
    file = tmp_path / "site.tar.gz"
    file.write_bytes((await archive_of(site)).getvalue())
    with tempfile.TemporaryDirectory(prefix="lockstep-") as folder:  # pytest's own folders are root's
        data = Path(folder)
        os.chown(data, UID, UID)
        restored = await lockstep("restore", str(file), data_dir=data, lessons_dir=site.lessons_dir)
        assert restored.status == 0, restored.err
        assert {"lockstep.db", "secrets"} <= owners_in(data).keys()
        assert set(owners_in(data).values()) == {(UID, UID)}


def owners_in(folder: Path) -> dict[str, tuple[int, int]]:
    return {path.name: (path.stat().st_uid, path.stat().st_gid) for path in folder.rglob("*")}


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


@on_both_databases
async def test_a_database_that_a_server_has_open_is_left_alone(site: Settings, db: Database) -> None:
    archive = await archive_of(site)
    async with db.session() as session:
        await session.execute(text("SELECT 1"))
        for replace in (True, False):
            with pytest.raises(BackupError, match=r"Another program is using|other connection"):
                await restore_backup(site, archive, silent, replace=replace)
    assert len((await all_rows(db))["accounts"]) == 3


@on_both_databases
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
    ("database_kind", "change", "sentence"),
    [
        *((kind, _refer_to_nobody, "refers to|refuses a row of the table recovery_codes") for kind in BACKENDS),
        *((kind, _too_long, "The database refuses a row of the table comments") for kind in BACKENDS),
        ("sqlite", _unknown_column, "the rows of the table passkeys are damaged"),
        pytest.param("sqlite", _no_row, "the rows of the table authenticators are damaged", marks=pytest.mark.long),
        pytest.param("sqlite", _no_time, "the rows of the table authenticators are damaged", marks=pytest.mark.long),
    ],
    indirect=["database_kind"],
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


_STOP_BEFORE_COMMIT = """
import signal, sys
from app.backup import service
from app.cli.main import app

async def stop(*_):
    print("written", file=sys.stderr, flush=True)
    signal.raise_signal(signal.SIGSTOP)

service._finish = stop
app()
"""
"""``lockstep``, but a restore stops itself when it has written every row, before the last checks."""


@mainly_on("postgresql", "database_kind")
async def test_a_restore_that_is_killed_changes_nothing_and_the_next_one_cleans_up(
    site: Settings, db: Database, tmp_path: Path
) -> None:
    file = tmp_path / "site.tar.gz"
    file.write_bytes((await archive_of(site)).getvalue())
    await add_runs(db, 0, 1)
    before, secrets = await all_rows(db), files_in(site.data_dir / "secrets")
    await db.close()
    program = (sys.executable, "-c", _STOP_BEFORE_COMMIT)
    process = await cli_process.start("restore", "--replace", str(file), program=program, **options(site))
    assert process.stderr
    async with asyncio.timeout(60):
        while (line := await process.stderr.readline()) != b"written\n":
            assert line.startswith(b"Restored "), "what takes long reports its progress"
    assert len(list(site.data_dir.glob(".restore-*"))) >= 1
    refused = await lockstep("restore", "--replace", str(file), **options(site))
    assert refused.err == f"Another restore is running in {site.data_dir}. Wait for it.\n"
    process.kill()
    await process.wait()
    assert process.returncode == -signal.SIGKILL

    assert await rows_of(site.database) == before
    assert files_in(site.data_dir / "secrets") == secrets
    again = await lockstep("restore", "--replace", str(file), **options(site))
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
