"""Prose becomes HTML without scripts or inline styles; an author's text is never HTML by itself."""

from __future__ import annotations

import html
import re
from pathlib import Path

import pytest

from app import i18n
from app.lessons.document import parse_document
from app.lessons.model import Cell, CellTag, LessonStatus, Prose
from app.lessons.render import content_digest, render_lesson
from tests.factories.lesson_source import CELL, FRONT_MATTER, lesson_text, prose_html, render_body

COURSE = "course/this"


def test_a_lesson_is_prose_and_cells_in_order() -> None:
    lesson = render_body(f"First.\n\n{CELL}\nThen.\n\n{CELL.replace('one', 'two')}")

    assert [type(block) for block in lesson.blocks] == [Prose, Cell, Prose, Cell]
    assert [block.line for block in lesson.blocks] == [7, 12, 15, 20]
    assert lesson.cell("two") == lesson.blocks[3]
    assert lesson.cell("three") is None
    assert (lesson.key, lesson.status, lesson.minutes) == (COURSE, LessonStatus.published, 5)


def test_a_cell_takes_its_machine_from_the_lesson_unless_it_names_its_own() -> None:
    own = "```{code-cell} python\n:name: own\n:topology: cpu\n:keras: 2\n\nx\n```\n"
    lesson = render_body(CELL + own, header=FRONT_MATTER + "topology: gpu:2\n")

    assert [(cell.topology, cell.keras) for cell in lesson.cells] == [("gpu:2", 3), ("cpu", 2)]


def test_a_learner_may_pick_what_the_lesson_offers_and_a_cell_may_say_otherwise() -> None:
    own = "```{code-cell} python\n:name: own\n:topology: cpu\n\nx\n```\n"
    other = "```{code-cell} python\n:name: other\n:topologies: [tpu:8, tpu:2]\n:keras: 3\n\nx\n```\n"
    header = FRONT_MATTER + "topologies: [gpu:2, gpu:4, workers:2xgpu:2]\nkerases: [2, 3]\n"
    lesson = render_body(CELL + own + other, header=header)

    offered = ("gpu:2", "gpu:4", "workers:2xgpu:2")
    assert (lesson.topology, lesson.topologies, lesson.keras, lesson.kerases) == ("gpu:4", offered, 3, (2, 3))
    assert [(cell.topology, cell.topologies, cell.kerases, cell.has_choice) for cell in lesson.cells] == [
        ("gpu:4", offered, (2, 3), True),
        ("cpu", ("cpu",), (2, 3), True),
        ("tpu:8", ("tpu:8", "tpu:2"), (3,), True),
    ]


def test_a_lesson_that_says_nothing_offers_nothing() -> None:
    (cell,) = render_body(CELL).cells

    assert (cell.topologies, cell.kerases, cell.has_choice) == (("gpu:4",), (3,), False)


def test_a_cell_without_a_caption_is_called_by_its_name() -> None:
    assert render_body(CELL.replace("one", "global-batch")).cells[0].title == "Global batch"


def test_a_removed_cell_is_kept_but_not_shown() -> None:
    lesson = render_body(CELL.replace(":name: one", ":name: one\n:tags: [remove-cell]"))

    assert lesson.blocks == ()
    assert lesson.cells[0].tags == {CellTag.remove_cell}


def test_code_is_coloured_by_classes() -> None:
    colours = ("nb", "print"), ("p", "("), ("mi", "1"), ("p", ")")

    assert render_body(CELL).cells[0].highlighted == "".join(
        f'<span class="{name}">{text}</span>' for name, text in colours
    )


def test_a_heading_links_to_itself_and_is_in_the_table_of_contents() -> None:
    lesson = render_body("## What `scope()` does\n\n## What scope() does\n\n### 범위와 变量\n")

    assert [(heading.id, heading.level) for heading in lesson.toc] == [
        ("what-scope-does", 2),
        ("what-scope-does-2", 2),
        ("범위와-变量", 3),
    ]
    first = lesson.blocks[0]
    assert isinstance(first, Prose)
    html = str(first.html)
    assert (
        '<h2 id="what-scope-does"><a class="anchor" href="#what-scope-does">What <code>scope()</code> does</a>' in html
    )


