"""Notebooks and MyST files as others publish them: imported and run by the real commands, without a hand on them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import venv
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.imports.packages import SCIENCE

ROOT = Path(__file__).parents[3]
PUBLISHED = ROOT / "tests" / "unit" / "app" / "imports" / "published"
BOOK = Path(__file__).parent / "science_book"


def _run(*command: str, **environment: str) -> str:
    done = subprocess.run(command, cwd=ROOT, env=os.environ | environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stderr + done.stdout


def _lockstep(home: Path, *arguments: str, python: str = sys.executable) -> str:
    folders = {"LOCKSTEP_DATA_DIR": str(home), "LOCKSTEP_LESSONS_DIR": str(home / "lessons")}
    return _run(python, "-c", "from app.cli.main import app; app()", "lesson", *arguments, **folders)


@pytest.fixture
def python_with_science() -> Iterator[str]:
    """The Python of an environment that also has the science packages. It shares the files of this one."""
    folder = Path(sys.prefix) / "science"
    shutil.rmtree(folder, ignore_errors=True)
    venv.create(folder, symlinks=True)
    python = str(folder / "bin" / "python")
    packages = sysconfig.get_path("purelib", vars={"base": str(folder), "platbase": str(folder)})
    shutil.copytree(sysconfig.get_path("purelib"), packages, symlinks=True, copy_function=os.link, dirs_exist_ok=True)
    install = ["install", "--quiet", "--no-deps", "--require-hashes", "-r", str(ROOT / "locks" / "science.txt")]
    _run(sys.executable, "-m", "pip", "--python", python, *install)
    yield python
    shutil.rmtree(folder)


@pytest.mark.timeout(600)
def test_every_cell_of_imported_files_runs(tmp_path: Path) -> None:
    imported = _lockstep(tmp_path, "import", str(PUBLISHED), "--into", str(tmp_path / "lessons" / "published"))
    assert "Imported 4 lessons with 25 cells" in imported
    assert _lockstep(tmp_path, "check").rstrip().endswith("\n0 unexpected outcomes.")


@pytest.mark.timeout(900)
def test_every_cell_of_a_book_that_needs_the_science_packages_runs(tmp_path: Path, python_with_science: str) -> None:
    book = ["import", str(BOOK), "--into", str(tmp_path / "lessons" / "book")]
    imported = _lockstep(tmp_path, *book, python=python_with_science)

    assert "Imported 7 lessons with 38 cells" in imported
    assert "which is not installed" not in imported
    assert _lockstep(tmp_path, "check", python=python_with_science).rstrip().endswith("\n0 unexpected outcomes.")
    code = "".join(path.read_text() for path in BOOK.glob("*.md"))
    assert [module for module in SCIENCE if f"import {module}" not in code and f"from {module}" not in code] == []
