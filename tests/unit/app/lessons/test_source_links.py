"""Links from a lesson to its files on a code host and in Colab."""

from __future__ import annotations

import pytest

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
    links = source_links(render_body("Words.\n"), Settings(lessons_source=base))

    assert links == SourceLinks(f"{base}/course/this/lesson.md", edit, host)


def test_a_translation_links_to_its_own_file_and_colab_to_the_notebook() -> None:
    settings = Settings(
        lessons_source="https://github.com/o/n/blob/main",
        colab_notebooks="https://github.com/o/n/blob/main/notebooks",
    )
    links = source_links(render_body("Words.\n", language="ko"), settings)

    assert links.view == "https://github.com/o/n/blob/main/course/this/lesson.ko.md"
    assert links.colab == "https://colab.research.google.com/github/o/n/blob/main/notebooks/course/this.ipynb"


def test_there_are_no_links_without_a_repository() -> None:
    assert source_links(render_body("Words.\n"), Settings()) == SourceLinks()
