"""The lessons of this repository as files: no errors, the same cells for jupytext, complete notebooks."""

from __future__ import annotations

import ast
import builtins
import re
import symtable
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from itertools import chain
from pathlib import Path

import jupytext
import nbformat
import pytest

from app.cli.lesson_cover import cover_words, drawn_words
from app.exports.notebook import build_notebook, dump_notebook
from app.lessons.document import parse_document
from app.lessons.exercise_files import CHECKS_FILE
from app.lessons.model import Cell, CellTag, Lesson, LessonStatus, Prose
from app.lessons.python_source import without_magics
from tests.factories.shipped_lessons import shipped_catalog
from tests.golden.golden_file import FOLDER as GOLDEN

CATALOG = shipped_catalog()
LESSONS = list(CATALOG.every())
RUNNERS = Path(__file__).parents[2] / "runners"
PLACEHOLDER = re.compile(r"\{\w*\}")
PARTS = {
    "en": ("After this lesson you can", "What to remember", "Further reading"),
    "ko": ("이 레슨을 마치면 다음을 할 수 있습니다.", "기억할 것", "더 읽을거리"),
    "zh": ("学完本课，你能够", "要点", "延伸阅读"),
}
"""By language: the words before the list of what learners can do afterwards, and the last two headings."""


def test_no_file_has_a_mistake() -> None:
    assert [str(problem) for problem in CATALOG.problems] == []


def test_the_course_has_its_lessons() -> None:
    assert {"distribution-strategies", "scaling-the-loss", "custom-training-loop"} <= {
        lesson.slug for lesson in LESSONS
    }
    assert all(lesson.status is LessonStatus.published for lesson in LESSONS)


def test_no_lesson_guesses_its_minutes() -> None:
    """The estimate is the same for all of them. Nobody has measured how long learners take."""
    assert [lesson.slug for lesson in LESSONS if re.search(r"^minutes:", lesson.source, re.MULTILINE)] == []


def test_a_lesson_takes_15_to_35_minutes() -> None:
    assert {lesson.slug: lesson.minutes for lesson in LESSONS if not 15 <= lesson.minutes <= 35} == {}


def test_nothing_needs_what_an_optional_section_defines() -> None:
    skipped = [_needs_of_skipped(lesson.cells, lesson.optional) for lesson in LESSONS if lesson.language == "en"]
    assert list(chain(*skipped)) == []


def test_a_cell_that_needs_what_an_optional_section_defines_is_found() -> None:
    codes = {
        "one": "a = 1\nimport os",
        "aside": "a = b = 2\ndef f(): pass",
        "two": "def g(b):\n    return a, b, c, f, os",
    }
    cells = [replace(LESSONS[0].cells[0], name=name, code=code) for name, code in codes.items()]
    assert _needs_of_skipped(cells, {"aside"}) == ["two: f"]
    assert _needs_of_skipped(cells, set()) == []


def _needs_of_skipped(cells: Iterable[Cell], optional: Collection[str]) -> list[str]:
    """The cells outside optional sections with the names that no cell defines before them but an optional one."""
    defined: dict[tuple[str, int], set[str]] = defaultdict(set)
    skipped: dict[tuple[str, int], set[str]] = defaultdict(set)
    found = []
    for cell in cells:
        session = cell.topology, cell.keras
        table = symtable.symtable(without_magics(cell.code)[0], cell.name, "exec")
        bound = {one.get_name() for one in table.get_symbols() if one.is_assigned() or one.is_imported()}
        if cell.name in optional:
            skipped[session] |= bound
            continue
        missing = _read_globals(table) - bound - defined[session]
        found += [f"{cell.name}: {name}" for name in sorted(missing & skipped[session])]
        defined[session] |= bound
    return found


def _read_globals(table: symtable.SymbolTable) -> set[str]:
    here = {
        one.get_name()
        for one in table.get_symbols()
        if one.is_referenced() and (table.get_type() == "module" or one.is_global())
    }
    return here.union(*map(_read_globals, table.get_children()))


@pytest.mark.parametrize("lesson", LESSONS, ids=lambda lesson: f"{lesson.slug}-{lesson.language}")
def test_it_has_a_drawing_in_its_language(lesson: Lesson) -> None:
    drawings = re.findall(r"assets/[\w-]+(?:\.(ko|zh))?\.svg", lesson.source)
    assert drawings
    assert set(drawings) <= {lesson.language if lesson.language != "en" else ""}


@pytest.mark.parametrize("lesson", LESSONS, ids=lambda lesson: f"{lesson.slug}-{lesson.language}")
def test_it_says_what_it_teaches_asks_and_ends_with_what_to_read(lesson: Lesson) -> None:
    aims, recap, reading = PARTS[lesson.language]
    begin, *sections = re.split(r"^## (.+)\n", lesson.source, flags=re.MULTILINE)
    texts = dict(zip(sections[::2], sections[1::2], strict=True))

    assert begin.count("\n- ", begin.index(f"\n{aims}\n\n- ")) >= 3
    assert len(lesson.exercises) >= 2
    assert lesson.predictions
    assert len(lesson.quizzes) >= 2
    assert texts[recap].count("\n- ") >= 3
    assert len(re.findall(r"\]\(https://", texts[reading])) >= 2
    assert list(texts)[-2:] == [recap, reading]


