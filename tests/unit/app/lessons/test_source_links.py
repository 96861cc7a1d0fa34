"""Links from a lesson to its files on a code host and in Colab."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from app.lessons.added_courses import AddedCourse
from app.lessons.source_links import SourceLinks, source_links
from app.settings import Settings
from tests.factories.lesson_source import render_body


@pytest.mark.parametrize(
    ("base", "edit", "host"),
    [
        (
            "https://github.com/owner/name/blob/main/lessons",
            "https://github.com/owner/name/edit/main/lessons/course/this/lesson.md",
            "GitHub",
        ),
        (
            "https://git.example.org/owner/name/-/blob/main",
            "https://git.example.org/owner/name/-/edit/main/course/this/lesson.md",
            "git.example.org",
        ),
        ("https://git.example.org/name/src/lessons", "", "git.example.org"),
    ],
)
def test_the_source_is_on_the_code_host_and_so_is_its_editor(base: str, edit: str, host: str) -> None:
    links = source_links(render_body("Words.\n"), Settings(lessons_source=base), None)

    assert links == SourceLinks(f"{base}/course/this/lesson.md", edit, host)


def test_a_translation_links_to_its_own_file_and_colab_to_the_notebook() -> None:
    settings = Settings(
        lessons_source="https://github.com/o/n/blob/main",
        colab_notebooks="https://github.com/o/n/blob/main/notebooks",
    )
    links = source_links(render_body("Words.\n", language="ko"), settings, None)

    assert links.view == "https://github.com/o/n/blob/main/course/this/lesson.ko.md"
    assert links.colab == "https://colab.research.google.com/github/o/n/blob/main/notebooks/course/this.ipynb"


def test_there_are_no_links_without_a_repository() -> None:
    assert source_links(render_body("Words.\n"), Settings(), None) == SourceLinks()


OPERATORS = Settings(
    data_dir=Path("data"),
    lessons_source="https://github.com/operator/site/blob/main/lessons",
    colab_notebooks="https://github.com/operator/site/blob/main/notebooks",
)
COMMIT = "0123456789" * 4


def links_of_added(url: str, folder: str = "courses/it", name: str = "lesson.md") -> SourceLinks:
    lesson = replace(render_body("Words.\n"), source_path=OPERATORS.added_courses_dir / "course" / "this" / name)
    return source_links(lesson, OPERATORS, AddedCourse("course", url, "main", folder, COMMIT))


@pytest.mark.parametrize(
    ("url", "base", "host"),
    [
        ("https://github.com/owner/name", f"https://github.com/owner/name/blob/{COMMIT}", "GitHub"),
        ("https://me@GitHub.com/owner/name.git/", f"https://github.com/owner/name/blob/{COMMIT}", "GitHub"),
        ("git@github.com:owner/name.git", f"https://github.com/owner/name/blob/{COMMIT}", "GitHub"),
        ("ssh://git@gitlab.com:22/a/b/name.git", f"https://gitlab.com/a/b/name/-/blob/{COMMIT}", "GitLab"),
        ("https://codeberg.org/owner/name", f"https://codeberg.org/owner/name/src/commit/{COMMIT}", "Codeberg"),
        ("https://bitbucket.org/owner/name", f"https://bitbucket.org/owner/name/src/{COMMIT}", "Bitbucket"),
    ],
)
def test_an_added_course_links_to_its_own_repository_at_the_commit_that_is_served(
    url: str, base: str, host: str
) -> None:
    assert links_of_added(url) == SourceLinks(view=f"{base}/courses/it/this/lesson.md", host=host)
    assert links_of_added(url, folder=".", name="lesson.ko.md").view == f"{base}/this/lesson.ko.md"


@pytest.mark.parametrize(
    "url",
    [
        "https://git.example.org/owner/name",
        "https://github.com:8443/owner/name",
        "https://github.com/name",
        "https://github.com/../owner/name",
        'https://github.com/owner/name"onclick=x',
        "https://github.com.example.org/owner/name",
        "https://[github.com/owner/name",
        "file:///srv/github.com/owner/name",
        "ext::git@github.com:owner/name",
        "",
    ],
)
def test_an_added_course_of_an_unknown_host_has_no_links_at_all(url: str) -> None:
    assert links_of_added(url) == SourceLinks()


def test_an_added_course_whose_origin_is_unknown_has_no_links() -> None:
    lesson = replace(render_body("Words.\n"), source_path=OPERATORS.added_courses_dir / "course/this/lesson.md")

    assert source_links(lesson, OPERATORS, None) == SourceLinks()


def test_the_path_in_a_repository_is_escaped() -> None:
    view = links_of_added("https://github.com/owner/name", folder='a b/"<c>').view

    assert view == f"https://github.com/owner/name/blob/{COMMIT}/a%20b/%22%3Cc%3E/this/lesson.md"
