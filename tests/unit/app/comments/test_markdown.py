"""A comment's Markdown: its formatting, and that none of it ever runs as a program."""

from __future__ import annotations

import re
import time
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.comments.editing import MAX_COMMENT_CHARACTERS
from app.comments.markdown import MAX_HTML_BYTES, MAX_MENTIONS, mentioned_handles, to_html, to_plain_text
from app.web.user_text import clean_text
from tests.factories.hypothesis_examples import example_count
from tests.factories.xss_payloads import XSS_PAYLOADS

_TAGS = {
    *("a", "blockquote", "br", "code", "div", "em", "hr", "li", "ol", "p", "pre", "s", "span", "strong", "ul"),
    *("table", "thead", "tbody", "tr", "th", "td"),
}
_ATTRIBUTES = {"class", "href", "rel", "role", "scope", "start", "tabindex", "title"}


_FINE = re.compile(r"https?://|mailto:|/[^/\\]")


class _Reader(HTMLParser):
    """Records what a browser could make of a piece of HTML."""

    def __init__(self) -> None:
        super().__init__()
        self.strange: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in _TAGS:
            self.strange.append(tag)
        for name, value in attrs:
            if name not in _ATTRIBUTES:
                self.strange.append(f"{tag} {name}")
            if name == "href" and not _FINE.match(value or ""):
                self.strange.append(f"{tag} {value}")

    def handle_decl(self, decl: str) -> None:
        self.strange.append(decl)

    def handle_comment(self, data: str) -> None:
        self.strange.append(data)


def _strange(html: str) -> list[str]:
    reader = _Reader()
    reader.feed(html)
    reader.close()
    return reader.strange


@pytest.mark.parametrize("attack", XSS_PAYLOADS)
def test_nothing_of_an_attack_is_left(attack: str) -> None:
    for source in (
        attack,
        f"@ada {attack}",
        f"> {attack}",
        f"```{attack}\n{attack}\n```",
        f"`{attack}`",
        f"| {attack} |\n|--|",
    ):
        assert _strange(to_html(source, {"ada"})) == []


def test_the_search_for_strange_things_finds_them() -> None:
    assert _strange('<p onclick="x"><img src=x><a href="javascript:1">x</a><!-- x --></p>') == [
        "p onclick",
        "img",
        "img src",
        "a javascript:1",
        " x ",
    ]


def test_markdown_is_shown() -> None:
    html = to_html("**bold** _soft_ `code` ~~gone~~\nnext\n\n- one\n\n1. two\n\n> said\n\n[a](https://example.org)")

    for piece in ("<strong>bold</strong>", "<em>soft</em>", "<code>code</code>", "<s>gone</s><br>", "<li>one</li>"):
        assert piece in html
    assert '<a href="https://example.org" rel="nofollow ugc noopener">a</a>' in html


@pytest.mark.parametrize(
    ("source", "address", "then"),
    [
        ("see https://example.org.", "https://example.org", "."),
        ("http://example.org/__init__.py?a=1&b=2#c", "http://example.org/__init__.py?a=1&amp;b=2#c", "</p>"),
        ("(https://example.org/a_(b))", "https://example.org/a_(b)", ")"),
        ("**https://example.org/**", "https://example.org/", "</strong>"),
        ("https://example.org를 보세요", "https://example.org", "를"),
        ("请看https://example.org，谢谢", "https://example.org", "，"),
        ("HTTPS://example.org/@ada", "HTTPS://example.org/@ada", "</p>"),
    ],
)
def test_a_bare_address_is_a_link_as_far_as_it_goes(source: str, address: str, then: str) -> None:
    link = f'<a href="{address}" rel="nofollow ugc noopener">{address}</a>{then}'

    assert link in to_html(source, {"ada"})


@pytest.mark.parametrize(
    "source",
    [
        *("ftp://example.org", "javascript://example.org", "xhttps://example.org", "git+https://example.org"),
        *("https://", "https://-", "https:/example.org", "example.org", "`https://example.org`"),
        *("https://пример.org", "https://\u202egro.elpmaxe"),
    ],
)
def test_other_things_are_no_bare_addresses(source: str) -> None:
    assert "<a" not in to_html(source)


def test_an_address_within_a_link_stays_its_text() -> None:
    html = to_html("[from https://example.org](https://example.com) <https://example.net>")

    assert re.findall(r'href="([^"]+)"', html) == ["https://example.com", "https://example.net"]


def test_in_words_a_comment_has_no_marks() -> None:
    source = "`1/4` of **it**, [see](https://example.org)\nand\n\n```python\na = 1\n```\n\n- x\n- y"

    assert to_plain_text(source).split() == ["1/4", "of", "it,", "see", "and", "a", "=", "1", "x", "y"]


def test_a_comment_has_no_headings_and_no_pictures() -> None:
    html = to_html("# Title\n\nTitle\n=====\n\n![alt](https://example.org/spy.png)")

    assert "<h1" not in html
    assert "<img" not in html
    assert "# Title" in html


def test_code_is_coloured_in_languages_that_lessons_speak_and_plain_in_others() -> None:
    assert '<span class="k">def</span>' in to_html("```python\ndef f(): pass\n```")
    assert "<span" not in to_html("```brainfuck\n+++\n```")
    assert "<pre" in to_html("    indented")


def test_a_table_scrolls_in_a_frame_of_its_own() -> None:
    html = to_html("| a | b |\n|---|:-:|\n| 1 | 2 |")

    assert '<div class="table-scroll" tabindex="0" role="group">' in html or 'class="table-scroll"' in html
    assert '<th scope="col">a</th>' in html
    assert "style" not in html