@pytest.mark.parametrize("lesson", LESSONS, ids=lambda lesson: f"{lesson.slug}-{lesson.language}")
def test_emphasis_is_shown_as_emphasis(lesson: Lesson) -> None:
    """Asterisks between a punctuation mark and a letter end nothing: write a space, or other marks."""
    html = " ".join(block.html for block in lesson.blocks if isinstance(block, Prose))
    words = re.sub(r"<[^>]+>", "", re.sub(r"<(pre|code|math|svg)\b.*?</\1>", "", html, flags=re.DOTALL))

    assert re.findall(r".{0,20}\*.{0,20}", words) == []


@pytest.mark.parametrize("lesson", LESSONS, ids=lambda lesson: f"{lesson.slug}-{lesson.language}")
def test_its_cover_shows_its_present_words(lesson: Lesson) -> None:
    assert lesson.cover is not None, f"draw it: lockstep lesson cover {lesson.slug}"
    course = CATALOG.course(lesson.course, lesson.language).title
    assert drawn_words(lesson.cover.read_bytes()) == cover_words(course, lesson), f"lockstep lesson cover {lesson.slug}"


@pytest.mark.parametrize("lesson", LESSONS, ids=lambda lesson: f"{lesson.slug}-{lesson.language}")
def test_learners_get_no_marks_and_no_answers(lesson: Lesson) -> None:
    for words in ("BEGIN SOLUTION", "END SOLUTION", "{solution}", "- [x]", ":answer:", ":from:"):
        assert words not in lesson.source
        assert not [cell.name for cell in lesson.cells if words in cell.code]
    for cell in lesson.exercises:
        assert cell.exercise is not None
        assert cell.code != cell.exercise.solution
        assert cell.exercise.solution not in lesson.source


def test_diagnoses_of_wrong_answers_are_words_of_messages() -> None:
    common = [text for path in (RUNNERS / "checks").glob("*.py") for text in _strings(path.read_text(encoding="utf-8"))]
    common += [*_strings((RUNNERS / "wire" / "check_messages.py").read_text(encoding="utf-8")), *dir(builtins)]
    unknown = []
    for lesson in LESSONS:
        folder = lesson.source_path.parent
        sources = [path.read_text(encoding="utf-8") for path in folder.glob(CHECKS_FILE)]
        messages = {
            *common,
            *(text for source in sources for text in _strings(source)),
            *(cell.code for cell in lesson.cells),
        }
        unknown += [
            f"{answer.path.relative_to(folder.parent)}: {answer.diagnosis}"
            for cell in lesson.exercises
            if cell.exercise
            for answer in cell.exercise.wrong_answers
            if not any(_may_contain(message, answer.diagnosis) for message in messages)
        ]

    assert unknown == []


def _strings(source: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def _may_contain(message: str, diagnosis: str) -> bool:
    """Whether the message contains the diagnosis, or all but a few words of it, for which it has placeholders."""
    if diagnosis in message:
        return True
    known = {word.strip(".,:;") for word in message.split()}
    words = diagnosis.split()
    others = sum(word not in known for word in words)
    return others <= len(PLACEHOLDER.findall(message)) and 2 * others < len(words)


@pytest.mark.parametrize("lesson", LESSONS, ids=lambda lesson: f"{lesson.slug}-{lesson.language}")
def test_jupytext_finds_the_same_cells(lesson: Lesson) -> None:
    found = _jupytext_cells(lesson.source)

    assert [code for _, code in found] == [cell.code for cell in parse_document(lesson.source, "en").cells]
    assert [name for name, _ in found] == [cell.name for cell in lesson.cells]


def test_jupytext_finds_the_same_cells_in_the_golden_lesson() -> None:
    source = (GOLDEN / "whole.md").read_text(encoding="utf-8")

    assert _jupytext_cells(source) == [(cell.name, cell.code) for cell in parse_document(source, "en").cells]


@pytest.mark.parametrize("lesson", LESSONS, ids=lambda lesson: f"{lesson.slug}-{lesson.language}")
def test_every_lesson_is_a_notebook_with_its_pictures(lesson: Lesson) -> None:
    made = nbformat.reads(dump_notebook(build_notebook(lesson, "https://example.org/en/courses/a/b")), as_version=4)

    nbformat.validate(made)
    code = [cell for cell in made.cells if cell.cell_type == "code"]
    assert all(made.source.endswith(cell.code) for made, cell in zip(code[1:], lesson.cells, strict=True))
    for cell in made.cells:
        assert cell.source.count("](attachment:") >= len(cell.get("attachments", {}))
        assert "```{" not in cell.source
        assert ":::" not in cell.source


@pytest.mark.parametrize("lesson", LESSONS, ids=lambda lesson: f"{lesson.slug}-{lesson.language}")
def test_every_lesson_has_something_to_run_and_to_read(lesson: Lesson) -> None:
    assert [cell for cell in lesson.cells if CellTag.skip_execution not in cell.tags]
    assert len(lesson.toc) >= 2
    assert lesson.summary


def _jupytext_cells(source: str) -> list[tuple[str, str]]:
    cells = jupytext.reads(source, fmt="md:myst").cells
    return [(cell.metadata["name"], cell.source) for cell in cells if cell.cell_type == "code"]
