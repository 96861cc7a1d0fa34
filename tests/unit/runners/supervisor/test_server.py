"""The supervisor's log, and how long it keeps connections."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from errno import EACCES
from pathlib import Path

import pytest
import structlog
from starlette.applications import Starlette

from runners.supervisor import server
from runners.wire.client import KEEP_ALIVE_S


@pytest.fixture(autouse=True)
def settings() -> Iterator[None]:
    """Restore structlog's configuration."""
    before = structlog.get_config()
    yield
    structlog.configure(**before)


def test_a_traceback_in_the_log_shows_no_local_variables(capsys: pytest.CaptureFixture[str]) -> None:
    server._log_to_stderr()

    def fail(code: str) -> None:
        raise LookupError("a mistake of ours")

    try:
        fail("password = " + str(2**40))
    except LookupError:
        structlog.get_logger().exception("it broke")

    log = capsys.readouterr().err
    assert "it broke" in log
    assert "LookupError: a mistake of ours" in log
    assert str(2**40) not in log


def test_no_entry_of_the_runners_log_holds_control_characters(capsys: pytest.CaptureFixture[str]) -> None:
    server._log_to_stderr()
    sent = "\x1b]0;renamed\x07\x9b2J\u202e"

    structlog.get_logger().warning(f"a judgement failed{sent}", why=sent, calls=[sent])
    try:
        raise LookupError(sent)
    except LookupError:
        structlog.get_logger().exception("it broke")

    log = capsys.readouterr().err
    assert r"LookupError: \x1b]0;renamed\x07" in log
    assert not [each for each in log if not each.isprintable() and each != "\n"]


def test_idle_connections_are_closed_by_clients_and_never_by_the_supervisor_first() -> None:
    assert server.server_config(Starlette()).timeout_keep_alive > 5 * KEEP_ALIVE_S


def test_a_socket_that_cannot_be_made_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    command = [sys.executable, "-m", "runners.supervisor.server", "--socket", str(tmp_path / "file" / "run" / "s.sock")]

    done = subprocess.run(command, capture_output=True, text=True, timeout=60)

    assert done.returncode == 2
    assert done.stderr.splitlines()[-1] == f"Cannot use {tmp_path / 'file' / 'run'}: Not a directory."


def test_a_folder_that_the_runner_may_not_write_to_is_a_sentence_with_its_user() -> None:
    assert server.describe_error(PermissionError(EACCES, "Permission denied", "/run/lockstep")) == (
        "Cannot use /run/lockstep: Permission denied. "
        f"The runner runs as user {os.geteuid()}, which must be able to write there."
    )