def test_only_people_who_are_there_become_links() -> None:
    html = to_html("@ada and @nobody, `@ada`, [@ada](https://example.org), mail@ada.org, /@ada", {"ada"})

    assert html.count('class="mention"') == 1
    assert '<a class="mention" href="/learners/ada/comments" rel="nofollow ugc noopener">@ada</a> and @nobody' in html


def test_who_is_mentioned_is_read_from_the_words_alone() -> None:
    assert mentioned_handles(
        "@Ada, @bob-2! `@eve` [@eve](https://x.org) ada@example.org @ada @-x @x- \n```\n@eve\n```"
    ) == [
        "ada",
        "bob-2",
    ]
    assert len(mentioned_handles(" ".join(f"@p{n}" for n in range(50)))) == MAX_MENTIONS


def test_what_turns_the_writing_around_is_written_out() -> None:
    html = to_html("a\u202eb\u2066c `\u202e`")

    assert "\u202e" not in html
    assert html.count("[U+202E]") == 2
    assert "[U+2066]" in html


@pytest.mark.parametrize(
    "piece",
    [
        "[",
        ">",
        "*",
        "`",
        "![[",
        "- ",
        "|",
        "_a",
        "<",
        "@a",
        "[a](",
        "\\",
        "&",
        "**a",
        "|a\n",
        "```python\n(",
        "1. ",
        "~~",
        "-|\n",
        "https://a ",
        "http://a)",
        "://",
        "https:",
        "a|b\n-|-\n",
    ],
)
def test_the_longest_comment_of_anything_is_rendered_quickly(piece: str) -> None:
    begun = time.process_time()
    html = to_html((piece * MAX_COMMENT_CHARACTERS)[:MAX_COMMENT_CHARACTERS])

    assert time.process_time() - begun < 2
    assert len(html) < 600_000


@pytest.mark.parametrize(
    "source",
    [
        "|a" * 60 + "|\n" + "|-" * 60 + "|\n" + "x\n" * 4800,
        "a|" * 1000 + "\n" + "-|" * 1000 + "\n" + "|\n" * 3000,
        "> " + "a|" * 40 + "\n> " + "-|" * 40 + "\n" + "> |\n" * 2400,
    ],
)
def test_a_few_characters_make_no_huge_table(source: str) -> None:
    assert len(to_html(source)) < 40_000
    assert "<table>" not in to_html(source)


def test_a_table_of_some_hundred_rows_is_one() -> None:
    assert to_html("a|b\n-|-\n" + "c|d\n" * 400).count("<tr>") == 401


def test_a_very_long_line_of_code_is_not_coloured() -> None:
    html = to_html("```console\n" + "a" * 9_900)
    assert "<span" not in html
    assert "a" * 9_900 in html
    assert '<span class="nb">print</span>' in to_html("```python\nprint(1)")


GROWS = [
    *(
        "1+",
        "&",
        '"',
        "<",
        "`a`",
        "*a*",
        "@bob ",
        "[a](/)",
        "- a\n",
        "1. a\n",
        "> ",
        "---\n",
        "\u202e",
        "https://a.b ",
        "a\n",
    ),
    *("|a", "```python\n1+1\n```\n", "    1\n\n", "~~a~~", "김", "\\&", "&amp;"),
]


def colored(text: str) -> str:
    """A comment of nearly maximal length: all of it highlighted code, in lines that are not too long."""
    lines = "\n".join([text * (800 // len(text))] * 20)
    return f"```python\n{lines[: MAX_COMMENT_CHARACTERS - 100]}\n```"


@pytest.mark.parametrize("source", [*GROWS, *(f"```python\n{piece}" for piece in ("1+", "&", "김"))])
def test_no_comment_makes_html_without_bound(source: str) -> None:
    html = to_html(
        (source + source.removeprefix("```python\n") * MAX_COMMENT_CHARACTERS)[:MAX_COMMENT_CHARACTERS], {"bob"}
    )

    assert html
    assert len(html.encode()) <= MAX_HTML_BYTES


TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=4)


@example_count(10)
@given(pieces=st.lists(st.one_of(st.sampled_from(GROWS), TEXT), min_size=1, max_size=5))
def test_no_mixture_makes_html_without_bound(pieces: list[str]) -> None:
    text = clean_text(
        "x" + ("".join(pieces) * MAX_COMMENT_CHARACTERS)[: MAX_COMMENT_CHARACTERS - 1], MAX_COMMENT_CHARACTERS * 4
    )
    assert len(to_html(text[:MAX_COMMENT_CHARACTERS], {"bob"}).encode()) <= MAX_HTML_BYTES


def test_code_that_grows_too_much_is_shown_without_colors_and_whole() -> None:
    html = to_html(f"**Why?**\n\n{colored('1+')}")

    assert html.startswith("<p><strong>Why?</strong></p>")
    assert "<span" not in html
    assert "1+1+1+" in html
    ordinary = to_html(colored("def step(batch): return batch.sum()\n"))
    assert "<span" in ordinary, "an ordinary listing keeps its colors"


def test_a_comment_that_is_too_large_even_so_is_shown_as_the_text_it_is() -> None:
    html = to_html("@bob " * 2000, {"bob"})

    assert html.startswith('<pre class="listing" tabindex="0"><code>@bob @bob')
    assert "<a" not in html
