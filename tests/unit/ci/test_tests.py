"""How all tests are run: each once, side by side or one after the other, and none that fails is lost."""

from __future__ import annotations

import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A folder with the script, and a Python that notes what it was called with and ends as the next line says."""
    (tmp_path / ".ci").mkdir()
    shutil.copy(ROOT / ".ci" / "tests", tmp_path / ".ci")
    python = tmp_path / ".venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text(
        '#!/bin/sh\necho "$*" >>calls\nstatus=$(head -n 1 ends)\nsed -i 1d ends\nexit "${status:-0}"\n',
    )
    python.chmod(0o755)
    (tmp_path / "ends").touch()
    return tmp_path


def run(checkout: Path, *arguments: str) -> tuple[int, list[list[str]]]:
    """The exit status, and the calls of Python."""
    ended = subprocess.run([checkout / ".ci" / "tests", *arguments], check=False)
    return ended.returncode, [shlex.split(line) for line in (checkout / "calls").read_text().splitlines()]


def test_what_runs_side_by_side_exists_and_is_all_that_the_others_leave_out(checkout: Path) -> None:
    status, (beside, after) = run(checkout)

    assert status == 0
    paths = [argument for argument in beside if argument.startswith("tests/")]
    assert "tests/unit" in paths
    assert not [path for path in paths if not (ROOT / path).exists()]
    assert [argument.removeprefix("--ignore=") for argument in after[2:]] == paths


@pytest.mark.parametrize(("ends", "status"), [("0\n0\n", 0), ("1\n0\n", 1), ("0\n1\n", 1), ("1\n2\n", 2)])
def test_a_failure_of_either_is_a_failure_and_both_are_run(checkout: Path, ends: str, status: int) -> None:
    (checkout / "ends").write_text(ends)

    ended, calls = run(checkout)

    assert (ended, len(calls)) == (status, 2)


def test_tests_that_are_chosen_are_run_as_they_were_asked_for(checkout: Path) -> None:
    assert run(checkout, "tests/unit", "-k", "topology") == (0, [["-m", "pytest", "tests/unit", "-k", "topology"]])
