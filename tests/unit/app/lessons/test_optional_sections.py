"""Sections that learners may skip: what they contain, and what does not count."""

from __future__ import annotations

import pytest

from app.exports.plain_markdown import MarkdownPart, plain_markdown_parts
from app.lessons.directives import lesson_warning
from app.lessons.document import parse_document
from app.progress.page_views import task_tallies
from app.progress.service import lesson_tasks, required_cells
from tests.factories.lesson_source import CELL, errors_in, errors_in_body, lesson_text, prose_html, render_body

TAG = '+++ {"tags": ["optional"]}\n\n'
QUIZ = ":::{quiz} Which?\n:name: which\n\n- [x] This\n- [ ] That\n:::\n"
EXERCISE = (
    "```{code-cell} python\n:name: yours\n:tags: [exercise]\n\n### BEGIN SOLUTION\nx = 1\n### END SOLUTION\n```\n"
)
NOTE = "Optional: you can complete the lesson without this section, and its minutes do not include it."


def cell(name: str) -> str:
    return CELL.replace("one", name)


def optional_in(body: str) -> frozenset[str]:
    assert errors_in_body(body) == []
    return parse_document(lesson_text(body), "en").optional


@pytest.mark.parametrize("end", ["## Next", "# Other"])
def test_a_section_ends_at_the_next_heading_of_its_level_or_a_higher_one(end: str) -> None:
    body = (
        f"{cell('before')}\n{TAG}## Aside\n\n{cell('first')}\n### Deeper\n\n{cell('second')}\n{end}\n\n{cell('after')}"
    )

    assert parse_document(lesson_text(body), "en").optional == {"first", "second"}


def test_a_subsection_can_be_optional_alone() -> None:
    body = f"## One\n\n{cell('a')}\n{TAG}### Aside\n\n{cell('b')}\n{QUIZ}\n### More\n\n{cell('c')}"

    assert optional_in(body) == {"b", "which"}


def test_two_neighbors_can_be_optional() -> None:
    body = f"{TAG}## One\n\n{cell('a')}\n{TAG}% why\n(here)=\n## Two\n\n{cell('b')}\n## Three\n\n{cell('c')}"

    assert optional_in(body) == {"a", "b"}


def test_a_heading_in_a_box_ends_nothing() -> None:
    body = f"{TAG}## Aside\n\n```{{note}}\n## In a box\n```\n\n{cell('a')}"

    assert parse_document(lesson_text(body), "en").optional == {"a"}


def test_a_section_ends_at_the_next_heading_of_its_level_as_written() -> None:
    body = f"## One\n\n{TAG}#### Aside\n\n{cell('a')}\n#### Next\n\n{cell('b')}"

    assert parse_document(lesson_text(body), "en").optional == {"a"}


@pytest.mark.parametrize(
    "metadata",
    [
        *('{"tags": ["other"]}', '{"tags": "optional"}', "optional", "[1", "[]", ""),
        pytest.param("[" * 100_000, id="nested without end"),
    ],
)
def test_other_metadata_says_nothing(metadata: str) -> None:
    assert optional_in(f"+++ {metadata}\n\n## One\n\n{cell('a')}") == frozenset()


@pytest.mark.parametrize("below", ["Words.\n\n## One\n", cell("a"), "+++\n\n## One\n", "```{note}\nA box.\n```\n", ""])
def test_a_tag_without_a_heading_is_reported(below: str) -> None:
    text = "no heading follows this line, so nothing becomes optional; write it above the heading of a section"

    assert errors_in_body(f"Words.\n\n{TAG}{below}") == [(3, text)]


@pytest.mark.parametrize(
    "nested", ["- +++ {0}\n\n  ## One\n", "> +++ {0}\n> ## One\n", "```{{note}}\n+++ {0}\n## One\n```\n"]
)
def test_a_tag_in_another_block_is_reported(nested: str) -> None:
    faults = errors_in_body(f"Words.\n\n{nested.format(TAG.strip().removeprefix('+++ '))}")

    assert [text for _, text in faults if "nothing becomes optional" in text]


