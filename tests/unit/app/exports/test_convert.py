"""A lesson as an HTML page, a script and Markdown: complete, for any reader, and harmless."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

from app.exports.convert import to_html, to_markdown, to_script
from app.exports.latest_runs import CellRun
from app.exports.notebook import build_notebook
from app.lessons.document import parse_document
from app.lessons.render import render_lesson
from runners.wire.protocol import EVENT_ADAPTER
from tests.factories.lesson_source import CELL, FRONT_MATTER, lesson_text, render_body

PAGE = "https://example.org/en/courses/course/this"
BODY = f"# The lesson\n\nIt is $x^2$ & *more*.\n\n$$\n\\frac{{1}}{{N}}\n$$\n\n{CELL}"
HOSTILE = {
    "text/html": "<b>bold</b><script>alert(1)</script><img src=https://evil.example/x onerror=alert(2)>",
    "text/markdown": "<script>alert(3)</script>",
    "application/javascript": "alert(4)",
    "text/plain": "plain",
}


def _ran(*events: dict[str, object]) -> dict[str, CellRun]:
    told = tuple(EVENT_ADAPTER.validate_python({"seq": n, "at_ms": 0, **event}) for n, event in enumerate(events, 1))
    return {"one": CellRun("print('mine')", told, 1)}


def test_the_page_reaches_no_other_host_and_runs_no_script() -> None:
    page = to_html(build_notebook(render_body(BODY), PAGE))

    assert "default-src 'none'; img-src data:; style-src 'unsafe-inline'" in page
    assert "<script" not in page
    assert set(re.findall(r'(?:src|href)="(https?://[^"]*)"', page)) == {PAGE}
    assert re.findall(r"@import|url\((?!\"?data:)", page) == []


def test_the_page_shows_formulas_code_and_outputs() -> None:
    page = to_html(
        build_notebook(render_body(BODY), PAGE, _ran({"kind": "text", "stream": "stdout", "text": "0.5 < 1\n"}))
    )

    assert "<title>The lesson</title>" in page
    assert 'lang="en"' in page
    assert page.count("<math") == 2
    assert "mine" in page
    assert "0.5 &lt; 1" in page


def test_what_a_learners_code_displayed_runs_nothing_in_the_page() -> None:
    display = {"kind": "display", "data": HOSTILE, "metadata": {}, "result": False, "update": False}
    page = to_html(build_notebook(render_body(BODY), PAGE, _ran(display)))

    assert "<b>bold</b>" in page
    assert "<script" not in page
    assert "onerror" not in page
    assert "evil.example" not in page
    assert "alert(" not in page


def test_html_of_an_author_leads_to_no_other_page_and_sends_nothing() -> None:
    html = (
        '<meta http-equiv="refresh" content="0;url=file:///etc/hostname">\n'
        '<base href="https://evil.example/"><form action="https://evil.example/"><input name="password"></form>\n'
        '<a href="data:text/html,x">x</a> <a href="javascript:alert(5)">y</a> <p onclick="alert(6)">words</p>\n'
    )
    details = "<details><summary>More</summary>\n\n* [ ] open\n\n</details>\n"
    document = parse_document(lesson_text(f"{BODY}\n{html}\n{details}"), "en")
    path = Path("course/this/lesson.md")
    lesson = render_lesson(document, course="course", slug="this", languages=("en",), path=path, digest="d")
    page = to_html(build_notebook(lesson, PAGE))

    assert not re.search(
        r"<(?:meta http-equiv=.refresh|base|form)|evil\.example|alert\(|data:text|name=.password", page
    )
    assert "<p>words</p>" in page
    assert "<details><summary>More</summary>" in page
    assert re.search(r'<input[^>]* type="checkbox"', page)


def test_html_that_takes_long_to_clean_is_shown_as_text() -> None:
    data = {"text/html": "<b>" * 100_000 + "markup", "text/plain": "what it says"}
    page = to_html(build_notebook(render_body(BODY), PAGE, _ran({"kind": "display", "data": data})))

    assert "what it says" in page
    assert "markup" not in page


def test_text_whose_colors_take_long_has_none() -> None:
    few = _ran({"kind": "text", "stream": "stdout", "text": "\x1b[31mred\x1b[0m"})
    many = _ran({"kind": "text", "stream": "stdout", "text": "\x1b[31m<red>\x1b[0m" * 20_000})

    assert '<span class="ansi-red-fg">red</span>' in to_html(build_notebook(render_body(BODY), PAGE, few))
    page = to_html(build_notebook(render_body(BODY), PAGE, many))
    assert page.count("&lt;red&gt;") == 20_000
    assert 'ansi-red-fg">' not in page


def test_the_script_is_python_with_the_prose_as_comments() -> None:
    cell = CELL.replace("print(1)", "%matplotlib inline\nprint(40 + 2)")
    script = to_script(build_notebook(render_body(f"Words.\n\n{cell}", header=FRONT_MATTER + "topology: cpu\n"), PAGE))

    ast.parse(script)
    assert "# Words." in script
    assert "# %matplotlib inline\n" in script
    body = script.partition("# Words.")[2]
    ran = subprocess.run([sys.executable, "-I", "-c", body], capture_output=True, text=True, check=True)
    assert ran.stdout == "42\n"


def test_cells_for_another_machine_are_comments_in_a_script() -> None:
    other = CELL.replace("one", "two").replace("print(1)", ":topology: workers:2\n\nprint(2)").replace("\n\n:t", "\n:t")
    script = to_script(build_notebook(render_body(f"{CELL}\n{other}"), PAGE))

    assert "\nprint(1)\n" in script
    assert "# Needs workers:2, Keras 3\n# print(2)\n" in script
    own = to_script(build_notebook(render_body(CELL, header=FRONT_MATTER + "topology: workers:2\n"), PAGE))
    assert "# Needs workers:2, Keras 3\nprint(1)\n" in own


def test_markdown_holds_prose_code_and_outputs() -> None:
    text = to_markdown(
        build_notebook(render_body(BODY), PAGE, _ran({"kind": "text", "stream": "stdout", "text": "out\n"}))
    )

    assert text.startswith("# The lesson\n")
    assert "It is $x^2$ & *more*." in text
    assert "```python\nprint('mine')\n```" in text
    assert "    out\n" in text