def test_a_heading_with_a_link_of_its_own_is_no_link() -> None:
    assert prose_html("## See [this](https://example.org)\n").startswith(
        '<h2 id="see-this">See <a href="https://example.org"'
    )


def test_a_target_names_the_heading_below_it() -> None:
    assert '<h2 id="sum-rule">' in prose_html("(sum-rule)=\n## 합\n")


def test_the_title_is_not_repeated() -> None:
    assert prose_html("# The lesson\n\nWords.\n") == "<p>Words.</p>"


def test_a_table_scrolls_in_a_frame_of_its_own_that_a_keyboard_reaches() -> None:
    html = prose_html("| Strategy | State |\n|:--|--:|\n| one | two |\n")

    frame = '<div class="table-scroll" role="group" tabindex="0" aria-label="Table: Strategy, State"><table>'
    assert html.startswith(frame)
    assert '<th scope="col" class="right">State</th>' in html
    assert '<td class="right">two</td>' in html


def test_a_formula_is_mathml() -> None:
    assert "<math><mfrac><mn>1</mn><mi>N</mi></mfrac></math>" in prose_html("It is $\\frac{1}{N}$ here.\n")
    assert '<div class="math" tabindex="0"><math display="block">' in prose_html("$$\n\\sum_i x_i\n$$\n")
    assert '<math display="block">' in prose_html("```{math}\n\\begin{aligned} a &= b \\end{aligned}\n```\n")


def test_a_line_never_begins_with_the_punctuation_after_a_short_formula() -> None:
    formula = "<math><mi>x</mi></math>"
    assert prose_html("对 $x$：它（$x$）。\n") == (
        f'<p>对 <span class="unbroken">{formula}：</span>它（<span class="unbroken">{formula}）。</span></p>'
    )
    assert prose_html("An $x$, {math}`x` or none.\n") == (
        f'<p>An <span class="unbroken">{formula},</span> {formula} or none.</p>'
    )
    assert prose_html(f"It is ${'x' * 40}$.\n").endswith("</math></span>.</p>"), "it has the width of the phone already"


@pytest.mark.parametrize(
    "source", ["It is $LONG$ here.", "It is $$LONG$$ here.", "It is {math}`LONG` here.", "$$x$$ here"]
)
def test_a_formula_in_a_sentence_that_may_not_fit_a_phone_has_a_box_of_its_own(source: str) -> None:
    long = " + ".join(f"a_{{{number}}}" for number in range(15))
    assert '<span class="math" tabindex="0" role="group"><math' in prose_html(source.replace("LONG", long) + "\n")
    assert "<span" not in prose_html("It is $\\nabla_\\theta L = \\frac{1}{N}\\sum_i g_i$ here.\n")


def test_prices_are_no_formulas() -> None:
    assert "<math" not in prose_html("It costs 5$ or 6$ a day.\n")


