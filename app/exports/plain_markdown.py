"""Converts a lesson to Markdown for any Jupyter: MyST's directives, roles and targets become plain Markdown.

Works on the source, not on HTML: plain Markdown stays unchanged.
"""

from __future__ import annotations

import html
import re
from dataclasses import dataclass, field
from urllib.parse import quote

from markdown_it.token import Token

from app.i18n import gettext
from app.lessons.directives import Directive
from app.lessons.links import InvalidLink, parse_link
from app.lessons.markdown import parse_markdown
from app.lessons.render import ADMONITION_TITLES
from app.lessons.render_exercises import TASK_TITLES

_BEFORE_FENCE = re.compile(r"^[^`:~]*")


@dataclass(frozen=True, slots=True)
class MarkdownPart:
    """The Markdown between two cells, and the pictures that it shows."""

    markdown: str
    pictures: frozenset[str] = frozenset()
    """Paths in the lesson's folder, written as ``attachment:…`` in the text."""


@dataclass(frozen=True, slots=True)
class CellPlaceholder:
    """The position of the next code cell."""


@dataclass(slots=True)
class _Writer:
    """``page`` is the URL of the lesson's page, which makes links to other lessons absolute."""

    page: str
    pictures: set[str] = field(default_factory=set)


def plain_markdown_parts(source: str, page: str) -> list[MarkdownPart | CellPlaceholder]:
    """A lesson's source as plain Markdown, split at its code cells, without front matter."""
    lines = source.split("\n")
    tokens = parse_markdown(source).tokens
    first = tokens[0].map[1] if tokens and tokens[0].type == "front_matter" and tokens[0].map else 0
    parts: list[MarkdownPart | CellPlaceholder] = []
    start = first
    for token in [*tokens, None]:
        if token is not None and token.type != "cell":
            continue
        end = token.map[0] if token is not None and token.map else len(lines)
        writer = _Writer(page)
        text = _rewrite(writer, lines, tokens, start, end).strip("\n")
        if text.strip():
            parts.append(MarkdownPart(text, frozenset(writer.pictures)))
        if token is not None and token.map:
            parts.append(CellPlaceholder())
            start = token.map[1]
    return parts


def _rewrite(writer: _Writer, lines: list[str], tokens: list[Token], start: int, end: int) -> str:
    """The lines from ``start`` up to ``end`` (from 0) as plain Markdown."""
    written: list[str] = []
    at = start
    for (first, last), replacement in _find_edits(writer, lines, tokens, start, end):
        written += lines[at:first] + replacement
        at = last
    return "\n".join(written + lines[at:end])


_Edit = tuple[tuple[int, int], list[str]]
"""First line, end line, and the replacement."""


def _find_edits(writer: _Writer, lines: list[str], tokens: list[Token], start: int, end: int) -> list[_Edit]:
    """The edits, in order. The content of a directive is left to the directive."""
    edits: list[_Edit] = []
    done = start
    in_text = False
    for token in tokens:
        if token.map is None or token.map[1] > end or token.nesting < 0:
            continue
        span = (token.map[0], token.map[1])
        if in_text and token.type == "inline" and span == edits[-1][0]:
            edits[-1] = (span, _rewrite_inline(writer, edits[-1][1], token))  # the next column of a table's row
        elif span[0] >= done:
            replacement = _replacement(writer, lines, span, token)
            if replacement is not None:
                edits.append((span, replacement))
                done, in_text = span[1], token.type == "inline"
    return edits


def _replacement(writer: _Writer, lines: list[str], span: tuple[int, int], token: Token) -> list[str] | None:
    directive: Directive | None = token.meta.get("directive") if token.meta else None
    if directive is not None:
        return _prefixed_lines(lines[span[0]], _plain_directive(writer, directive))
    match token.type:
        case "myst_target":
            return [f'<a id="{html.escape(token.content)}"></a>']
        case "myst_line_comment" | "myst_block_break":
            return []
        case "inline":
            return _rewrite_inline(writer, lines[span[0] : span[1]], token)
    return None


