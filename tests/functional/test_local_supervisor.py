"""The supervisor that ``lockstep serve`` starts, as seen by the operating system."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from app.cli.local_runner import LocalRunner
from tests.factories.process_tree import children, command_line


def test_it_holds_no_secret_of_the_process_that_started_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCKSTEP_DATABASE_URL", "postgresql+asyncpg://lockstep:hunter2@db/lockstep")
    monkeypatch.setenv("LOCKSTEP_MAX_SESSIONS", "7")
    socket = tmp_path / "run" / "s.sock"
    with LocalRunner(socket, tmp_path, extra={"LOCKSTEP_WARM_KERNELS": "0"}, tell=print) as runner:
        assert runner.settled.wait(60)
        assert (runner.refused, runner.failures) == (False, 0)
        (supervisor,) = (p for p in children(os.getpid()) if str(socket) in command_line(p))
        told = supervisor.environ()

    assert "hunter2" not in str(told)
    assert {k: v for k, v in told.items() if k.startswith("LOCKSTEP_")} == {
        "LOCKSTEP_DATA_DIR": str(tmp_path),
        "LOCKSTEP_MAX_SESSIONS": "7",
        "LOCKSTEP_WARM_KERNELS": "0",
    }
