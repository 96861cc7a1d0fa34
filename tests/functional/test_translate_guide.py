"""The guide to translating a lesson, step by step."""

from __future__ import annotations

import shlex
import subprocess
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from app.cli.main import app
from tests.factories.guides import guide_blocks

GUIDE = "translate.md"


def _lockstep(command: str) -> Result:
    program, *arguments = shlex.split(command)
    assert program == "lockstep"
    return CliRunner().invoke(app, arguments)


def test_its_translation_passes_the_check_and_follows_the_english_lesson(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    start, check, diff = guide_blocks(GUIDE, "sh")
    diff_course = diff.replace("my-course/averages", "my-course")
    (translation,), (sentences, course) = guide_blocks(GUIDE, "md"), guide_blocks(GUIDE, "toml")
    folders, new = start.splitlines()
    assert folders == "mkdir -p teaching/lessons && cd teaching"
    (tmp_path / "teaching" / "lessons").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "teaching")
    monkeypatch.setenv("LOCKSTEP_DATA_DIR", str(tmp_path / "data"))
    assert _lockstep(new).exit_code == 0

    lesson = Path("lessons/my-course/averages/lesson.md").absolute()
    lesson.with_name("lesson.ko.md").write_text(translation)
    lesson.with_name("checks.ko.toml").write_text(sentences)
    course_file = lesson.parents[1] / "course.toml"
    assert [row for row in course.splitlines() if ".ko = " not in row] == course_file.read_text().splitlines()
    assert "course.toml:1: not translated; write title.ko beside title.en\n" in _lockstep(diff_course).stdout
    course_file.write_text(course)
    assert _lockstep(check).stdout.endswith(" 0 errors.\n")

    for arguments in ("init --quiet", "add .", "-c user.name=a -c user.email=a@example.org commit --quiet -m Begin"):
        subprocess.run(["git", *shlex.split(arguments)], check=True)
    assert _lockstep(diff).stdout == "1 translation compared, 0 changes.\n"
    assert _lockstep(diff_course).stdout == "2 translations compared, 0 changes.\n"
    lesson.write_text(lesson.read_text().replace("let them try it", "let them try it twice"))
    changed = _lockstep(diff)
    assert (changed.exit_code, "    + Explain what they saw, and let them try it twice:" in changed.stdout) == (1, True)
