"""Rewrites the inside of a paragraph: links, pictures, HTML tags, formulas and references to other pages.

The tokens of a paragraph carry no positions, so each is looked up in the text behind the one before.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from markdown_it.token import Token

from app.imports.formulas import usable_formula
from app.imports.html_markdown import HtmlContext, InlineHtml
from app.imports.references import References
from app.lessons.formulas import InvalidFormula

_DESTINATION = re.compile(
    r"\]\(\s*(?:<(?P<angle>[^>\n]*)>|(?P<plain>(?:[^\s()\\]|\\.|\((?:[^\s()\\]|\\.)*\))*))"
    r"(?P<title>\s+(?:\"[^\"]*\"|'[^']*'|\([^)]*\)))?\s*\)"
)
_MAX_SKIP = 400
"""Characters between a token and its text: beyond this, the text belongs to something else."""


class InlineRewriter:
    """Rewrites one paragraph, or one row of a table."""

    def __init__(self, text: str, references: References, html: HtmlContext, *, in_table: bool = False) -> None:
        self._text = text
        self._references = references
        self._html = InlineHtml(html, in_table=in_table)
        self._cursor = 0
        self._edits: list[tuple[int, int, str]] = []

    def result(self) -> str:
        """The new text."""
        parts: list[str] = []
        at = 0
        for start, end, replacement in sorted(self._edits, key=lambda edit: edit[:2]):
            if start >= at:
                parts += [self._text[at:start], replacement]
                at = end
        return "".join([*parts, self._text[at:]])

    def run(self, children: Sequence[Token], *, in_link: bool = False) -> None:
        """Rewrite these tokens, in order."""
        opened: list[tuple[int, str, bool]] = []
        for child in children:
            if child.type == "link_open":
                start = self._text.find("[", self._cursor)
                automatic = child.markup in ("autolink", "linkify")
                opened.append((start, str(child.attrs.get("href", "")), automatic))
                if not automatic and start >= 0:
                    self._cursor = start + 1
            elif child.type == "link_close" and opened:
                self._close_link(*opened.pop())
            elif child.type == "image":
                self._image(child, in_link=in_link or bool(opened))
            elif child.type == "html_inline":
                self._replace(child.content, self._html.convert(child.content))
            elif child.type == "math_inline":
                self._formula(child.content)
            elif child.type == "myst_role":
                self._role(str(child.meta["name"]), child.content)
            elif child.content:
                self._find(child.content)

    def _find(self, text: str) -> int:
        """The position of a text behind the cursor, which moves past it; -1 if it is not near."""
        at = self._text.find(text, self._cursor, self._cursor + _MAX_SKIP + len(text))
        if at >= 0:
            self._cursor = at + len(text)
        return at

    def _replace(self, text: str, replacement: str) -> None:
        at = self._find(text)
        if at >= 0:
            self._edits.append((at, at + len(text), replacement))

    def _close_link(self, start: int, href: str, automatic: bool) -> None:
        if automatic:
            return
        match = _DESTINATION.search(self._text, max(self._cursor - 1, 0))
        if match is None or start < 0:
            return
        self._cursor = match.end()
        target = self._references.link(href)
        if target is None:
            label = "" if match.start() > start + 1 else href
            self._edits += [(start, start + 1, label), (match.start(), match.end(), "")]
        else:
            words = ""
            if match.start() == start + 1:  # [](page.md): MyST shows the title of the page
                page = self._references.find_page(href.partition("#")[0])
                words = page.title if page is not None else self._references.label_text(href.removeprefix("#")) or href
            self._edits.append((match.start(), match.end(), f"{words}]({target}{match['title'] or ''})"))

    def _image(self, image: Token, *, in_link: bool) -> None:
        start = self._text.find("![", self._cursor)
        match = _DESTINATION.search(self._text, start) if start >= 0 else None
        if match is None:
            return
        self._cursor = match.end()
        source = str(image.attrs.get("src", ""))
        made = self._references.picture(source, self._text[start + 2 : match.start()], in_link)
        self._edits.append((start, match.end(), made))

    def _formula(self, latex: str) -> None:
        try:
            usable = usable_formula(latex, block=False)
        except InvalidFormula as e:
            self._references.report.note(self._references.place, f"formula shown as its LaTeX: {e}")
            self._replace(f"${latex}$", f"`{latex}`")
            return
        if usable == latex:
            self._find(latex)
        else:
            self._replace(latex, usable)

    def _role(self, name: str, content: str) -> None:
        words = r"\s+".join(map(re.escape, content.split()))
        match = re.compile(r"\{" + re.escape(name) + r"\}(`+)\s?" + words + r"\s?\1").search(self._text, self._cursor)
        if match is None:
            return
        self._cursor = match.end()
        made = self._references.role(name, content)
        if made is not None:
            self._edits.append((match.start(), match.end(), made))
