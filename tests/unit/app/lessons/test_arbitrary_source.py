"""Whatever a lesson's file contains, reading it gives a lesson or errors, each with a line of the file."""

from __future__ import annotations

import re
from pathlib import Path

from hypothesis import example, given
from hypothesis import strategies as st

from app.exports.plain_markdown import CellPlaceholder, plain_markdown_parts
from app.lessons.course_file import parse_course
from app.lessons.document import LessonDecodeError, decode_source, parse_document
from app.lessons.python_source import find_syntax_issue, same_code
from app.lessons.render import render_lesson
from tests.factories.hypothesis_examples import example_count
from tests.factories.lesson_source import CELL, FRONT_MATTER, lesson_text

_STYLE_OR_SCRIPT = re.compile(r"<(script|style|iframe|object|embed|form)\b|\sstyle=|\son\w+=", re.IGNORECASE)

_HEADERS = ["---\n", "title: x\n", "minutes: ", "tags: [", "]\n", "&a", "*a", ":name: ", ":tags: [", ":caption: "]
_DIRECTIVES = ["{code-cell}", "{note}", "{figure} ", "{table}", "{admonition} T\n", "{dropdown}", "{math}\n", "{kbd}`"]
_PUBLISHED = [
    "```{tab-set}\n",
    ":::{tab-item} A\n",
    "````{grid}\n",
    "```{card} T\n^^^\n+++\n",
    "```{exercise-start}\n```\n",
    "```{exercise-end}\n```\n",
    "```{solution-start} c\n```\n",
    "```{solution-end}\n```\n",
    "```{list-table}\n* - a\n  - b\n",
    "```{csv-table}\n:header: a\n",
    "```{glossary}\nTerm\n  Meaning\n",
    "```{bibliography}\n```\n",
    "```{prf:lemma} L\n:label: id\n",
    "```{code-cell}\nx = 1\n```\n",
    "```{math}\n:label: m\n",
    "$$ (m)\n",
    "\\begin{align}\n",
    "\\end{align}\n",
    "{ref}`id`",
    "{numref}`a %s <m>`",
    "{cite:t}`c`",
    "<b>",
    "</b>",
]
_TASKS = [
    "```{quiz} Q\n:name: q\n\n",
    "```{predict} P\n:name: p\n:cell: c\n",
    "```{exercise} E\n:label: c\n",
    "```{solution} c\n",
    "```{code-cell}\n:name: c\n:tags: [exercise]\n:expect: x\n",
    ":from: '{number}'\n",
    ":answer: 1\n",
    "- [x] right\n",
    "- [ ] wrong\n\n  why\n",
    "### BEGIN SOLUTION\n",
    "#: x\n",
    "### END SOLUTION\n",
    "```\n",
]
_FENCES = ["```", "````", ":::", "~~~", "`", "$", "$$", "\\frac{", "}", "\\", "<!--", "-->", "<script>", "</script>"]
_BLANKS = ["\n", "\n\n", "  ", "    ", "\t", "\r\n", "\r", "\x00", "\ufeff", "\u2028", "\x0c", "한국", "𝟙"]
_BLOCKS = [
    "> ",
    "- ",
    "1. ",
    "# ",
    "## ",
    "#### ",
    ": ",
    "% ",
    "+++",
    "(target)=\n",
    "| a | b |\n|---|---|\n",
    "| `c` |",
]
_LINKS = ["[^1]", "[^1]: ", "[a](", ")", "![", "](assets/x.png)", "../one/lesson.md", "javascript:x", "#id", "<a@b>"]
_CODE = ["def f(", "print(1)\n", "%time ", "!ls\n", "hide-input"]
_PIECES = st.sampled_from([*_HEADERS, *_DIRECTIVES, *_TASKS, *_FENCES, *_BLANKS, *_BLOCKS, *_LINKS, *_CODE])
_SOURCES = st.one_of(
    st.text(max_size=200),
    st.lists(_PIECES, max_size=40).map("".join),
    st.lists(st.sampled_from(_TASKS), max_size=30).map(lambda pieces: lesson_text("".join(pieces))),
    st.lists(st.sampled_from([*_PUBLISHED, *_BLOCKS, "```\n", ":::\n"]), max_size=30).map("".join),
    st.lists(_PIECES, max_size=40).map(lambda pieces: lesson_text("".join(pieces))),
    st.lists(st.one_of(_PIECES, st.text(max_size=5)), max_size=40).map(lambda pieces: lesson_text("".join(pieces))),
)
_MANY = example_count(100)


