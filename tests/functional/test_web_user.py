"""Root starts ``lockstep serve``: the web application has a user of its own, and only its own files."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import httpx
import psutil
import pytest
import typer

from app.accounts.signing import load_secrets
from app.cli.database_check import check_configured_database
from app.cli.local_runner import make_private_directory
from app.cli.web_process import give_files_to_web_user
from app.db import Database
from app.settings import Settings
from runners.wire.client import RunnerClient
from runners.wire.users import WEB_USER
from tests.factories import cli_process
from tests.factories.accounts import store_account
from tests.factories.cli_process import LOCKSTEP, lockstep
from tests.factories.course import write_course
from tests.factories.real_supervisor import SessionClient
from tests.factories.serve_command import ServeCommand

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root has root to give up")

ATTEMPTS = """
import os, signal, sys
from pathlib import Path

data, lessons, serve, supervisor = Path(sys.argv[1]), Path(sys.argv[2]), *sys.argv[3:]
attempts = {
    "read a file of root": lambda: open("/etc/shadow").read(),
    "change a file of root": lambda: open("/etc/hostname", "a"),
    "change a lesson": lambda: open(next(lessons.rglob("lesson.md")), "a"),
    "add a lesson": lambda: (lessons / "another").mkdir(),
    "replace the runner's folder": lambda: (data / "run").rename(data / "away"),
    "replace the data sets": lambda: (data / "datasets").rename(data / "away"),
    "remove the runner's socket": lambda: (data / "run" / "supervisor.sock").unlink(),
    "listen in the runner's place": lambda: (data / "run" / "another.sock").touch(),
    "end what root has started": lambda: os.kill(int(serve), signal.SIGTERM),
    "end the runner": lambda: os.kill(int(supervisor), signal.SIGTERM),
    "read the memory of root": lambda: open(f"/proc/{serve}/mem", "rb").read(1),
    "read the environment of root": lambda: open(f"/proc/{serve}/environ").read(),
    "become root": lambda: os.setuid(0),
    "write its own database": lambda: open(data / "lockstep.db", "ab"),
}
for name, attempt in attempts.items():
    try:
        attempt()
        print(name)
    except OSError:
        pass
"""


@pytest.fixture(scope="module")
def served() -> Iterator[tuple[ServeCommand, str]]:
    """A server of root, its folder below one that only root may enter, and its address."""
    service = ServeCommand(warm_kernels=0)
    service.folder.chmod(0o700)
    try:
        yield service, service.start()
        service.stop()
    finally:
        service.remove()


def test_the_web_application_has_no_rights_but_on_its_own_files(served: tuple[ServeCommand, str]) -> None:
    service, _ = served
    (supervisor,), web = service.supervisor(), service.web()
    rights = ("--setuid", str(WEB_USER), "--setgid", str(WEB_USER))
    enter = ("nsenter", f"--target={web.pid}", "--mount", *rights, sys.executable, "-c", ATTEMPTS)
    arguments = (service.folder / "data", service.folder / "lessons", supervisor.ppid(), supervisor.pid)

    done = subprocess.run([*enter, *map(str, arguments)], capture_output=True, text=True, timeout=60)

    assert (done.stdout, done.stderr) == ("write its own database\n", "")
    status = dict(line.split(":\t", 1) for line in Path(f"/proc/{web.pid}/status").read_text().splitlines())
    assert {name: status[name] for name in ("Uid", "Groups", "CapEff", "CapPrm", "NoNewPrivs", "Seccomp")} == {
        "Uid": "\t".join([str(WEB_USER)] * 4),
        "Groups": " ",
        "CapEff": "0" * 16,
        "CapPrm": "0" * 16,
        "NoNewPrivs": "1",
        "Seccomp": "2",
    }


def test_it_reaches_lessons_database_and_runner(served: tuple[ServeCommand, str]) -> None:
    _, url = served
    with httpx.Client(base_url=url, headers={"origin": url}, follow_redirects=True, timeout=30) as client:
        assert client.get("/").status_code == 200
        assert client.get("/readyz").json() == {"status": "ready", "missing": []}


def test_root_can_still_use_the_database(served: tuple[ServeCommand, str]) -> None:
    service, _ = served
    assert service.select("SELECT count(*) FROM alembic_version") == [(1,)]


async def test_sessions_can_read_the_data_sets(served: tuple[ServeCommand, str]) -> None:
    service, _ = served
    async with RunnerClient(service.folder / "data" / "run" / "supervisor.sock") as client:
        learner = SessionClient(client, topology="cpu")
        told = await learner.run("import os\nprint(type(os.listdir('/opt/lockstep/datasets')))")
        await learner.leave()

    assert (told.outcome, told.stdout) == ("ok", "<class 'list'>\n"), told.events[-2:]


def test_a_second_server_that_cannot_start_takes_no_folder_from_the_first(served: tuple[ServeCommand, str]) -> None:
    service, url = served
    data = service.folder / "data"
    before = {folder: (folder.stat().st_mode, folder.stat().st_gid) for folder in (data, data / "run")}
    environment = os.environ | {"LOCKSTEP_DATA_DIR": str(data)}

    done = subprocess.run(
        [*LOCKSTEP, "serve", "--port", str(httpx.URL(url).port)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
    )

    assert "Choose another with --port" in done.stderr
    assert {folder: (folder.stat().st_mode, folder.stat().st_gid) for folder in before} == before


def run_as_web_user(folders: list[Path], code: str) -> tuple[str, str]:
    """What Python code writes to standard output and standard error as the web application's user."""
    run_as = ["runners.sandbox.run_as", str(WEB_USER), *map(str, folders), "--", sys.executable, "-c", code]
    done = subprocess.run([sys.executable, "-P", "-m", *run_as], capture_output=True, text=True, timeout=60)
    return done.stdout, done.stderr


