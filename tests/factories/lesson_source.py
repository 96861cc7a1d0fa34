"""Lessons as text, for tests that read them."""

from __future__ import annotations

from pathlib import Path

from app.lessons.document import Document, parse_document
from app.lessons.model import Lesson
from app.lessons.render import render_lesson

FRONT_MATTER = "title: The lesson\nsummary: It teaches.\nminutes: 5\nstatus: published\n"
FOR_JUPYTER = """\
jupytext: {notebook_metadata_filter: all}
kernelspec: {display_name: "Lockstep, 4 simulated GPUs", language: python, name: lockstep-gpu-4}
"""
"""What ``lockstep lesson check`` asks for besides, where a lesson runs on four GPUs."""
FIRST_LINE = FRONT_MATTER.count("\n") + 3
"""The line on which the body of ``lesson_text`` begins, from 1."""
CELL = "```{code-cell} python\n:name: one\n\nprint(1)\n```\n"


def lesson_text(body: str = "Words.\n", header: str = FRONT_MATTER) -> str:
    """The text of a lesson file."""
    return f"---\n{header}---\n{body}"


def errors_in(document: Document) -> list[tuple[int, str]]:
    """The errors in a document: line of the body (counted from 1), and text."""
    return [(fault.line - FIRST_LINE + 1, fault.text) for fault in document.faults]


def errors_in_body(body: str) -> list[tuple[int, str]]:
    """The errors in a body."""
    return errors_in(parse_document(lesson_text(body), "en"))


def render_body(body: str, *, language: str = "en", header: str = FRONT_MATTER) -> Lesson:
    """The lesson of a body without errors."""
    document = parse_document(lesson_text(body, header), language)
    assert not document.faults, document.faults
    return render_lesson(
        document, course="course", slug="this", languages=(language,), path=Path("course/this/lesson.md"), digest="d"
    )


def prose_html(body: str) -> str:
    """The HTML of a body's prose."""
    return "\n".join(str(block.html) for block in render_body(body).blocks if hasattr(block, "html"))


def write_lesson(folder: Path, body: str, *, name: str = "lesson.md", header: str = FRONT_MATTER) -> Path:
    """Write a lesson file into the lesson's folder."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text(lesson_text(body, header), encoding="utf-8")
    return path


def write_toml(root: Path, *slugs: str, course: str = "course") -> Path:
    """Write a course's file that lists these lessons, and return the course's folder."""
    folder = root / course
    folder.mkdir(parents=True, exist_ok=True)
    listed = ", ".join(f'"{slug}"' for slug in slugs)
    (folder / "course.toml").write_text(
        'title.en = "The course"\ntitle.ko = "강좌"\nsummary.en = "All of it."\n\n'
        f'[[modules]]\nslug = "first"\ntitle.en = "First"\nlessons = [{listed}]\n',
        encoding="utf-8",
    )
    return folder