@_MANY
@given(_SOURCES)
@example(lesson_text("a: &x [*x]\n"))
@example("---\na: &x [*x]\n---\n")
@example(lesson_text("> % a\n>"))
@example("---\ntags: " + "[" * 2000 + "\n---\n")
@example(lesson_text("> " * 300))
@example(lesson_text(":::{note}\n" * 50))
@example(lesson_text("$" + "{" * 5000 + "$"))
@example(lesson_text("```{code-cell}\n:name: x\n" + "(" * 2000 + "\n```\n"))
@example(lesson_text("`" * 1000 + "[" * 2000))
@example(lesson_text("```{code-cell}\n:name: x\nx = '\\d' is 3\n```\n"))
def test_any_text_ends_in_a_lesson_or_in_mistakes_with_lines(source: str) -> None:
    try:
        text = decode_source(source.encode("utf-8", "surrogatepass"))
    except LessonDecodeError:
        return
    document = parse_document(text, "en")

    assert all(1 <= fault.line <= text.count("\n") + 1 and fault.text for fault in document.faults)
    assert list(document.faults) == sorted(document.faults, key=lambda fault: (fault.line, fault.text))
    lesson = render_lesson(document, course="c", slug="s", languages=("en",), path=Path("lesson.md"), digest="")
    assert len(lesson.cells) == plain_markdown_parts(text, "https://example.org/a").count(CellPlaceholder())
    learners = plain_markdown_parts(lesson.source, "https://example.org/a")
    assert document.faults or len(lesson.cells) == learners.count(CellPlaceholder())
    for block in lesson.blocks:
        html = getattr(block, "html", None) or getattr(block, "highlighted", "")
        assert not _STYLE_OR_SCRIPT.search(re.sub(r">[^<]*<", "><", f">{html}<")), html


@_MANY
@given(_SOURCES, _SOURCES)
@example("", ">%\n>")
def test_any_translation_of_any_text_ends_the_same_way(english: str, translation: str) -> None:
    original = parse_document(lesson_text(f"{CELL}{english}"), "en")
    document = parse_document(translation, "ko", original)

    assert all(1 <= fault.line <= translation.count("\n") + 1 + translation.count("\r") for fault in document.faults)


@_MANY
@given(st.text(max_size=200) | st.lists(_PIECES, max_size=20).map("".join))
def test_any_code_is_python_or_has_a_faulty_line(code: str) -> None:
    fault = find_syntax_issue(code)

    assert fault is None or (fault.line >= 1 and fault.reason)
    assert same_code(code, code)


_TOML = st.sampled_from(
    [
        "title",
        "summary",
        ".en",
        ".ko",
        ".xx",
        " = ",
        '"x"',
        "1",
        "[",
        "]",
        "[[modules]]\n",
        "lessons",
        "outcomes.en = ",
        "slug",
        "\n",
        '"a"',
        "{",
    ]
)


@_MANY
@given(st.text(max_size=100) | st.lists(_TOML, max_size=30).map("".join))
def test_any_course_file_ends_in_a_course_or_in_faults_with_lines(text: str) -> None:
    course, faults = parse_course(text, "course")

    assert course is not None or faults
    assert all(1 <= fault.line <= text.count("\n") + 1 + text.count("\r") and fault.text for fault in faults)


def test_the_header_of_the_tests_is_without_mistakes() -> None:
    assert not parse_document(lesson_text(header=FRONT_MATTER), "en").faults