def test_a_folder_for_the_socket_elsewhere_can_be_used(tmp_path: Path) -> None:
    """A path in the data directory may be too long for a socket."""
    folder = tmp_path / "socket"
    make_private_directory(folder, WEB_USER)
    (folder / "supervisor.sock").touch()
    assert run_as_web_user([folder], f"import os; print(os.getuid(), os.listdir({str(folder)!r}))") == (
        f"{WEB_USER} ['supervisor.sock']\n",
        "",
    )


def test_a_missing_folder_of_lessons_is_left_to_the_application_to_report(tmp_path: Path) -> None:
    assert run_as_web_user([tmp_path / "lessons"], "print('started')") == ("started\n", "")


BROKEN_LIBSECCOMP = """
import sys
import pyseccomp
from runners.sandbox import run_as

def add_rule(self, action, name):
    raise OSError(22, "invalid argument")

pyseccomp.SyscallFilter.add_rule = add_rule
run_as.main(sys.argv[1:])
"""


def test_an_application_whose_filter_lacks_a_call_does_not_start() -> None:
    command = (str(WEB_USER), "--", sys.executable, "-c", "print('started')")
    done = subprocess.run(
        [sys.executable, "-c", BROKEN_LIBSECCOMP, *command], capture_output=True, text=True, timeout=60
    )

    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("The web application cannot start: libseccomp cannot refuse "), done.stderr


@pytest.mark.long
def test_it_ends_with_what_has_started_it_even_while_the_runner_starts() -> None:
    service = ServeCommand(warm_kernels=0)
    try:
        service.start(runs=False)
        (supervisor,), web = service.supervisor(), service.web()
        psutil.Process(supervisor.ppid()).send_signal(signal.SIGKILL)

        psutil.wait_procs([web], timeout=20)

        assert not web.is_running()
        assert service.left_behind() == []
    finally:
        service.remove()


async def test_lessons_that_only_root_may_read_are_named(tmp_path: Path) -> None:
    lessons = write_course(tmp_path / "lessons")
    lessons.chmod(0o700)

    ended = await lockstep("serve", "--port", "0", data_dir=tmp_path / "data", lessons_dir=lessons)

    assert ended.status == 1
    refusal = f"The web application's user {WEB_USER} cannot read {lessons}. Make it readable for every user.\n"
    assert refusal in ended.err


def owner(path: Path) -> int:
    return path.lstat().st_uid


