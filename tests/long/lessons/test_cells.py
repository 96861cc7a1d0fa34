"""Every cell of lessons, run in the real sandbox by the real command."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.factories.shipped_lessons import chosen_lessons

ROOT = Path(__file__).parents[3]
CORES = min(8, len(os.sched_getaffinity(0)))
"""A lesson's time is mostly Python's, which takes one core."""
LESSONS = [lesson.slug for lesson in chosen_lessons()]
PATIENCE_S = 300 + 115 * len(LESSONS)


@pytest.mark.slow
@pytest.mark.timeout(PATIENCE_S)
def test_every_cell_ends_as_it_should(tmp_path: Path) -> None:
    command = [sys.executable, "-c", "from app.cli.lesson import app; app()", "check", *LESSONS, f"--jobs={CORES}"]
    environment = os.environ | {"LOCKSTEP_DATA_DIR": str(tmp_path), "LOCKSTEP_LESSONS_DIR": str(ROOT / "lessons")}

    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 unexpected outcomes." in done.stdout
