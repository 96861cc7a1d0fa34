"""The last good version of a course survives a restart, a misspelled slug, and a lesson that is gone."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from app.lessons.assets import read_asset
from app.lessons.catalog import Catalog
from app.lessons.errors import LessonUnavailable
from tests.factories.lesson_source import CELL, FRONT_MATTER, write_lesson, write_toml

KOREAN = "title: 하나\nsummary: 요약.\n"
NOT_CLOSED = "```{code-cell} python\n:name: a\n\nx = (\n```\n"
"""A cell that blocks its lesson."""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "lessons"
    folder = write_toml(root, "one", "two")
    write_lesson(folder / "one", f"Good words.\n\n{CELL}")
    write_lesson(folder / "one", CELL.replace("print(1)\n", ""), name="lesson.ko.md", header=KOREAN)
    write_lesson(folder / "two", "Words of two.\n")
    (folder / "one" / "assets").mkdir()
    (folder / "one" / "assets" / "data.csv").write_text("1,2\n")
    return root


def started(root: Path) -> Catalog:
    """The catalog of a server that has just started."""
    catalog = Catalog(root, quiet=True, kept=root.parent / "kept")
    catalog.reload()
    return catalog


def words(catalog: Catalog, slug: str, language: str = "en") -> str:
    return catalog.lesson("course", slug, language).source


def test_a_lesson_with_a_mistake_is_shown_as_it_was_before_the_restart(root: Path) -> None:
    started(root)
    write_lesson(root / "course" / "one", NOT_CLOSED)
    write_lesson(root / "course" / "two", "Newer words.\n")
    shutil.rmtree(root / "course" / "one" / "assets")
    catalog = started(root)

    lesson = catalog.lesson("course", "one", "en")
    assert "Good words." in lesson.source
    assert read_asset(lesson, "data.csv").body == b"1,2\n"
    assert catalog.lesson("course", "one", "ko").title == "하나"
    assert "Newer words." in words(catalog, "two")
    assert [mistake.line for mistake in catalog.problems if mistake.path.name == "lesson.md"] == [10]

    write_lesson(root / "course" / "one", f"Mended.\n\n{CELL}")
    catalog.reload()
    assert "Mended." in words(catalog, "one")
    assert "Mended." in words(started(root), "one")


def test_without_a_copy_a_lesson_with_a_mistake_is_not_available(root: Path) -> None:
    write_lesson(root / "course" / "one", NOT_CLOSED)
    with pytest.raises(LessonUnavailable):
        started(root).lesson("course", "one", "en")


def test_a_translation_with_a_mistake_keeps_the_copy_of_its_whole_lesson(root: Path) -> None:
    started(root)
    write_lesson(root / "course" / "one", f"New words.\n\n{CELL.replace('one', 'other')}")
    started(root)
    catalog = started(root)

    assert "New words." in words(catalog, "one")
    assert catalog.lesson("course", "one", "ko").title == "하나"


@pytest.mark.parametrize("restarted", [False, True])
def test_a_misspelled_slug_leaves_the_course_as_it_was_and_is_named(root: Path, restarted: bool) -> None:
    catalog = started(root)
    write_toml(root, "one", "twoo")
    if restarted:
        catalog = started(root)
    else:
        catalog.reload()

    assert "Words of two." in words(catalog, "two")
    assert [entry.slug for entry in catalog.outline("course", "en").lessons] == ["one", "two"]
    first = catalog.problems[0]
    assert (first.path.name, first.text) == (
        "course.toml",
        "the lesson 'two' is not in any module; add it to the lessons of one",
    )
    assert f"{root}/course/course.toml:8: there is no lesson 'twoo' in this folder; did you mean 'two'?" in map(
        str, catalog.problems
    )

    write_toml(root, "two", "one")
    catalog.reload()
    assert [entry.slug for entry in catalog.outline("course", "en").lessons] == ["two", "one"]


@pytest.mark.parametrize("text", ["title = \n", 'title.en = "X"\nsummary.en = "Y"\n[[modules]]\nlessons = ["One"]\n'])
def test_a_course_file_with_a_mistake_survives_a_restart(root: Path, text: str) -> None:
    started(root)
    (root / "course" / "course.toml").write_text(text)
    catalog = started(root)

    assert catalog.course("course", "en").title == "The course"
    assert "Words of two." in words(catalog, "two")


def test_a_lesson_whose_file_is_gone_stays_as_long_as_the_course_lists_it(root: Path) -> None:
    started(root)
    shutil.rmtree(root / "course" / "two")
    assert "Words of two." in words(started(root), "two")

    write_toml(root, "one")
    started(root)
    assert sorted(path.name for path in (root.parent / "kept" / "course").iterdir()) == ["course.toml", "one"]


def test_only_ordinary_files_are_copied(root: Path) -> None:
    secret = root.parent / "secret"
    secret.write_text("secret")
    folder = root / "course" / "two" / "assets"
    folder.mkdir()
    (folder / "link").symlink_to(secret)
    (folder / "folder").symlink_to(root.parent, target_is_directory=True)
    os.mkfifo(folder / "pipe")
    (folder / ".hidden").write_text("x")
    (folder / "real.txt").write_text("x")
    started(root)

    assert [path.name for path in (root.parent / "kept" / "course" / "two" / "assets").iterdir()] == ["real.txt"]


def test_a_copy_that_cannot_be_written_hides_no_lesson(root: Path) -> None:
    (root.parent / "kept").write_text("in the way")
    assert "Words of two." in words(started(root), "two")


def test_unchanged_lessons_are_not_copied_again(root: Path) -> None:
    catalog = started(root)
    kept = root.parent / "kept" / "course" / "one"
    before = kept.stat().st_ino
    write_lesson(root / "course" / "two", "Other words.\n", header=f"{FRONT_MATTER}tags: [new]\n")
    catalog.reload()

    assert kept.stat().st_ino == before
    assert "Other words." in (kept.parent / "two" / "lesson.md").read_text()
