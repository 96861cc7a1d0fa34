"""A Jupyter process's private folder disappears with the process, or later when another process starts."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from runners.jupyter.private_folder import PrivateFolder, remove_stale_folders

DYING = (
    "import os; from runners.jupyter.private_folder import PrivateFolder as P; print(P().path, flush=True); os._exit(0)"
)


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def test_only_its_user_may_enter_and_nothing_is_left_of_it(temporary: Path) -> None:
    folder = PrivateFolder()
    (folder.path / "c-1").symlink_to("/nowhere")
    assert folder.path.stat().st_mode & 0o777 == 0o700
    folder.close()
    assert list(temporary.iterdir()) == []


def test_a_sweep_removes_the_folders_of_the_dead_and_no_others(temporary: Path) -> None:
    living = PrivateFolder()
    path = subprocess.run([sys.executable, "-c", DYING], check=True, capture_output=True, text=True).stdout.strip()
    assert Path(path).is_dir()
    (temporary / "lockstep-jupyter-link").symlink_to("/etc")
    (temporary / "lockstep-jupyter-file").touch()

    remove_stale_folders()

    assert not Path(path).exists()
    assert living.path.is_dir()
    assert (temporary / "lockstep-jupyter-link").is_symlink()
    assert (temporary / "lockstep-jupyter-file").is_file()
    living.close()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder to another user")
def test_a_sweep_leaves_another_users_folders_alone(temporary: Path) -> None:
    theirs = temporary / "lockstep-jupyter-theirs"
    theirs.mkdir()
    os.chown(theirs, 61_000, 61_000)
    remove_stale_folders()
    assert theirs.is_dir()