@pytest.mark.parametrize(
    ("source", "html"),
    [
        (
            "```{note}\nWords.\n```\n",
            '<div class="admonition note" role="note">\n<p class="admonition-title">Note</p>\n<p>Words.</p>\n</div>',
        ),
        (
            ":::{warning}\nWords.\n:::\n",
            '<div class="admonition warning" role="note">\n<p class="admonition-title">Warning</p>',
        ),
        (
            "```{admonition} By *hand*\n:class: tip\nWords.\n```\n",
            '<div class="admonition tip" role="note">\n<p class="admonition-title">By <em>hand</em></p>',
        ),
        (
            "```{dropdown} Answer\n42\n```\n",
            '<details class="admonition dropdown">\n<summary>Answer</summary>\n<p>42</p>\n</details>',
        ),
        (
            '```{figure} assets/x.png\n:alt: A "chart"\n:width: 300\n\nIt *falls*.\n```\n',
            '<figure><img src="this/assets/x.png" alt="A &quot;chart&quot;" width="300" '
            'loading="lazy" decoding="async">'
            "<figcaption>\n<p>It <em>falls</em>.</p>",
        ),
        (
            "```{image} assets/x.png\n:alt: A\n```\n",
            '<p><img src="this/assets/x.png" alt="A" loading="lazy" decoding="async"></p>',
        ),
        (
            "```{table} Sums\n| a |\n|---|\n| 1 |\n```\n",
            '<figure class="captioned">\n<figcaption>Sums</figcaption>\n<div class="table-scroll"',
        ),
        ("Press {kbd}`Esc`.\n", "<kbd>Esc</kbd>"),
        (
            "```python\nx = 1\n```\n",
            '<pre class="listing" tabindex="0"><code class="language-python"><span class="n">x</span>',
        ),
        ("```\na < b\n```\n", '<pre class="listing" tabindex="0"><code class="language-text">a &lt; b</code></pre>'),
        ("Term\n: Meaning\n", "<dl>\n<dt>Term</dt>\n<dd>Meaning</dd>\n</dl>"),
        (
            "Word[^n] word[^n].\n\n[^n]: Foot.\n",
            '<a class="footnote-back" href="#fnref1-1" aria-label="Back to the text">',
        ),
        ("% a comment\nWords.\n", "<p>Words.</p>"),
    ],
)
def test_a_construct_has_its_html(source: str, html: str) -> None:
    assert html in prose_html(source)


@pytest.mark.parametrize(
    ("href", "address"),
    [
        ("../other/lesson.md#here", "other#here"),
        ("../other/lesson.ko.md", "other"),
        ("../other/", "other"),
        ("../../more/other/lesson.md", "../more/other"),
        ("assets/data.csv", "this/assets/data.csv"),
        ("#cell-one", "#cell-one"),
        ("https://example.org/?a=1&b=2", "https://example.org/?a=1&amp;b=2"),
    ],
)
def test_a_link_between_files_becomes_one_between_pages(href: str, address: str) -> None:
    assert f'<a href="{address}"' in prose_html(f"[x]({href})\n")


def test_raw_html_loses_its_tags_and_keeps_its_words() -> None:
    document = parse_document(
        lesson_text("A <script>alert(1)</script>.\n\n<div onclick=x>\n\n[x](javascript:y)\n"), "en"
    )
    lesson = render_lesson(document, course="c", slug="s", languages=("en",), path=Path("x"), digest="")
    html = "".join(str(getattr(block, "html", "")) for block in lesson.blocks)

    assert "alert(1)" in html
    assert "<script" not in html
    assert "<div" not in html
    assert "javascript:" not in html


def test_there_is_no_inline_style_anywhere() -> None:
    source = "| a |\n|:-:|\n| b |\n\n$$\n\\begin{cases} 1 & x>0 \\\\ 0 \\end{cases}\n$$\n\n```python\nx = 1\n```\n"

    assert not re.search(r"\sstyle=", prose_html(source))


def test_added_words_are_in_the_lessons_language(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(i18n, "_translations", lambda code: _Shouting(code))

    (note,) = render_body("```{note}\nx\n```\n", language="ko").blocks
    assert isinstance(note, Prose)
    html = str(note.html)
    assert '<p class="admonition-title">Note in ko</p>' in html


class _Shouting:
    def __init__(self, code: str) -> None:
        self._code = code

    def gettext(self, message: str) -> str:
        return f"{message} in {self._code}"


def test_a_digest_tells_texts_apart_and_where_they_end() -> None:
    assert content_digest("ab", "c") != content_digest("a", "bc")
    assert content_digest("ab", "c") == content_digest("ab", "c")


@pytest.mark.parametrize(
    "code", ["print(1)", "\n\nx = 1", 's = """\\n\n<&> \\u00e9 한 \t"""', "if 1:\n\ty = 1  # <b>", "f('&amp;')"]
)
def test_the_page_shows_a_cells_code_to_the_letter(code: str) -> None:
    """The page's script reads the original from there."""
    (cell,) = render_body(CELL.replace("print(1)", code)).cells

    assert html.unescape(re.sub(r"<[^>]+>", "", str(cell.highlighted))) == cell.code
