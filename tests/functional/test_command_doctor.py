"""``lockstep doctor``, and ``lockstep serve`` for untrusted users: with a real runner and a scripted one."""

from __future__ import annotations

import json
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from app.settings import Settings
from app.version import described_version
from runners.wire.protocol import Health, Refusal
from tests.factories.cli_process import finish, lockstep, start
from tests.factories.course import LESSON
from tests.factories.scripted_supervisor import ScriptedSupervisor
from tests.factories.unsandboxed_server import LEAST, served_unsandboxed, without_bubblewrap

UID = 62_900 + os.getpid() % 90
SENTENCE = "I accept that untrusted users can harm this machine"


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder that the unprivileged user owns."""
    with tempfile.TemporaryDirectory(prefix="ls-") as folder:
        if os.geteuid() == 0:
            os.chown(folder, UID, UID)
        yield Path(folder)


# --- the doctor -------------------------------------------------------------------------------------------------


async def test_the_doctor_asks_the_runner_that_is_there(
    supervisor: ScriptedSupervisor, settings: Settings, tmp_path: Path
) -> None:
    options: dict[str, Any] = {"lessons_dir": settings.lessons_dir, "runner_socket": supervisor.socket}

    well = await lockstep("doctor", data_dir=settings.data_dir, **options)
    as_json = json.loads((await lockstep("doctor", "--json", data_dir=settings.data_dir, **options)).out)
    ill = await lockstep("doctor", data_dir=tmp_path, lessons_dir=tmp_path, runner_socket=supervisor.socket)

    assert well.status == 0, well.out
    assert re.search(rf"^ +version +{re.escape(described_version())}$", well.out, re.MULTILINE)
    assert as_json["settings"]["version"] == described_version()
    assert re.search(r"^ +on +seccomp +on$", well.out, re.MULTILINE)
    assert re.search(r"^ +ok +kernel +Linux 6$", well.out, re.MULTILINE)
    assert (as_json["status"], as_json["safe"]) == (0, True)
    assert "These are the limits of the runner that is already running at" in well.out
    assert ill.status == 1
    assert ill.out.endswith("Missing: lessons.\n")


async def test_the_doctor_says_which_settings_of_this_shell_are_not_in_use(
    settings: Settings, socket_path: Path
) -> None:
    data = socket_path.parent
    supervisor = ScriptedSupervisor(data / "run" / "supervisor.sock")
    supervisor.socket.parent.mkdir()
    there = {"LOCKSTEP_DEVICES": "simulate", "LOCKSTEP_MAX_SESSIONS": "4", "LOCKSTEP_OF_LATER": "1"}
    supervisor.health = supervisor.health.model_copy(update={"settings": there})
    await supervisor.start()
    options: dict[str, Any] = {"data_dir": data, "lessons_dir": settings.lessons_dir, "max_sessions": 4}
    told = await lockstep("doctor", "--json", **options)
    text = await lockstep("doctor", **options)
    await supervisor.stop()

    assert json.loads(told.out)["differing_settings"] == ["LOCKSTEP_DEVICES=simulate (here auto)"]
    assert "It has LOCKSTEP_DEVICES=simulate (here auto)." in " ".join(text.out.split())


async def test_the_doctor_tells_of_the_machine_where_no_runner_answers(settings: Settings, tmp_path: Path) -> None:
    ended = await lockstep("doctor", data_dir=tmp_path, lessons_dir=settings.lessons_dir, runner_socket="/nothing")

    assert ended.status == 1
    assert "The runner at /nothing is not responding." in ended.out
    assert re.search(r"^ +(ok|no) +user namespaces ", ended.out, re.MULTILINE)
    assert "Unknown: no sandbox was created." in ended.out


async def test_the_doctor_names_a_setting_that_cannot_be_used_and_ends_with_2(
    settings: Settings, tmp_path: Path
) -> None:
    options: dict[str, Any] = {"data_dir": tmp_path, "lessons_dir": settings.lessons_dir, "limits__memory_mb": "lots"}
    text = await lockstep("doctor", **options)
    told = await lockstep("doctor", "--json", **options)
    sentence = "LOCKSTEP_LIMITS__MEMORY_MB: must be a whole number from 256 to 1,048,576 (MiB)"

    assert (text.status, told.status) == (2, 2)
    assert text.out == f"Invalid settings:\n{sentence}\n"
    assert json.loads(told.out)["unusable_settings"] == [sentence]


@pytest.mark.long
async def test_the_doctor_starts_its_own_runner_and_exits_with_3_if_a_layer_is_missing(
    place: Path, lessons: Path
) -> None:
    before = without_bubblewrap(UID, place)
    command = await start("doctor", before=before, data_dir=place / "data", lessons_dir=lessons, **LEAST)
    ended = await finish(command, within_s=120)

    assert ended.status == 3, ended.out
    assert re.search(r"^ +missing outer sandbox +none: bubblewrap was not found", ended.out, re.MULTILINE), ended.err
    assert re.search(r"^ +on +seccomp ", ended.out, re.MULTILINE)
    assert "apt-get install bubblewrap" in ended.out
    assert max(map(len, ended.out.splitlines()[6:])) <= 80


# --- serve ------------------------------------------------------------------------------------------------------


async def test_a_runner_that_does_not_know_of_untrusted_users_is_not_shown_to_them(
    supervisor: ScriptedSupervisor, settings: Settings
) -> None:
    options: dict[str, Any] = {"data_dir": settings.data_dir, "runner_socket": supervisor.socket}
    ended = await lockstep("serve", "--host", "0.0.0.0", "--port", "0", **options)

    assert ended.status == 2
    assert "start it with --untrusted-users or LOCKSTEP_UNTRUSTED_USERS=1" in ended.err


async def test_a_wrong_sentence_ends_the_server_and_names_the_right_one(tmp_path: Path) -> None:
    ended = await lockstep("serve", "--port", "0", data_dir=tmp_path, unsafe_runner="yes")

    assert ended.status == 2
    assert f'LOCKSTEP_UNSAFE_RUNNER: must be empty, or exactly "{SENTENCE}"' in ended.err


async def test_ready_tells_that_runs_are_refused_and_a_run_is_and_neither_says_why(
    client: httpx.AsyncClient, supervisor: ScriptedSupervisor
) -> None:
    supervisor.health = Health(status="ready", untrusted_users=True, refuses="Missing: outer sandbox.")
    supervisor.refuse = (403, Refusal(code="unsafe", message="Missing: outer sandbox."))

    ready = await client.get("/readyz")
    run = await client.post("/runs", json={"lesson": LESSON, "cell": "hello", "code": "print(1)"})

    assert (ready.status_code, ready.json()["refuses"]) == (200, ["runs"])
    assert (run.status_code, run.json()["error"]["code"]) == (403, "execution_disabled")
    assert "outer sandbox" not in ready.text + run.text


@pytest.fixture
def lessons(settings: Settings, place: Path) -> Path:
    """The small course, readable by the unprivileged user."""
    shutil.copytree(settings.lessons_dir, place / "lessons")
    return place / "lessons"


@pytest.mark.long
async def test_untrusted_users_read_pages_and_run_nothing_without_the_outer_sandbox(place: Path, lessons: Path) -> None:
    async with served_unsandboxed(UID, place, lessons) as (client, process, said):
        page = await client.get("/", follow_redirects=True)
        body = {"lesson": LESSON, "cell": "hello", "code": "print(1)"}
        run = await client.post("/runs", json=body, headers={"accept-language": "en"})
        ready = await client.get("/readyz")
        process.terminate()
        ended = await finish(process)

    assert page.status_code == 200
    assert (run.status_code, run.json()["error"]["code"]) == (403, "execution_disabled")
    assert ready.json()["refuses"] == ["runs"]
    assert "The server listens on every address of this machine" in ended.err
    log = said + ended.err + ended.out  # the runner may be up before the server says where it is
    assert "safeguard missing: outer sandbox" in log
    assert "apt-get install bubblewrap" in log
