"""Markdown of learners: rendered like a lesson, and unable to do what only authors may."""

from __future__ import annotations

import asyncio
import threading
import time
from html.parser import HTMLParser

import pytest

from app.i18n import gettext, use_language
from app.lessons import untrusted_markdown
from app.lessons.untrusted_markdown import (
    MATH_ATTRIBUTES,
    MAX_HTML_BYTES,
    MAX_LENGTH,
    render_untrusted_markdown,
    render_untrusted_texts,
    run_in_render_thread,
)
from tests.factories.xss_payloads import XSS_PAYLOADS

SAFE_ATTRIBUTES = MATH_ATTRIBUTES | {
    "href",
    "title",
    "rel",
    "class",
    "start",
    "tabindex",
    "role",
    "aria-label",
    "scope",
}


class _Elements(HTMLParser):
    """All elements of a document with their attributes."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


def test_text_tables_code_and_formulas_look_as_in_lessons() -> None:
    html = render_untrusted_markdown("# Title\n\nSome *text*, $x^2$.\n\n|a|\n|-|\n|1|\n\n```python\nprint(1)\n```")

    assert "<h2>Title</h2>" in html
    assert "<em>text</em>" in html
    assert "<msup>" in html
    assert '<span class="math" tabindex="0" role="group"><math' in render_untrusted_markdown(f"It is ${'a + ' * 20}b$.")
    assert '<th scope="col">a</th>' in html
    assert '<span class="nb">print</span>' in html


@pytest.mark.parametrize("payload", XSS_PAYLOADS)
def test_no_markup_gets_through(payload: str) -> None:
    for source in (payload, f"a {payload} b", f"[a]({payload})", f"${payload}$", f"|{payload}|\n|-|\n"):
        html = render_untrusted_markdown(source)
        for tag, attributes in _Elements(html).found:
            assert tag not in {"script", "style", "img", "svg", "iframe", "form", "input", "object"}, source
            assert set(attributes) <= SAFE_ATTRIBUTES, source
            assert (attributes.get("href") or "https:").startswith(("https:", "http:", "mailto:")), source


@pytest.mark.parametrize(
    "source",
    ["![a](assets/map.svg)", "```{figure} assets/map.svg\n```", "```{image} assets/map.svg\n```", "[a](other.md)"],
)
def test_files_of_lessons_are_out_of_reach(source: str) -> None:
    html = render_untrusted_markdown(source)

    assert "<img" not in html
    assert "<svg" not in html
    assert "href" not in html


@pytest.mark.parametrize(
    "source",
    [
        "[" * MAX_LENGTH,
        "$" + "{" * (MAX_LENGTH - 2) + "$",
        "|a" * 1500 + "|\n" + "|-" * 1500 + "|\n" + "|\n" * 200,
        ">" * MAX_LENGTH,
        "*a " * 3000,
        "```python\n" + "(" * 9900 + "\n```",
        "x" * (MAX_LENGTH + 1),
    ],
)
def test_the_worst_text_takes_a_moment_and_stays_small(source: str) -> None:
    began = time.process_time()

    html = render_untrusted_markdown(source)

    assert time.process_time() - began < 3
    assert len(html) < 2 * MAX_HTML_BYTES


@pytest.mark.parametrize("opening", ["![", "[a](", "<!-- "])
def test_a_text_that_opens_more_than_anybody_writes_is_shown_as_it_is(opening: str) -> None:
    assert "<pre" not in render_untrusted_markdown(opening * 600)
    assert render_untrusted_markdown(opening * 601).startswith('<pre class="listing"')


def test_of_many_texts_of_a_page_only_a_part_is_rendered_and_all_are_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(untrusted_markdown, "MAX_PAGE_LENGTH", 20)

    first, long, other, last = render_untrusted_texts(["*first*", "<b>\u202e*" * 10, "*other*", "*the last*"])

    assert (first, other) == ("<p><em>first</em></p>", "<p><em>other</em></p>")
    assert long == f'<pre class="listing" tabindex="0"><code>{"&lt;b&gt;[U+202E]*" * 10}</code></pre>'
    assert "*the last*" in last


async def test_what_renders_apart_leaves_other_threads_free_and_knows_the_language() -> None:
    blocked = threading.Event()
    with use_language("ko"):
        slow = asyncio.create_task(run_in_render_thread(blocked.wait, 60))
        next_one = asyncio.create_task(run_in_render_thread(gettext, "Your text"))
    assert await asyncio.to_thread(lambda: "free") == "free"
    assert not next_one.done()
    blocked.set()
    assert (await slow, await next_one) == (True, "내 텍스트")
