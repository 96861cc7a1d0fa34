"""Tests of the files that backups are written to."""

from __future__ import annotations

import fcntl
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from app.cli.backup_files import new_file
from app.cli.console import ENDED_BY_SIGTERM, ending_at_sigterm


@pytest.mark.parametrize(("module", "call"), [(os, "open"), (fcntl, "flock"), (os, "fchmod"), (os, "fsync")])
def test_a_command_that_is_ended_at_any_moment_leaves_no_partial_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: Any, call: str
) -> None:
    act: Callable[..., Any] = getattr(module, call)
    ended, before = 0, signal.getsignal(signal.SIGTERM)

    def act_and_end(*arguments: Any) -> Any:
        nonlocal ended
        result = act(*arguments)
        if ended == 0:
            ended += 1
            os.kill(os.getpid(), signal.SIGTERM)
        return result

    monkeypatch.setattr(module, call, act_and_end)
    with (
        pytest.raises(SystemExit) as exited,
        ending_at_sigterm(ENDED_BY_SIGTERM),
        new_file(tmp_path / "backup") as file,
    ):
        file.write(b"part")
    assert exited.value.code == ENDED_BY_SIGTERM
    assert (ended, list(tmp_path.iterdir())) == (1, [])
    assert signal.getsignal(signal.SIGTERM) == before
