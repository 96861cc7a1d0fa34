"""``lockstep lesson new``: what it writes needs no edit to be a lesson, and a course's file keeps everything else."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from app.cli.lesson import app
from app.cli.lesson_new import with_lesson
from app.lessons.catalog import Catalog
from app.lessons.jupyter_metadata import jupyter_metadata_errors
from app.settings import Settings


@pytest.fixture
def lessons(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("data_dir", "lessons_dir", "runner_socket"):
        monkeypatch.setenv(f"LOCKSTEP_{name.upper()}", str(getattr(settings, name)))
    return settings.lessons_dir


def _new(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["new", *arguments], catch_exceptions=False)


def test_a_new_lesson_has_no_mistake_and_a_judged_exercise(lessons: Path) -> None:
    result = _new("two-replicas", "--course", "my-course", "--title", 'Zwei: "Replicas" # 1')
    assert result.exit_code == 0, result.output
    assert "lockstep lesson check my-course/two-replicas" in result.stdout

    catalog = Catalog(lessons, quiet=True)
    catalog.reload()
    lesson = catalog.with_drafts.lesson("my-course", "two-replicas", "en")
    exercise = lesson.exercises[0].exercise
    assert catalog.problems == ()
    assert list(jupyter_metadata_errors(lesson)) == []
    assert (lesson.title, str(lesson.status)) == ('Zwei: "Replicas" # 1', "draft")
    assert [cell.name for cell in lesson.cells] == ["replicas", "global-batch"]
    assert exercise is not None
    assert (len(exercise.checks), len(exercise.wrong_answers)) == (1, 1)


def test_another_lesson_is_added_to_the_only_course(lessons: Path) -> None:
    before = (lessons / "small" / "course.toml").read_text()
    assert _new("second").exit_code == 0

    assert (lessons / "small" / "course.toml").read_text() == before.replace('["first"]', '["first", "second"]')
    catalog = Catalog(lessons, quiet=True)
    catalog.reload()
    assert catalog.problems == ()
    assert catalog.with_drafts.lesson("small", "second", "en").title == "Second"
    assert [path.name for path in (lessons / "small").iterdir() if path.name.startswith(".")] == []


def test_nothing_is_written_over(lessons: Path) -> None:
    text = (lessons / "small" / "first" / "lesson.md").read_text()
    result = _new("first")

    assert result.exit_code == 2
    assert "first exists already. Choose another name." in result.stderr
    assert (lessons / "small" / "first" / "lesson.md").read_text() == text


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("My Lesson",), "'My Lesson' cannot name a folder of lessons: use lowercase letters"),
        (("../x",), "cannot name a folder"),
        (("x", "--course", "../../etc"), "'../../etc' cannot name a folder"),
        (("x", "--title", "a\x00b"), "The title must be one line"),
        (("x" * 61,), "at most 60 characters"),
    ],
)
def test_a_name_that_is_no_slug_is_refused(lessons: Path, arguments: tuple[str, ...], sentence: str) -> None:
    before = sorted(lessons.rglob("*"))
    result = _new(*arguments)

    assert result.exit_code == 2
    assert sentence in result.stderr
    assert sorted(lessons.rglob("*")) == before


def test_which_course_is_meant_has_to_be_clear(lessons: Path) -> None:
    assert _new("x", "--course", "other").exit_code == 0
    result = _new("y")
    assert (result.exit_code, "There are several: other, small." in result.stderr) == (2, True)

    (lessons / "folder").mkdir()
    result = _new("y", "--course", "folder")
    assert (result.exit_code, "is not a course: it has no course.toml" in result.stderr) == (2, True)


def test_a_mistake_in_the_courses_file_is_named_before_anything_is_written(lessons: Path) -> None:
    toml = lessons / "small" / "course.toml"
    toml.write_text(toml.read_text().replace('slug = "only"', "slug = only"))
    result = _new("second")

    assert result.exit_code == 1
    assert "small/course.toml:8: this is not TOML" in result.stderr
    assert not (lessons / "small" / "second").exists()


def test_a_warning_about_the_courses_file_does_not_keep_a_lesson_from_being_added(lessons: Path) -> None:
    toml = lessons / "small" / "course.toml"
    toml.write_text(f'outcomes = {{ en = ["stop", "go"], ko = ["멈추기"] }}\n{toml.read_text()}')

    assert _new("second").exit_code == 0
    assert '["first", "second"]' in toml.read_text()


def test_without_a_folder_of_lessons_it_says_how_to_make_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("LOCKSTEP_LESSONS_DIR", raising=False)
    result = _new("second", "--course", "mine")

    assert result.exit_code == 1
    assert "mkdir lessons" in result.stderr
    assert list(tmp_path.iterdir()) == []


COURSE = """\
title = "T"   # lessons = ["not", "these"]
summary = "lessons = []"

[[modules]]
slug = "one"
title = "One"
lessons = ["a"]

[[modules]]
slug = "two"
title = "lessons = ["
lessons = {list}
# the end
"""


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("[]", '["new"]'),
        ('["b"]', '["b", "new"]'),
        ('["b",]', '["b", "new"]'),
        ('["b", "c" ]', '["b", "c", "new" ]'),
        ('[\n    "b",  # ]\n    "c",\n]', '[\n    "b",  # ]\n    "c",\n    "new",\n]'),
        ('[\n  "b",  # last\n]', '[\n  "b",  # last\n  "new",\n]'),
        ('[\n  "b",\n  "c"\n]', '[\n  "b",\n  "c",\n  "new",\n]'),
    ],
)
def test_a_courses_file_keeps_its_comments_and_its_layout(before: str, after: str) -> None:
    assert with_lesson(COURSE.replace("{list}", before), "new") == COURSE.replace("{list}", after)


def test_a_module_without_a_list_is_left_to_the_author() -> None:
    assert with_lesson('[[modules]]\nslug = "one"\n', "new") is None