def test_files_of_an_earlier_version_are_given_away_and_those_of_others_are_not(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = tmp_path / "data"
    (data / "secrets").mkdir(parents=True)
    (data / "run").mkdir()
    mine = [data / "lockstep.db", data / "lockstep.db-wal", data / "secrets" / "sign-in"]
    outside, linked = tmp_path / "shadow", tmp_path / "passwd"
    for file in (*mine, outside, linked, data / "notes"):
        file.touch(mode=0o600)
    (data / "lockstep.db-shm").symlink_to(outside)
    (data / "lockstep.db-journal").hardlink_to(linked)

    with pytest.raises(typer.Exit):
        give_files_to_web_user(Settings(data_dir=data))
    assert "lockstep.db-shm" in capsys.readouterr().err
    (data / "lockstep.db-shm").unlink()
    assert give_files_to_web_user(Settings(data_dir=data))
    assert {owner(path) for path in (*mine, data / "secrets")} == {WEB_USER}
    assert {owner(path) for path in (data, data / "run", data / "datasets", data / "notes", outside, linked)} == {0}
    assert (data.stat().st_mode & 0o7777, data.stat().st_gid) == (0o1770, WEB_USER)


def test_a_database_elsewhere_keeps_root_and_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = tmp_path / "data"
    data.mkdir()

    assert not give_files_to_web_user(
        Settings(data_dir=data, database_url=f"sqlite+aiosqlite:///{tmp_path}/elsewhere.db")
    )

    assert capsys.readouterr().err == (
        f"The web application keeps root, because {tmp_path}/elsewhere.db is not in {data}.\n"
    )
    assert owner(data) == 0


@pytest.mark.parametrize(
    "command", [("db", "upgrade"), ("secret", "rotate"), pytest.param(("user", "list"), marks=pytest.mark.long)]
)
async def test_commands_of_root_follow_no_link_of_the_web_application(tmp_path: Path, command: tuple[str, ...]) -> None:
    data, outside = tmp_path / "data", tmp_path / "outside"
    for folder in (data, outside):
        folder.mkdir(mode=0o700)
    assert give_files_to_web_user(Settings(data_dir=data))
    database = outside / "another.db"
    database.touch(mode=0o600)
    (data / "lockstep.db").symlink_to(database)
    (data / "secrets").symlink_to(outside)

    ended = await lockstep(*command, within_s=120, data_dir=data)

    assert ended.status != 0
    assert list(outside.iterdir()) == [database]
    assert database.read_bytes() == b""
    checked = await check_configured_database(Settings(data_dir=data))
    assert checked.detail == "none yet: 'lockstep serve' creates it"


async def test_commands_of_root_change_the_web_applications_database_and_secrets(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir(mode=0o700)
    assert give_files_to_web_user(Settings(data_dir=data))
    for command in (("db", "upgrade"), ("secret", "rotate"), ("user", "create", "a@example.org", "--password-stdin")):
        ended = await lockstep(*command, typed=b"correct horse battery 99x\n", within_s=120, data_dir=data)
        assert ended.status == 0, ended.err

    made = (data / "lockstep.db", data / "secrets", data / "secrets" / "sign-in")
    assert {owner(path) for path in made} == {WEB_USER}


async def test_a_secret_file_that_only_root_can_read_reaches_its_commands(tmp_path: Path) -> None:
    data, secret = tmp_path / "data", tmp_path / "database"
    data.mkdir(mode=0o700)
    assert give_files_to_web_user(Settings(data_dir=data))
    secret.write_text(f"sqlite+aiosqlite:///{data}/lockstep.db\n")
    secret.chmod(0o600)

    process = await cli_process.start("db", "upgrade", data_dir=data, database_url_file=secret)
    ended = await cli_process.finish(process, within_s=120)

    assert ended.status == 0, ended.err
    assert owner(data / "lockstep.db") == WEB_USER


def test_a_command_of_the_web_user_is_closed_to_other_processes_of_that_user(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    waits = tmp_path / "waits.py"
    waits.write_text("import os, time\nprint(os.geteuid(), flush=True)\ntime.sleep(60)\n")
    runs = (sys.executable, "-m", "runners.sandbox.run_as", str(WEB_USER), str(tmp_path), "--", "-m", "waits")
    another = ("setpriv", f"--reuid={WEB_USER}", f"--regid={WEB_USER}", "--clear-groups", "head", "-c1")
    environment = os.environ | {"PYTHONPATH": str(tmp_path)}
    with subprocess.Popen(runs, stdout=subprocess.PIPE, env=environment, text=True) as process:
        assert process.stdout
        try:
            assert process.stdout.readline() == f"{WEB_USER}\n"
            for name in ("environ", "mem", "fd/1"):
                read = subprocess.run([*another, f"/proc/{process.pid}/{name}"], capture_output=True, text=True)
                assert "Permission denied" in read.stderr
        finally:
            process.kill()


def test_a_link_that_another_user_has_made_is_no_folder_for_a_socket(tmp_path: Path) -> None:
    folder, link = tmp_path / "of root", tmp_path / "link"
    folder.mkdir(mode=0o755)
    link.symlink_to(folder)
    os.lchown(link, WEB_USER, WEB_USER)

    with pytest.raises(PermissionError, match=f"belongs to user {WEB_USER}"):
        make_private_directory(link, WEB_USER)

    assert (folder.stat().st_mode & 0o7777, folder.stat().st_gid) == (0o755, 0)
    os.lchown(link, 0, 0)
    make_private_directory(link)
    assert folder.stat().st_mode & 0o7777 == 0o700


@pytest.mark.long
def test_one_that_does_not_end_is_killed() -> None:
    service = ServeCommand(warm_kernels=0)
    try:
        service.start(runs=False)
        web = service.web()
        web.suspend()

        service.stop()

        assert not web.is_running()
    finally:
        service.remove()


@pytest.fixture
async def given_away(tmp_path: Path, migrated_file: Path) -> Path:
    """A data directory whose database, with one account, and secrets are the web application's."""
    data = tmp_path / "data"
    data.mkdir(mode=0o700)
    shutil.copy(migrated_file, data / "lockstep.db")
    db = Database(f"sqlite+aiosqlite:///{data / 'lockstep.db'}")
    await store_account(db, email="ada@example.org")
    await db.close()
    load_secrets(data / "secrets" / "sign-in")
    assert give_files_to_web_user(Settings(data_dir=data))
    return data


@pytest.mark.long
async def test_root_backs_up_and_restores_the_web_applications_files_as_that_user(
    tmp_path: Path, given_away: Path
) -> None:
    data, lessons, away = given_away, write_course(tmp_path / "lessons"), tmp_path / "of root"
    away.mkdir(mode=0o700)
    inside, outside = data / "backups" / "site.tar.gz", away / "site.tar.gz"

    async def run(*command: str) -> str:
        ended = await lockstep(*command, within_s=120, data_dir=data, lessons_dir=lessons)
        assert ended.status == 0, ended.err
        return ended.err

    secret = (data / "secrets" / "sign-in").read_bytes()
    await run("backup")
    await run("backup", str(inside))
    assert "and read all of it back" in await run("backup", str(outside))
    assert {owner(path) for path in (inside.parent, *inside.parent.iterdir())} == {WEB_USER}
    assert owner(outside) == 0
    assert outside.stat().st_mode & 0o777 == 0o600

    (data / "secrets" / "sign-in").write_bytes(b"a later one")
    with closing(sqlite3.connect(data / "lockstep.db")) as connection, connection:
        connection.execute("UPDATE accounts SET email = 'bob@example.org'")
    await run("restore", "--replace", str(outside))

    assert {owner(path) for path in (data / "lockstep.db", data / "secrets", data / "secrets" / "sign-in")} == {
        WEB_USER
    }
    assert (data / "secrets" / "sign-in").read_bytes() == secret
    with closing(sqlite3.connect(data / "lockstep.db")) as connection:
        assert connection.execute("SELECT email FROM accounts").fetchall() == [("ada@example.org",)]


async def test_root_writes_no_backup_where_a_link_of_the_web_application_leads(
    tmp_path: Path, given_away: Path
) -> None:
    data, outside = given_away, tmp_path / "outside"
    outside.mkdir(mode=0o700)
    (data / "backups").symlink_to(outside)
    (data / ".site.tar.gz.partial").symlink_to(outside / "another")
    os.lchown(data / ".site.tar.gz.partial", WEB_USER, WEB_USER)

    for target in ([], [str(data / "site.tar.gz")]):
        assert (await lockstep("backup", *target, within_s=120, data_dir=data)).status != 0

    assert list(outside.iterdir()) == []
