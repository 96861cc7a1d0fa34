"""``lockstep run``: its output, exit status and errors."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import pty
import signal
import tty
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import pytest
from typer.testing import CliRunner

from app.cli.main import app
from runners.wire.protocol import Refusal
from tests.factories.cli_process import finish, lockstep, start
from tests.factories.scripted_supervisor import ScriptedSupervisor


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "script.py"
    path.write_text("print('hello')\n")
    return path


@pytest.fixture
def endless() -> Iterator[IO[bytes]]:
    with Path("/dev/zero").open("rb") as zeros:
        yield zeros


def _read_terminal(descriptor: int) -> bytes:
    """Everything that was written to a terminal whose other end is closed. It may come in several pieces."""
    output = b""
    with contextlib.suppress(OSError):  # how it says that no more comes
        while piece := os.read(descriptor, 4096):
            output += piece
    return output


async def test_output_goes_where_the_script_sent_it_and_ok_is_0(
    supervisor: ScriptedSupervisor, script: Path, tmp_path: Path
) -> None:
    process = await start("run", str(script), "--topology", "gpu:2", runner_socket=supervisor.socket, data_dir=tmp_path)
    run = await supervisor.run()
    await supervisor.emit(run, kind="started")
    await supervisor.say(run, "hello\n", "\x1b[1mbold\x1b[0m\u2028\n")
    await supervisor.emit(run, kind="text", stream="stderr", text="careful\n")
    await supervisor.emit(run, kind="display", data={"text/plain": "42"}, result=True)
    await supervisor.emit(run, kind="notice", code="stand_in", text="stand-in data")
    await supervisor.finish(run)
    ended = await finish(process)

    assert ended.status == 0, ended.err
    assert ended.out == "hello\n\x1b[1mbold\x1b[0m\u2028\n42\n"
    simulated = "lockstep: 2 GPUs, simulated. Timings say nothing about real devices.\n"
    assert ended.err == f"{simulated}careful\nlockstep: stand-in data\n"
    assert run.request.code == "print('hello')\n"
    assert run.request.spec.topology == "gpu:2"
    assert supervisor.sessions == {}, "the session is ended with the command"


async def test_a_terminal_gets_colours_and_no_orders(
    supervisor: ScriptedSupervisor, script: Path, tmp_path: Path
) -> None:
    ours, terminal = pty.openpty()
    tty.setraw(terminal)
    process = await start("run", str(script), stdout=terminal, runner_socket=supervisor.socket, data_dir=tmp_path)
    os.close(terminal)
    run = await supervisor.run()
    await supervisor.say(run, "\x1b[31mred\x1b]52;c;cm0gLXJm", "IH4=\x07\x1b]0;title\x07\x1b[6n\x1bP$q\x1b\\")
    await supervisor.emit(run, kind="display", data={"text/plain": "\x9b5n42"}, result=True)
    await supervisor.finish(run)
    ended = await finish(process)

    assert ended.status == 0, ended.err
    assert _read_terminal(ours) == b"\x1b[31mred5n42\n\x1b[0m"
    os.close(ours)


@pytest.mark.parametrize("outcome", ["error", "crash"])
async def test_every_other_outcome_is_1(
    supervisor: ScriptedSupervisor, script: Path, tmp_path: Path, outcome: str
) -> None:
    command = lockstep("run", str(script), runner_socket=supervisor.socket, data_dir=tmp_path)
    ending = asyncio.create_task(command)
    run = await supervisor.run()
    if outcome == "error":
        frames = [{"text": "ValueError: no", "own": True}]
        await supervisor.emit(run, kind="error", name="ValueError", value="no", frames=frames)
    await supervisor.finish(run, outcome)
    ended = await ending

    assert ended.status == 1
    assert ended.err.startswith("ValueError: no" if outcome == "error" else "lockstep: ")


async def test_json_is_one_event_a_line_and_the_last_has_the_outcome(
    supervisor: ScriptedSupervisor, script: Path, tmp_path: Path
) -> None:
    supervisor.answer = ["one\u2028", "two"]

    ended = await lockstep("run", str(script), "--json", runner_socket=supervisor.socket, data_dir=tmp_path)

    events = [json.loads(line) for line in ended.out.strip("\n").split("\n")]
    assert [event["kind"] for event in events] == ["started", "text", "text", "finished"]
    assert events[0]["machine"] == {"topology": "gpu:4", "keras": 3, "simulated": True}
    assert events[-1]["outcome"] == "ok"
    assert ended.err == ""
    assert ended.status == 0


async def test_a_script_may_come_from_standard_input(supervisor: ScriptedSupervisor, tmp_path: Path) -> None:
    supervisor.answer = []

    ended = await lockstep("run", "-", typed=b"\xef\xbb\xbfx = 1\n", runner_socket=supervisor.socket, data_dir=tmp_path)

    assert ended.status == 0
    assert (await supervisor.run()).request.code == "x = 1\n"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nothing.py"], "Cannot read nothing.py: No such file or directory."),
        (["."], "Is a directory"),
        (["{script}", "--topology", "quantum:3"], "unknown topology 'quantum:3'; possible: cpu, gpu:1"),
        (["{script}", "--topology", "ps:8+8"], "as in ps:2+1; a cluster may end in +chief"),
        (["{script}", "--topology", "gpu:9"], "topology 'gpu:9' is too large: gpu:1 to gpu:8; possible: cpu, gpu:1"),
        (["{script}", "--keras", "4"], "--keras"),
        (["{script}", "--timeout", "0"], "--timeout"),
        (["{script}", "--timeout", "nan"], "--timeout"),
        (["{long}"], "The limit is 100,000 bytes"),
        (["{marked}"], "The limit is 100,000 bytes"),
        (["/dev/zero"], "/dev/zero is not a regular file. Use - to read standard input."),
        (["{pipe}"], "is not a regular file. Use - to read standard input."),
        (["{binary}"], "is not UTF-8 text"),
    ],
)
def test_a_command_asked_wrongly_says_so_and_is_2(
    script: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], words: str
) -> None:
    """In this process: test_main.py starts real ones, which end with the same status."""
    files = {"script": script, "long": tmp_path / "long.py", "binary": tmp_path / "binary.py"}
    files |= {"marked": tmp_path / "marked.py", "pipe": tmp_path / "pipe"}
    files["marked"].write_bytes(b"\xef\xbb\xbf" + "é".encode() * 50_001)
    os.mkfifo(files["pipe"])
    files["long"].write_text("#" * 100_001)
    files["binary"].write_bytes(b"\xff\xfe")
    asked = [argument.format(**files) for argument in arguments]

    monkeypatch.setenv("LOCKSTEP_DATA_DIR", str(tmp_path))
    monkeypatch.setenv("LOCKSTEP_RUNNER_SOCKET", str(tmp_path / "none"))  # asking there would end with 1

    ended = CliRunner().invoke(app, ["run", *asked])

    assert ended.exit_code == 2
    assert words in ended.stderr
    assert isinstance(ended.exception, SystemExit)


async def test_input_without_end_is_too_long(
    supervisor: ScriptedSupervisor, tmp_path: Path, endless: IO[bytes]
) -> None:
    process = await start("run", "-", stdin=endless, runner_socket=supervisor.socket, data_dir=tmp_path)
    ended = await finish(process, None)

    assert ended.status == 2
    assert ended.err == "- is too long. The limit is 100,000 bytes.\n"


async def test_a_script_of_just_the_limit_is_run(supervisor: ScriptedSupervisor, tmp_path: Path) -> None:
    supervisor.answer = []
    code = "#" * 100_000

    ended = await lockstep(
        "run", "-", typed=b"\xef\xbb\xbf" + code.encode(), runner_socket=supervisor.socket, data_dir=tmp_path
    )

    assert ended.status == 0
    assert (await supervisor.run()).request.code == code


async def test_ctrl_c_interrupts_the_run_and_is_130(
    supervisor: ScriptedSupervisor, script: Path, tmp_path: Path
) -> None:
    process = await start("run", str(script), runner_socket=supervisor.socket, data_dir=tmp_path)
    run = await supervisor.run()
    await supervisor.say(run, "going\n")
    assert process.stdout is not None
    assert await asyncio.wait_for(process.stdout.readline(), 20) == b"going\n"

    process.send_signal(signal.SIGINT)
    ended = await finish(process)

    assert ended.status == 130
    assert run.stopped


async def test_a_stream_that_breaks_is_resumed(supervisor: ScriptedSupervisor, script: Path, tmp_path: Path) -> None:
    process = await start("run", str(script), runner_socket=supervisor.socket, data_dir=tmp_path)
    run = await supervisor.run()
    await supervisor.say(run, "a")
    assert process.stdout is not None
    assert await asyncio.wait_for(process.stdout.read(1), 20) == b"a"
    await supervisor.break_streams()
    await supervisor.say(run, "b")
    await supervisor.finish(run)

    assert (await finish(process)).out == "b"


async def test_a_runner_that_was_named_and_is_away_is_a_sentence(
    script: Path, tmp_path: Path, socket_path: Path
) -> None:
    ended = await lockstep("run", str(script), runner_socket=socket_path, data_dir=tmp_path)

    assert ended.status == 1
    assert ended.err == f"The runner at {socket_path} is not responding.\n"


async def test_beside_a_server_it_says_which_settings_of_this_shell_are_not_in_use(
    script: Path, socket_path: Path
) -> None:
    data = socket_path.parent
    supervisor = ScriptedSupervisor(data / "run" / "supervisor.sock")
    supervisor.socket.parent.mkdir()
    supervisor.answer = ["hello\n"]
    supervisor.health = supervisor.health.model_copy(update={"settings": {"LOCKSTEP_DEVICES": "simulate"}})
    await supervisor.start()
    same = await lockstep("run", str(script), "--topology", "cpu", data_dir=data)
    other = await lockstep("run", str(script), "--topology", "cpu", data_dir=data, devices="gpu")
    refused = await lockstep("run", str(script), "--topology", "cpu", data_dir=data, devices="nonsense")
    await supervisor.stop()

    beside = f"lockstep: Using the runner that is already running at {supervisor.socket}, which has other settings: "
    assert [(ended.status, ended.out) for ended in (same, other, refused)] == [(0, "hello\n")] * 3
    assert same.err == ""
    assert other.err == f"{beside}LOCKSTEP_DEVICES=simulate (here gpu).\n"
    assert refused.err == f"{beside}LOCKSTEP_DEVICES: must be 'auto', 'simulate', 'gpu' or 'tpu'.\n"


async def test_a_refusal_of_the_runner_is_a_sentence(
    supervisor: ScriptedSupervisor, script: Path, tmp_path: Path
) -> None:
    supervisor.refuse = (429, Refusal(code="full", message="no seat"))

    ended = await lockstep("run", str(script), runner_socket=supervisor.socket, data_dir=tmp_path)

    assert (ended.status, ended.err) == (1, "The runner rejected the script: no seat\n")
