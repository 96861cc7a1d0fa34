"""``lockstep lesson export``: which file it writes, and what is in it."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from app.cli.lesson import app
from app.settings import Settings
from tests.factories.exercises import write_exercise_lesson


@pytest.fixture
def lessons(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("data_dir", "lessons_dir", "runner_socket"):
        monkeypatch.setenv(f"LOCKSTEP_{name.upper()}", str(getattr(settings, name)))
    return settings.lessons_dir


def _export(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["export", *arguments], catch_exceptions=False)


def test_a_lesson_is_written_once(lessons: Path, tmp_path: Path) -> None:
    into = tmp_path / "new" / "folder"
    result = _export("small/first", "--into", str(into), "--format", "py")

    assert (result.exit_code, result.stdout) == (0, f"{into / 'first.py'}\n")
    assert 'print("hello")' in (into / "first.py").read_text()
    again = _export("first", "--into", str(into), "--format", "py")
    assert again.exit_code == 1
    assert "exists. Choose another folder with --into, or replace it with --force." in again.stderr
    assert _export("first", "--into", str(into), "--format", "py", "--force").exit_code == 0
    assert [path.name for path in into.iterdir()] == ["first.py"]


def test_a_course_is_an_archive_of_its_lessons(lessons: Path, tmp_path: Path) -> None:
    assert _export("small", "--into", str(tmp_path)).exit_code == 0

    with zipfile.ZipFile(tmp_path / "small.zip") as files:
        assert files.namelist()[0] == "small/first.ipynb"


def test_solutions_are_included_only_on_request(lessons: Path, tmp_path: Path) -> None:
    write_exercise_lesson(lessons)
    without = _export("one", "--into", str(tmp_path), "--format", "markdown")
    solution = "return sum(values) / SOLVED_BY_THE_AUTHOR"
    assert without.exit_code == 0
    assert solution not in (tmp_path / "one.md").read_text()
    assert _export("one", "--into", str(tmp_path), "--format", "markdown", "--solutions", "--force").exit_code == 0

    assert solution in (tmp_path / "one.md").read_text()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [(("none",), "There is no lesson and no course 'none'."), (("first", "--language", "xx"), "no language 'xx'")],
)
def test_what_does_not_exist_is_named(lessons: Path, arguments: tuple[str, ...], said: str) -> None:
    result = _export(*arguments)

    assert result.exit_code == 2
    assert said in result.stderr
