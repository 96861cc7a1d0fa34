"""``lockstep serve``, ``db`` and ``doctor`` as an operator meets them."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import signal
import socket
from asyncio.subprocess import Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest

from app.main import create_app
from app.settings import Settings
from app.web.http_protocol import MAX_HEADER_BYTES
from runners.supervisor.server import bind_socket
from tests.factories.browser_client import press_run
from tests.factories.cli_process import finish, lockstep, start
from tests.factories.course import write_course
from tests.factories.process_tree import web_processes
from tests.factories.scripted_supervisor import ScriptedSupervisor
from tests.factories.small_disk import small_disk
from tests.factories.sse_client import live_stream

_PATIENCE_S = 120.0
"""For a start on a busy machine. A process that ends is noticed at once."""


@asynccontextmanager
async def _served(*arguments: str, **settings: Any) -> AsyncIterator[tuple[Process, httpx.AsyncClient]]:
    process = await start("serve", "--port", "0", *arguments, **settings)
    try:
        url = await asyncio.wait_for(_url(process), _PATIENCE_S)
        async with httpx.AsyncClient(base_url=url, headers={"origin": url}, timeout=30) as client:
            await _up(client)
            yield process, client
    finally:
        if process.returncode is None:
            process.terminate()
            await finish(process)


async def _url(process: Process) -> str:
    """The address at which it serves, according to its output."""
    assert process.stderr is not None
    said = ""
    while line := (await process.stderr.readline()).decode():
        said += line
        if url := re.search(r"http://\S+?(?=/ )", line):
            return url[0]
    raise AssertionError(said)


async def _up(client: httpx.AsyncClient) -> None:
    for _ in range(300):
        try:
            assert (await client.get("/healthz")).status_code == 200
            return
        except httpx.TransportError:
            await asyncio.sleep(0.05)
    raise AssertionError("the server did not come up")


@pytest.mark.parametrize("workers", [1, pytest.param(2, marks=pytest.mark.long)])
async def test_it_serves_from_an_empty_folder_and_ends_its_streams_when_it_is_told_to_end(
    supervisor: ScriptedSupervisor, settings: Settings, tmp_path: Path, workers: int
) -> None:
    data = tmp_path / "new" / "data"
    data.mkdir(parents=True, mode=0o755)
    options = {"data_dir": data, "lessons_dir": settings.lessons_dir, "runner_socket": supervisor.socket}
    async with _served("--workers", str(workers), **options) as (process, client):
        assert data.stat().st_mode & 0o777 == 0o700
        assert (await client.get("/readyz")).json()["missing"] == []
        assert (await client.get("/healthz", headers={"host": "evil.test"})).status_code == 400
        run = await press_run(client)
        files = list(data.glob("lockstep.db*"))
        assert len(files) == 3
        assert {file.stat().st_mode & 0o777 for file in files} == {0o600}
        async with live_stream(client, run["urls"]["stream"]) as frames:
            await supervisor.say(await supervisor.run(run["id"]), "x")
            async with asyncio.timeout(10):
                while (await anext(frames)).event != "text":
                    pass
            process.send_signal(signal.SIGINT)
            async with asyncio.timeout(_PATIENCE_S):
                async for _ in frames:  # to its end: a stream that is cut off raises an error
                    pass
        ended = await finish(process, within_s=_PATIENCE_S)
    assert "Traceback" not in ended.err
    assert ("up to 15 seconds late" in ended.err) == (workers == 2)


async def _answer_to_a_head_without_an_end(client: httpx.AsyncClient) -> bytes:
    """How the response begins."""
    reader, writer = await asyncio.open_connection(client.base_url.host, client.base_url.port)
    head = b"GET /healthz HTTP/1.1\r\nhost: localhost\r\na: "
    writer.write(head.ljust(MAX_HEADER_BYTES + 1, b"b"))  # not a byte more: what is left unread resets the connection
    try:
        return (await asyncio.wait_for(reader.read(), 10))[:13]
    finally:
        writer.close()


@pytest.mark.parametrize(
    ("options", "host", "status"),
    [
        ({}, "evil.test", 400),
        ({}, "evil.test:8000", 400),
        ({}, "localhost", 200),
        ({}, "localhost:1234", 200),
        ({}, "[::1]:8000", 200),
        ({"public_url": "https://learn.example.org"}, "learn.example.org", 200),
        ({"public_url": "https://learn.example.org"}, "evil.test", 400),
    ],
)
async def test_on_this_machine_only_it_answers_to_no_other_name(
    settings: Settings, options: dict[str, str], host: str, status: int
) -> None:
    transport = httpx.ASGITransport(create_app(settings.model_copy(update=options), only_local=True))
    async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
        assert (await client.get("/healthz", headers={"host": host})).status_code == status


@pytest.mark.long
async def test_a_killed_server_started_again_has_every_line_once(
    supervisor: ScriptedSupervisor, settings: Settings, tmp_path: Path
) -> None:
    options = {"data_dir": tmp_path / "d", "lessons_dir": settings.lessons_dir, "runner_socket": supervisor.socket}
    async with _served(**options) as (process, client):
        run = await press_run(client)
        scripted = await supervisor.run(run["id"])
        for number in range(50):
            await supervisor.say(scripted, f"{number}\n")
        cookies = dict(client.cookies)
        process.kill()
        await process.wait()
    for number in range(50, 100):
        await supervisor.say(scripted, f"{number}\n")
    async with _served(**options) as (_, client):
        client.cookies.update(cookies)
        await supervisor.finish(scripted)
        await client.get(run["urls"]["stream"])
        events = (await client.get(run["urls"]["events"])).json()["events"]

    assert "".join(event.get("text", "") for event in events) == "".join(f"{number}\n" for number in range(100))


def _workers(process: Process) -> set[psutil.Process]:
    """The web processes that a server has started."""
    assert process.pid
    return set(web_processes(process.pid))


@pytest.mark.long
async def test_a_worker_that_is_killed_is_replaced_and_all_end_with_their_parent(
    supervisor: ScriptedSupervisor, settings: Settings, tmp_path: Path
) -> None:
    options = {"data_dir": tmp_path / "d", "lessons_dir": settings.lessons_dir, "runner_socket": supervisor.socket}
    async with _served("--workers", "2", **options) as (process, client):
        before = _workers(process)
        assert len(before) == 2
        assert await _answer_to_a_head_without_an_end(client) == b"HTTP/1.1 431 "
        before.pop().kill()
        async with asyncio.timeout(_PATIENCE_S):
            while len(_workers(process) - before) != 1:  # noqa: ASYNC110 - the parent says nothing
                await asyncio.sleep(0.05)
        await _up(client)
        process.kill()
        await process.wait()
        async with asyncio.timeout(_PATIENCE_S):
            while await _answers(client):  # noqa: ASYNC110
                await asyncio.sleep(0.1)


async def _answers(client: httpx.AsyncClient) -> bool:
    try:
        await client.get("/healthz")
    except httpx.TransportError:
        return False
    return True


async def test_a_taken_port_is_a_sentence(settings: Settings) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        ended = await lockstep("serve", "--port", str(port), data_dir=settings.data_dir, runner_socket="/nothing")

    assert ended.status == 1
    assert ended.err == f"Cannot listen on 127.0.0.1 port {port}: Address already in use. Choose another with --port.\n"


async def test_an_address_that_does_not_exist_is_a_sentence(settings: Settings) -> None:
    unknown = await lockstep("serve", "--host", "no.such.name.invalid", data_dir=settings.data_dir)
    elsewhere = await lockstep("serve", "--host", "192.0.2.1", data_dir=settings.data_dir)

    assert (unknown.status, elsewhere.status) == (1, 1)
    assert unknown.err.startswith("Cannot listen on no.such.name.invalid: ")
    assert unknown.err.endswith("Choose another with --host, such as 127.0.0.1 or 0.0.0.0.\n")
    assert elsewhere.err.endswith("Choose another with --host.\n")


async def test_a_setting_that_a_runner_refuses_is_one_sentence_and_no_address(tmp_path: Path) -> None:
    ended = await lockstep("serve", "--port", "0", data_dir=tmp_path / "new", devices="nonsense")

    assert ended.status == 2
    assert ended.err == "LOCKSTEP_DEVICES: must be 'auto', 'simulate', 'gpu' or 'tpu'\n"
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("workers", ["1", pytest.param("2", marks=pytest.mark.long)])
async def test_a_data_directory_that_another_server_uses_is_a_sentence(
    socket_path: Path, migrated_file: Path, tmp_path: Path, workers: str
) -> None:
    data, lessons = socket_path.parent, write_course(tmp_path / "lessons")  # a short enough name for a socket
    shutil.copy(migrated_file, data / "lockstep.db")
    socket_of_another, lock = bind_socket(data / "run" / "supervisor.sock")
    socket_of_another.close()
    another = ScriptedSupervisor(data / "run" / "supervisor.sock")
    await another.start()
    ended = await lockstep("serve", "--port", "0", "--workers", workers, data_dir=data, lessons_dir=lessons)
    await another.stop()
    os.close(lock)

    assert ended.status == 2
    assert ended.err.endswith(
        f"Another Lockstep is already using {data}. Choose another directory with LOCKSTEP_DATA_DIR.\n"
    )
    assert "Lockstep is running at" not in ended.err
    assert "Traceback" not in ended.err
    assert "Restarting it" not in ended.err


async def test_a_command_gives_up_at_once_on_a_runner_that_refuses_its_settings(tmp_path: Path) -> None:
    ended = await lockstep("run", "-", typed=b"1", data_dir=tmp_path, max_sessions="abc")

    assert ended.status == 1
    assert ended.err.count("LOCKSTEP_MAX_SESSIONS: ") == 1
    assert ended.err.endswith("Cannot start a runner here because its settings are not valid.\n")


async def test_a_bad_setting_is_a_sentence_for_every_command(tmp_path: Path) -> None:
    sentence = "LOCKSTEP_LOG_FORMAT cannot be 'xml': it must be 'console' or 'json'.\n"
    for command in (["serve"], ["db", "upgrade"], ["run", "-"]):
        ended = await lockstep(*command, data_dir=tmp_path, log_format="xml")
        assert (ended.status, ended.err) == (2, sentence)
    report = await lockstep("doctor", data_dir=tmp_path, log_format="xml")
    assert (report.status, report.out) == (2, f"Invalid settings:\n{sentence}")


async def test_a_misspelled_setting_does_not_start_an_empty_site(tmp_path: Path) -> None:
    ended = await lockstep("serve", "--port", "0", data_dir=tmp_path / "new", databse_url="x", service_host="10.0.0.1")

    assert (ended.status, ended.err) == (
        2,
        "LOCKSTEP_DATABSE_URL is not a setting. Did you mean LOCKSTEP_DATABASE_URL?\n",
    )
    assert not (tmp_path / "new").exists()


@pytest.mark.long
async def test_web_processes_that_cannot_start_end_it_with_a_status(settings: Settings) -> None:
    (settings.data_dir / "secrets" / "sign-in").mkdir(parents=True)
    options: dict[str, Any] = {"data_dir": settings.data_dir, "runner_socket": settings.data_dir / "none"}
    process = await start("serve", "--port", "0", "--workers", "2", **options)
    ended = await finish(process, within_s=_PATIENCE_S)
    assert (ended.status, "Is a directory" in ended.err) == (3, True)


async def test_a_data_directory_that_cannot_be_made_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    ended = await lockstep("serve", data_dir=tmp_path / "file" / "data")

    assert ended.status == 1
    assert ended.err.startswith("The data directory ")
    assert ended.err.endswith(". Set LOCKSTEP_DATA_DIR to another directory.\n")
    assert "Traceback" not in ended.err


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
async def test_a_folder_of_another_user_is_a_sentence_with_the_command_that_gives_it_back(tmp_path: Path) -> None:
    data = tmp_path / "data"
    (data / "run").mkdir(parents=True)
    for folder, what in ((data / "run", "folder of the runner's socket"), (data, "data directory")):
        os.chown(folder, 1234, -1)
        ended = await lockstep("serve", "--port", "0", data_dir=data, database_url=f"sqlite+aiosqlite:///{tmp_path}/db")
        assert ended.status == 1
        assert ended.err.splitlines()[-1] == (
            f"The {what} {folder} cannot be used: it belongs to user 1234, but Lockstep runs as user 0. "
            f"Run 'sudo chown -R 0 {folder}', or set LOCKSTEP_DATA_DIR to another directory."
        )


async def test_a_database_that_is_away_is_a_sentence(tmp_path: Path) -> None:
    url = "postgresql+asyncpg://x:secret@127.0.0.1:1/x"
    ended = await lockstep("db", "upgrade", data_dir=tmp_path, database_url=url)

    assert ended.status == 1
    assert ended.err.startswith("The database postgresql+asyncpg://x:***@127.0.0.1:1/x cannot be used: ")
    assert ended.err.endswith(". Start PostgreSQL, or change LOCKSTEP_DATABASE_URL.\n")
    assert "Traceback" not in ended.err


async def test_a_full_and_a_read_only_disk_are_sentences_that_name_them(tmp_path: Path, migrated_file: Path) -> None:
    shutil.copy(migrated_file, tmp_path / "lockstep.db")
    with small_disk(1) as disk:
        disk.fill()
        full = await lockstep("db", "upgrade", data_dir=disk.path)
        backup = await lockstep("backup", str(disk.path / "b.tar.gz"), data_dir=tmp_path)
        disk.free()
        disk.make_read_only()
        read_only = await lockstep("db", "upgrade", data_dir=disk.path)

    file = disk.path / "lockstep.db"
    assert (full.status, full.err) == (
        1,
        f"The database {file} cannot be used: database or disk is full. Make room on its disk.\n",
    )
    assert (backup.status, backup.err) == (1, f"Cannot write {disk.path / 'b.tar.gz'}: No space left on device.\n")
    assert (read_only.status, read_only.err) == (
        1,
        f"The database {file} cannot be used: attempt to write a readonly database. "
        f"User {os.geteuid()} has to be able to write to {disk.path}.\n",
    )


async def test_a_database_error_is_shown_in_its_own_words(tmp_path: Path) -> None:
    (tmp_path / "lockstep.db").write_text("no database at all" * 100)

    ended = await lockstep("db", "upgrade", data_dir=tmp_path)

    assert ended.err == f"The database {tmp_path / 'lockstep.db'} cannot be used: file is not a database.\n"
