"""Notebooks and MyST files as others publish them: imported and run by the real commands, without a hand on them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PUBLISHED = ROOT / "tests" / "unit" / "app" / "imports" / "published"


def _lockstep(home: Path, *arguments: str) -> str:
    command = [sys.executable, "-c", "from app.cli.main import app; app()", "lesson", *arguments]
    environment = os.environ | {"LOCKSTEP_DATA_DIR": str(home), "LOCKSTEP_LESSONS_DIR": str(home / "lessons")}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.timeout(600)
def test_every_cell_of_imported_files_runs(tmp_path: Path) -> None:
    imported = _lockstep(tmp_path, "import", str(PUBLISHED), "--into", str(tmp_path / "lessons" / "published"))
    assert "Imported 4 lessons with 25 cells" in imported
    assert _lockstep(tmp_path, "check").rstrip().endswith("\n0 unexpected outcomes.")