def _prefixed_lines(first_line: str, text: str) -> list[str]:
    """The replacement of a block that starts on ``first_line``, with the prefix of its list or quotation."""
    match = _BEFORE_FENCE.match(first_line)
    before = match[0] if match else ""
    behind = re.sub(r"[^\s>]", " ", before)
    return [(behind if i else before) + line for i, line in enumerate(text.split("\n"))]


def _plain_directive(writer: _Writer, directive: Directive) -> str:
    body = _rewrite_body(writer, directive.body)
    match directive.spec.kind if directive.spec else "":
        case "math":
            return f"$$\n{directive.body.strip()}\n$$"
        case "image":
            return _plain_picture(writer, directive)
        case "figure":
            return "\n\n".join(filter(None, (_plain_picture(writer, directive), body)))
        case "table":
            return "\n\n".join(filter(None, (f"**{directive.argument}**" if directive.argument else "", body)))
        case "titled" if directive.name == "dropdown" or directive.option("class") == "dropdown":
            return f"<details><summary>{html.escape(directive.argument)}</summary>\n\n{body}\n\n</details>"
        case "titled":
            return _block_quote(directive.argument, body)
        case "task":
            title = f"{gettext(TASK_TITLES[directive.name])}: {_rewrite_body(writer, directive.argument)}"
            return _block_quote(title, body)
        case _:
            title = gettext(ADMONITION_TITLES.get(directive.name, directive.name))
            words = _rewrite_body(writer, directive.argument)
            return _block_quote(title, "\n\n".join(filter(None, (words, body))))


def _block_quote(title: str, body: str) -> str:
    lines = [f"**{title}**", *(["", *body.split("\n")] if body else [])]
    return "\n".join(f"> {line}".rstrip() for line in lines)


def _rewrite_body(writer: _Writer, text: str) -> str:
    lines = text.split("\n")
    return _rewrite(writer, lines, parse_markdown(text).tokens, 0, len(lines)).strip("\n")


def _plain_picture(writer: _Writer, directive: Directive) -> str:
    alt = re.sub(r"([\[\]\\])", r"\\\1", directive.option("alt"))
    return f"![{alt}]({_attachment(writer, directive.argument)})"


def _attachment(writer: _Writer, source: str) -> str:
    try:
        target = parse_link(source)
    except InvalidLink:
        return source
    if target.kind != "asset":
        return source
    writer.pictures.add(target.name)
    return f"attachment:{quote(target.name.replace('/', '-'))}"


def _rewrite_inline(writer: _Writer, lines: list[str], token: Token) -> list[str]:
    """Rewrite the roles, links and pictures of a paragraph; everything else stays as typed."""
    text = "\n".join(lines)
    for child in token.children or ():
        if child.type == "myst_role":
            text = _plain_role(text, child)
        elif child.type == "link_open":
            href = str(child.attrs.get("href", ""))
            text = text.replace(f"]({href}", f"]({_absolute_url(writer, href)}")
        elif child.type == "image":
            source = str(child.attrs.get("src", ""))
            text = text.replace(f"]({source}", f"]({_attachment(writer, source)}")
    return text.split("\n")


def _plain_role(text: str, role: Token) -> str:
    written: re.Pattern[str] = re.compile(
        r"\{" + re.escape(role.meta["name"]) + r"\}(`+)" + re.escape(role.content) + r"\1"
    )
    plain: str = f"${role.content}$" if role.meta["name"] == "math" else f"<kbd>{html.escape(role.content)}</kbd>"
    return written.sub(lambda _match: plain, text, count=1)


def _absolute_url(writer: _Writer, href: str) -> str:
    try:
        target = parse_link(href)
    except InvalidLink:
        return href
    folder, _, slug = writer.page.rpartition("/")
    if target.kind in ("outside", "here"):
        return href
    return f"{folder}/{target.address(slug)}"