def test_a_tag_above_the_title_is_reported_and_is_not_that_of_the_first_section() -> None:
    document = parse_document(f"{TAG}# Title\n\n## One\n\n{cell('a')}", "en")

    assert document.optional == frozenset()
    assert [fault.line for fault in document.faults if "nothing becomes optional" in fault.text] == [1]


def test_a_translation_tags_the_same_sections() -> None:
    body = f"## One\n\n{TAG}### Aside\n\n{cell('a')}\n## Two\n\n{cell('b')}"
    english = parse_document(lesson_text(body), "en")
    other = f"## 하나\n\n### 곁길\n\n{cell('a')}\n{TAG}## 둘\n\n{cell('b')}"
    korean = parse_document(lesson_text(other, "title: a\nsummary: b\n"), "ko", english)

    assert [text for _, text in errors_in(korean)] == [
        "'a' is in an optional section of the English lesson; tag the same sections here",
        "'b' is not in an optional section of the English lesson; tag the same sections here",
    ]
    assert korean.optional == english.optional == {"a"}


@pytest.mark.parametrize("other", ["### Aside\n", f"{TAG}## Aside\n", f"{TAG}### A\n\n{TAG}### B\n"])
def test_a_translation_tags_sections_without_cells_too(other: str) -> None:
    body = f"{CELL}\n## One\n\n{TAG}### Aside\n"
    english = parse_document(lesson_text(body), "en")
    text = "the optional sections are not those of the English lesson; tag the same sections here"

    assert parse_document(lesson_text(f"{CELL}\n## One\n\n{other}"), "ko", english).faults == (lesson_warning(1, text),)
    assert parse_document(lesson_text(body), "ko", english).faults == ()


def minutes_of(body: str) -> int | None:
    return parse_document(f"# T\n\n{body}", "en").header.minutes


def test_optional_sections_and_closed_boxes_take_no_minutes() -> None:
    words = "word " * 399 + "\n\n"

    assert minutes_of(f"{words}{cell('a')}") == 3
    assert minutes_of(f"{words}{cell('a')}\n{TAG}## Aside\n\n{words}{cell('b')}\n{EXERCISE}") == 3
    assert minutes_of(f"{words}{cell('a')}\n```{{dropdown}} Answer\n{words}```\n") == 3
    assert minutes_of(f"{words}{cell('a')}\n```{{note}}\n:class: dropdown\n\n{words}```\n") == 3
    assert minutes_of(f"{words}{cell('a')}\n```{{dropdown}} Answer\n:open:\n\n{words}```\n") == 5
    assert minutes_of(f"{words}{cell('a')}\n```{{note}}\n{words}```\n") == 5


def test_what_is_optional_is_not_needed_to_complete_a_lesson() -> None:
    other = QUIZ.replace("which", "why")
    lesson = render_body(f"{cell('a')}\n{QUIZ}\n{TAG}## Aside\n\n{cell('b')}\n{EXERCISE}\n{other}")

    assert lesson_tasks(lesson) == [("quiz", "course/this#which")]
    assert required_cells(lesson) == ["course/this#a"]
    assert [(tally.kind, tally.total) for tally in task_tallies(lesson, [])] == [("quiz", 1)]


def test_the_page_says_so_below_the_heading() -> None:
    html = prose_html(f"## One\n\n{TAG}### Aside\n\nWords.\n\n#### Deeper\n\nWords.\n")

    assert html.count(NOTE) == 1
    assert f'Aside</a></h3>\n<p class="fine">{NOTE}</p>\n<p>Words.</p>' in html


@pytest.mark.parametrize(("heading", "plain"), [("### A {math}`x`", "### A $x$"), ("A *b*\n-----", "A *b*\n-----")])
def test_a_download_says_so_below_the_heading(heading: str, plain: str) -> None:
    (part,) = plain_markdown_parts(f"## One\n\nWords.\n\n{TAG}{heading}\n\nMore.\n", "https://example.org/x")

    assert isinstance(part, MarkdownPart)
    assert part.markdown == f"## One\n\nWords.\n\n\n{plain}\n\n*{NOTE}*\n\nMore."
