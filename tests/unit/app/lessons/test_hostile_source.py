"""A lesson of the largest size is read in a time that grows with its length, whatever it repeats.

Nothing measures time here: with work that grows with the square of the length, these inputs take many minutes.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from app.lessons.bibliography import parse_bibliography
from app.lessons.document import parse_document
from app.lessons.limited_table import MAX_LESSON_CELLS
from app.lessons.line_ranges import InvalidLines, select_lines
from app.lessons.render import render_lesson
from app.lessons.snapshot import Snapshot, load_snapshot
from tests.factories.lesson_source import lesson_text, write_lesson, write_toml


def _html(body: str, folder: Path) -> tuple[str, list[str]]:
    """The HTML of a body, and what is wrong with it."""
    document = parse_document(lesson_text(body), "en", folder=folder)
    lesson = render_lesson(document, course="c", slug="s", languages=("en",), path=folder / "lesson.md", digest="d")
    html = "".join(str(block.html) for block in lesson.blocks if hasattr(block, "html"))
    return html, [fault.text for fault in document.faults]


@pytest.mark.parametrize(
    "body",
    [
        pytest.param("{ref}`a" + " " * 300_000 + "b`", id="spaces in a role"),
        pytest.param("{abbr}`" + "(" * 300_000 + ")x" * 300_000 + "`", id="parentheses in a role"),
        pytest.param("\\begin{equation}\n" * 10_000, id="environments without an end"),
        pytest.param("(a)=\n" * 20_000, id="labels of nothing"),
        pytest.param("[^a" * 100_000, id="brackets without an end"),
        pytest.param("{a" * 100_000, id="braces without an end"),
        pytest.param(":::a\n" * 2_000, id="blocks without an end"),
    ],
)
def test_repetitions_are_read(body: str, tmp_path: Path) -> None:
    assert any(_html(body, tmp_path))


def test_equal_headings_and_cells_get_their_numbers(tmp_path: Path) -> None:
    many = 8_000
    document = parse_document(lesson_text("## a\n\n```{code-cell}\nx\n```\n\n" * many), "en")

    assert document.survey.headings[-1].id == f"a-{many}"
    assert document.cells[-1].name == f"x-{many}"


def test_terms_of_a_glossary_are_told_apart(tmp_path: Path) -> None:
    many = 8_000
    html, _ = _html("```{glossary}\n" + "".join(f"t{n}\n: Words.\n\n" for n in range(many)) + "```\n", tmp_path)

    assert html.count('<dt id="term-t') == many


def test_tables_have_a_limit_together(tmp_path: Path) -> None:
    columns = 250
    table = "|" + "a|" * columns + "\n|" + "-|" * columns + "\n" + "|\n" * 50 + "\n"
    listed = "```{list-table}\n* - a\n" + "  - a\n" * 60 + "* - b\n" * 60 + "```\n\n"
    html, wrong = _html(f"{table}{listed * 2}{table * 20}{listed * 20}", tmp_path)

    assert MAX_LESSON_CELLS - 13_000 < html.count("<td") + html.count("<th ") < MAX_LESSON_CELLS + 5_000
    assert [text for text in wrong if "the tables have more than 20,000 cells" in text]


def test_a_table_from_a_file_says_what_it_does_not_show(tmp_path: Path) -> None:
    (tmp_path / "wide.csv").write_text("a," * 90_000)
    (tmp_path / "long.csv").write_text("a,b\n" * 40_000)
    for name in ("wide", "long"):
        html, wrong = _html(f"```{{csv-table}}\n:file: {name}.csv\n```\n", tmp_path)
        assert html.count("<td") <= 5_001
        assert any("more than 5,000 cells" in text for text in wrong), wrong


def test_included_files_have_a_limit_together(tmp_path: Path) -> None:
    (tmp_path / "words.txt").write_text("x = 1\n" * 30_000)
    (tmp_path / "again.md").write_text("```{include} again.md\n```\n\n" * 20)
    html, wrong = _html("```{literalinclude} words.txt\n```\n\n" * 2_000, tmp_path)
    assert html.count('<pre class="listing"') == 6
    assert sum("is not shown, because a lesson can include" in text for text in wrong) == 1_994
    assert any("a lesson can include" in text for text in _html("```{include} again.md\n```\n", tmp_path)[1])


def test_lines_of_an_included_file_are_chosen_once() -> None:
    text = "a\n" * 100_000

    assert select_lines(text, {"lines": "1-99999, 3"}).count("a") == 99_999
    with pytest.raises(InvalidLines, match="200,001 parts"):
        select_lines(text, {"lines": "1," * 200_000 + "1"})


def test_a_bibliography_is_read_to_its_end() -> None:
    people = " and ".join(["Ada Byron"] * 1_000)
    assert {work.key for work in parse_bibliography("@a{b,c={\n" * 20_000)} == {"b"}
    assert parse_bibliography(f"@book{{k, author={{{people}}}}}")[0].citation == ("Byron et al.", "n.d.")


def test_broken_links_of_one_file_are_reported_up_to_a_limit(tmp_path: Path) -> None:
    body = "".join(f"## H{n}\n\n" for n in range(2_000)) + "".join(f"[a](#zz{n}) [b](#h{n})\n" for n in range(2_000))
    write_lesson(tmp_path / "course" / "one", body)
    write_toml(tmp_path, "one")
    broken = [mistake.text for mistake in load_snapshot(tmp_path, Snapshot()).mistakes]

    assert len(broken) == 101
    assert "more than 100 links of this file are broken" in broken[-1]
