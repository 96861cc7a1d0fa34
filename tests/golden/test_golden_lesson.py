"""A whole lesson, as page and as notebook, compared with golden files."""

from __future__ import annotations

from pathlib import Path

from app.exports.notebook import build_notebook, dump_notebook
from app.lessons.document import parse_document
from app.lessons.model import Cell, Lesson, Prose
from app.lessons.render import render_lesson
from tests.golden.golden_file import FOLDER, assert_golden


def _lesson() -> Lesson:
    path = FOLDER / "whole.md"
    document = parse_document(path.read_text(encoding="utf-8"), "en")
    assert document.faults == ()
    return render_lesson(
        document, course="course", slug="whole", languages=("en",), path=Path("whole.md"), digest="d" * 24
    )


def test_a_whole_lesson_renders_as_before() -> None:
    lesson = _lesson()
    parts = [f"<!-- {lesson.title} | {lesson.summary} | {lesson.topology} | {', '.join(lesson.tags)} -->"]
    parts += [f"<!-- {'#' * heading.level} {heading.text} -> {heading.id} -->" for heading in lesson.toc]
    for block in lesson.blocks:
        if isinstance(block, Cell):
            tags = ", ".join(sorted(block.tags))
            parts.append(f"<!-- line {block.line}: cell {block.name} | {block.title} | {block.topology} | {tags} -->")
            parts.append(str(block.highlighted))
        elif isinstance(block, Prose):
            parts.append(f"<!-- line {block.line} -->\n{block.html}")

    assert_golden("whole.html", "\n".join(parts) + "\n")


def test_a_whole_lesson_is_the_same_notebook_as_before() -> None:
    assert_golden(
        "whole.ipynb", dump_notebook(build_notebook(_lesson(), "https://example.org/en/courses/course/whole")) + "\n"
    )
