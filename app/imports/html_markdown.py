"""Converts the HTML in a notebook's text to Markdown: lessons show no raw HTML.

Only what has a counterpart in Markdown is converted: emphasis, code, links, pictures, tables, lists, headings and
``<details>``. Other tags are removed and their text stays; scripts and styles go.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from html.parser import HTMLParser

MARKS = {"b": "**", "strong": "**", "i": "*", "em": "*", "code": "`", "tt": "`", "samp": "`", "s": "~~", "del": "~~"}
_DROPPED = frozenset({"script", "style", "noscript", "template", "object", "svg", "canvas", "form"})
_BLOCKS = frozenset({"p", "div", "center", "section", "article", "header", "footer", "figure", "blockquote", "body"})
_SPECIAL = re.compile(r"([\\`*_\[\]<])")
_DETAILS_COLONS = 9


@dataclass(slots=True)
class HtmlContext:
    """What the conversion needs of the lesson around it."""

    picture: Callable[[str, str, bool], str]
    """Markdown for a picture, from its source, its alternative text, and whether it is inside a link."""
    link: Callable[[str], str | None]
    """The target of a link, or None if there is none to keep."""
    removed: set[str] = field(default_factory=set)
    """Tags that were removed."""
    details: int = 0
    """How many ``<details>`` are open."""
    keep_details: bool = True


def html_to_markdown(html: str, context: HtmlContext) -> str:
    """The Markdown of a block of HTML, which may open or close elements of other blocks."""
    converter = _Converter(context)
    converter.feed(html)
    converter.close()
    return re.sub(r"\n{3,}", "\n\n", converter.text()).strip("\n")


def comment_lines(text: str) -> str:
    """A comment as MyST writes it, which readers do not see."""
    return "\n".join(f"% {line}".rstrip() for line in text.strip().split("\n"))


class _Converter(HTMLParser):
    def __init__(self, context: HtmlContext) -> None:
        super().__init__(convert_charrefs=True)
        self.context = context
        self.buffers: list[list[str]] = [[]]
        self.links: list[str | None] = []
        self.tables: list[list[list[str]]] = []
        self.lists: list[str] = []
        self.dropped = 0
        self.pre = 0

    def text(self) -> str:
        while len(self.buffers) > 1:
            self._end_buffer()
        return "".join(self.buffers[0])

    def put(self, text: str) -> None:
        self.buffers[-1].append(text)

    def _end_buffer(self) -> str:
        text = "".join(self.buffers.pop()) if len(self.buffers) > 1 else ""
        if not self.tables and len(self.buffers) == 1:
            self.put(text)
        return text

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {key: value or "" for key, value in attrs}
        if tag in _DROPPED:
            self.dropped += 1
            self.context.removed.add(tag)
        if self.dropped:
            return
        if tag in MARKS:
            self.put(MARKS[tag])
        elif tag == "br":
            self.put(" " if self.tables else "\\\n")
        elif tag == "hr":
            self.put("\n\n---\n\n")
        elif tag == "img":
            self.put(self.context.picture(given.get("src", ""), given.get("alt", ""), any(self.links)))
        elif tag in ("iframe", "video", "audio", "source", "embed"):
            self._media(tag, given.get("src", ""))
        elif tag == "a":
            self.links.append(self.context.link(given["href"]) if given.get("href") else None)
            self.put("[" if self.links[-1] else "")
        elif tag in ("sub", "sup"):
            self.put("${}_{\\text{" if tag == "sub" else "${}^{\\text{")
        elif tag == "kbd":
            self.put("{kbd}`")
        elif re.fullmatch(r"h[1-6]", tag):
            self.put(f"\n\n{'#' * int(tag[1])} ")
        elif tag in ("ul", "ol"):
            self.lists.append("1." if tag == "ol" else "*")
            self.put("\n\n" if len(self.lists) == 1 else "")
        elif tag == "li":
            self.put(f"\n{'   ' * (len(self.lists) - 1)}{self.lists[-1] if self.lists else '*'} ")
        elif tag == "pre":
            self.pre += 1
            self.put("\n\n```text\n")
        elif tag == "table":
            self.tables.append([])
        elif tag == "tr" and self.tables:
            self.tables[-1].append([])
        elif tag in ("td", "th") and self.tables:
            if not self.tables[-1]:  # a row that is not written
                self.tables[-1].append([])
            self.buffers.append([])
        elif tag == "details":
            self.context.details += 1
            self.put("\n\n")
        elif tag == "summary":
            self.buffers.append([])
        elif tag in _BLOCKS:
            self.put("\n\n")
        if tag in _BLOCKS or tag in ("span", "font", "u"):
            self.context.removed.add(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag in _DROPPED:
            self.dropped = max(0, self.dropped - 1)
            return
        if self.dropped:
            return
        if tag in MARKS:
            self.put(MARKS[tag])
        elif tag == "a" and self.links:
            target = self.links.pop()
            self.put(f"]({target})" if target else "")
        elif tag in ("sub", "sup"):
            self.put("}}$")
        elif tag == "kbd":
            self.put("`")
        elif re.fullmatch(r"h[1-6]", tag) or tag in _BLOCKS:
            self.put("\n\n")
        elif tag in ("ul", "ol") and self.lists:
            self.lists.pop()
            self.put("\n\n" if not self.lists else "")
        elif tag == "pre" and self.pre:
            self.pre -= 1
            self.put("\n```\n\n")
        elif tag in ("td", "th") and self.tables and len(self.buffers) > 1:
            cell = " ".join("".join(self.buffers.pop()).split()).replace("|", "\\|")
            if self.tables[-1]:
                self.tables[-1][-1].append(cell)
        elif tag == "table" and self.tables:
            self.put(_table(self.tables.pop()))
        elif tag == "summary" and len(self.buffers) > 1:
            title = " ".join("".join(self.buffers.pop()).replace("*", "").split()) or "Details"
            if self.context.keep_details:
                self.put(f"{self._colons()}{{dropdown}} {title}\n\n")
            else:
                self.put(f"**{title}**\n\n")
        elif tag == "details":
            if self.context.keep_details and self.context.details:
                self.put(f"\n\n{self._colons()}\n\n")
            self.context.details = max(0, self.context.details - 1)

    def _colons(self) -> str:
        """Nested blocks need fewer colons than those around them."""
        return ":" * max(3, _DETAILS_COLONS - self.context.details)

    def handle_data(self, data: str) -> None:
        if self.dropped:
            return
        if self.pre:
            self.put(data)
        else:
            self.put(_SPECIAL.sub(r"\\\1", re.sub(r"[ \t]*\n[ \t]*", "\n", data)))

    def handle_comment(self, data: str) -> None:
        if not self.dropped and data.strip() and not self.tables:
            self.put(f"\n\n{comment_lines(data)}\n\n")

    def _media(self, tag: str, source: str) -> None:
        target = self.context.link(source) if source else None
        self.context.removed.add(tag)
        if target:
            self.put(f"[{'Video' if tag in ('iframe', 'video', 'source', 'embed') else 'Audio'}]({target})")


def _table(rows: list[list[str]]) -> str:
    rows = [row for row in rows if any(row)]
    if not rows:
        return ""
    if len(rows) == 1:  # a row of buttons
        return "\n\n" + " · ".join(cell for cell in rows[0] if cell) + "\n\n"
    width = max(map(len, rows))
    wide = [[*row, *[""] * (width - len(row))] for row in rows]
    head, *body = [f"| {' | '.join(row)} |" for row in wide]
    return "\n\n" + "\n".join([head, "|" + " --- |" * width, *body]) + "\n\n"


class InlineHtml:
    """Converts the tags within a paragraph one by one; the text between them is Markdown already."""

    def __init__(self, context: HtmlContext, *, in_table: bool) -> None:
        self._converter = _Converter(context)
        if in_table:
            self._converter.tables.append([[]])

    def convert(self, tag: str) -> str:
        """The Markdown that takes the place of one tag."""
        if tag.startswith("<!--"):
            self._converter.context.removed.add("!--")
            return ""
        buffer = self._converter.buffers[0]
        buffer.clear()
        self._converter.feed(tag)
        return re.sub(r"\s*\n\n\s*", " ", "".join(buffer))
