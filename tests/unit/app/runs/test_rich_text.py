"""Markdown and LaTeX of a learner's code: formulas and tables, never raw HTML, within limits of size and time."""

from __future__ import annotations

import pytest

from app.runs.rich_text import MOST_HTML, MOST_TEXT, latex_to_html, markdown_to_html


def test_markdown_becomes_html_without_headings_that_join_the_pages_outline() -> None:
    assert markdown_to_html("# Hi *you*\n\n- ~~a~~\n- `b`") == (
        '<p class="heading">Hi <em>you</em></p>\n<ul>\n<li><s>a</s></li>\n<li><code>b</code></li>\n</ul>'
    )


def test_a_formula_becomes_mathml_within_a_sentence_and_on_its_own() -> None:
    html = markdown_to_html("If $a<b$:\n\n$$\nx^2\n$$")
    assert "<p>If <math><mi>a</mi><mo>&lt;</mo><mi>b</mi></math>:</p>" in html
    assert '<div class="math" tabindex="0" role="group"><math display="block"><msup>' in html


@pytest.mark.parametrize(
    "latex",
    [
        r"$\displaystyle \frac{a}{b}$",
        r"$$\frac{a}{b}$$",
        r"\frac{a}{b}",
        r"\begin{equation}\frac{a}{b}\end{equation}",
        r"\begin{align*} x &= \frac{a}{b} \end{align*}",
        r"so $\frac{a}{b}$ is it",
    ],
)
def test_latex_is_a_formula_however_it_is_delimited(latex: str) -> None:
    assert "<mfrac><mi>a</mi><mi>b</mi></mfrac>" in latex_to_html(latex)


ATTACKS = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "[x](javascript:alert(1))",
    "[x](data:text/html,<script>alert(1)</script>)",
    "[x](/en/settings)",
    "![x](https://evil.example/x.png)",
    "$\\text{<script>alert(1)</script>}$",
    "$\\href{javascript:alert(1)}{x}$",
    "$<img src=x onerror=alert(1)>$",
    "\ue0000\ue001<script>alert(1)</script>",
    "$x$ \ue0000\ue001 \ue0007\ue001",
    "`</code><script>alert(1)</script>`",
    "|<script>|\n|--|\n|<b onclick=x>|",
    '[x](http://a.example "\\" onclick=alert(1) x=\\"")',
    "<!-- --><svg><script>alert(1)</script></svg>",
]


@pytest.mark.parametrize("number", ["0", "7", "9" * 5_000])
def test_no_text_can_name_the_place_of_a_formula_not_even_by_character_references(number: str) -> None:
    place = f"&#xE000;{number}&#xE001;"
    html = markdown_to_html(f'$x$ {place} [a](https://a.example "{place}")')
    assert html.count("<math") == 1
    assert html.startswith("<p><math><mi>x</mi></math> ")


@pytest.mark.parametrize("source", ATTACKS)
def test_nothing_in_the_text_becomes_an_element_or_an_address_of_its_own(source: str) -> None:
    for html in (markdown_to_html(source), latex_to_html(source)):
        for forbidden in ("<script", "<img", "<svg", "<b ", 'href="javascript', 'href="data', 'href="/', ' onclick="'):
            assert forbidden not in html, html


@pytest.mark.parametrize(
    "source",
    [
        "$\\def\\a{\\b\\b}\\def\\b{\\c\\c}\\def\\c{x}\\a$",
        "$" + "{" * MOST_TEXT + "$",
        "$x$ " * (MOST_TEXT // 4),
        "[" * MOST_TEXT,
        "|a" * 5000 + "\n" + "|-" * 5000 + "\n|\n|",
        "a\n|-|\n" + "|" * 19_000,
        "x" * (MOST_TEXT + 1),
        "> " * (MOST_TEXT // 2),
    ],
)
def test_a_text_without_measure_gives_a_result_with_one(source: str) -> None:
    assert len(markdown_to_html(source)) <= MOST_HTML
    assert len(latex_to_html(source)) <= MOST_HTML


def test_a_formula_that_cannot_be_converted_is_shown_as_it_was_written() -> None:
    assert latex_to_html(r"$\unknown{a<b}$") == r"<code>\unknown{a&lt;b}</code>"
    assert latex_to_html("$" + "x" * 3000 + "$") == f"<code>{'x' * 3000}</code>"
