"""Converts a lesson to Markdown for any Jupyter: MyST's directives, roles and targets become plain Markdown.

Works on the source, not on HTML: plain Markdown stays unchanged.
"""

from __future__ import annotations

import html
import re
from collections import defaultdict, deque
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

from markdown_it.common.utils import unescapeAll
from markdown_it.token import Token

from app.i18n import gettext
from app.lessons.directives import Directive
from app.lessons.labels import Labels, collect_labels
from app.lessons.links import InvalidLink, parse_link
from app.lessons.markdown import LESSON_PARSER, parse_markdown
from app.lessons.optional_sections import begins_optional, mark_optional_sections
from app.lessons.render_directives import ADMONITION_TITLES, OPTIONAL_NOTE, is_collapsible
from app.lessons.render_exercises import TASK_TITLES
from app.lessons.roles import ELEMENTS, label_words, read_role, reference_words

_BEFORE_FENCE = re.compile(r"^[^`:~$]*")
_TARGET = re.compile(r"(?<=\]\()\s*(?:<[^<>\n]*>|(?:[^\s()]|\([^\s()]*\))+)")
"""Where a link or picture leads, as typed."""


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
    labels: Labels
    pictures: set[str] = field(default_factory=set)


def plain_markdown_parts(source: str, page: str, folder: Path | None = None) -> list[MarkdownPart | CellPlaceholder]:
    """A lesson's source as plain Markdown, split at its code cells, without front matter.

    ``folder`` has the files that the source includes.
    """
    lines = source.split("\n")
    tokens = parse_markdown(source, folder).tokens
    mark_optional_sections(tokens)
    first = tokens[0].map[1] if tokens and tokens[0].type == "front_matter" and tokens[0].map else 0
    parts: list[MarkdownPart | CellPlaceholder] = []
    labels, _ = collect_labels(tokens)
    start = first
    for token in [*tokens, None]:
        if token is not None and token.type != "cell":
            continue
        end = token.map[0] if token is not None and token.map else len(lines)
        writer = _Writer(page, labels)
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
    for before, token in zip([None, *tokens], tokens, strict=False):
        if token.map is None or token.map[1] > end or token.nesting < 0:
            continue
        span = (token.map[0], token.map[1])
        if in_text and token.type == "inline" and span == edits[-1][0]:
            edits[-1] = (span, _rewrite_inline(writer, edits[-1][1], token))  # the next column of a table's row
        elif span[0] >= done:
            replacement = _replacement(writer, lines, span, token)
            if replacement is not None:
                edits.append((span, replacement))
                if before is not None and before.map is not None and begins_optional(before):
                    behind = before.map[1]  # below the line that underlines the heading, if there is one
                    edits.append(((behind, behind), ["", f"*{gettext(OPTIONAL_NOTE)}*"]))
                done, in_text = span[1], token.type == "inline"
    return edits


def _replacement(writer: _Writer, lines: list[str], span: tuple[int, int], token: Token) -> list[str] | None:
    directive: Directive | None = token.meta.get("directive") if token.meta else None
    if directive is not None:
        text = _plain_directive(writer, directive, token)
        return _prefixed_lines(lines[span[0]], text) if text else []
    match token.type:
        case "myst_target":
            return [f'<a id="{html.escape(token.content)}"></a>']
        case "math_block" if token.meta.get("name"):
            formula = _plain_formula(writer, token.content, str(token.meta["name"]))
            return _prefixed_lines(lines[span[0]], formula)
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


def _plain_directive(writer: _Writer, directive: Directive, token: Token) -> str:
    if token.type == "listing":
        return _plain_listing(writer, directive, token)
    body = _rewrite_body(writer, token.content if token.type == "include" else directive.body)
    argument = _rewrite_body(writer, directive.argument)
    match directive.spec.kind:
        case "math":
            return _plain_formula(writer, token.content, directive.label)
        case "image":
            return _plain_picture(writer, directive)
        case "figure":
            caption = f"{_number(writer, directive)}{body}".rstrip()
            return "\n\n".join(filter(None, (_plain_picture(writer, directive), caption)))
        case "video":
            words = directive.option("alt") or directive.argument
            return "\n\n".join((f"[{words}]({_attachment(writer, directive.argument)})", body)).strip()
        case "glue":
            value = _plain_words(writer, directive.name, directive.argument)
            return "\n\n".join(filter(None, (value, f"{_number(writer, directive)}{body}".rstrip())))
        case "table" | "list-table" | "csv-table":
            number = _number(writer, directive)
            caption = f"{number}{argument}".rstrip() if number or not argument else f"**{argument}**"
            return "\n\n".join(filter(None, (caption, body)))
        case "tab" | "card":
            return "\n\n".join(filter(None, (f"**{directive.argument}**" if directive.argument else "", body)))
        case "tabs" | "grid" | "plain" | "include" | "glossary":
            return body
        case "quote":
            return "\n".join(f"> {line}".rstrip() for line in "\n\n".join(filter(None, (argument, body))).split("\n"))
        case "rubric":
            return f"**{argument}**"
        case "silent" | "dropped" | "gate-end" | "bibliography" | "literal-include":
            return ""
        case "gate-start":
            return f"**{_task_title(writer, directive)}**"
        case "task":
            if directive.name == "solution":
                return _details(gettext(TASK_TITLES[directive.name]), body)
            return _block_quote(_task_title(writer, directive), body)
        case "titled" | "admonition" if is_collapsible(directive):
            own = ADMONITION_TITLES.get(directive.name)
            return _details(gettext(own) if own else directive.argument, body)
        case "titled":
            return _block_quote(directive.argument, body)
    title = gettext(ADMONITION_TITLES.get(directive.name, directive.name))
    return _block_quote(title, "\n\n".join(filter(None, (argument, body))))


def _number(writer: _Writer, directive: Directive) -> str:
    """What numbers a caption, such as “**Figure 1:** ”; empty if the directive has no number."""
    label = writer.labels.by_name.get(directive.label)
    if label is None or label.number is None:
        return ""
    return f"**{label_words(label, writer.labels)}:** "


def _plain_formula(writer: _Writer, latex: str, name: str) -> str:
    label = writer.labels.by_name.get(name)
    number = f"\n\n({label.number})" if label is not None and label.number is not None else ""
    return f"$$\n{latex.strip()}\n$$" + number


def _plain_listing(writer: _Writer, directive: Directive, token: Token) -> str:
    code = token.content.removesuffix("\n")
    fence = "`" * max(3, *(len(run) + 1 for run in re.findall("`+", code)), 3)
    shown = f"{fence}{token.info}\n{code}\n{fence}"
    caption = directive.option("caption")
    if directive.spec.kind == "cell":
        return shown
    above = f"{_number(writer, directive)}{caption}".rstrip() if _number(writer, directive) else f"**{caption}**"
    return f"{above}\n\n{shown}" if above.strip("*") else shown


def _task_title(writer: _Writer, directive: Directive) -> str:
    """Such as “Exercise: Write the mean”."""
    kind = gettext(TASK_TITLES[directive.name.removesuffix("-start")])
    if directive.name.startswith("solution") or not directive.argument:
        return kind
    return gettext("%(name)s: %(text)s") % {"name": kind, "text": _rewrite_body(writer, directive.argument)}


def _details(title: str, body: str) -> str:
    return f"<details><summary>{html.escape(title)}</summary>\n\n{body}\n\n</details>"


def _block_quote(title: str, body: str) -> str:
    lines = [
        *([f"**{title}**"] if title else []),
        *([""] if title and body else []),
        *(body.split("\n") if body else []),
    ]
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
    written: defaultdict[str, deque[str]] = defaultdict(deque)
    """What takes the place of each target, in the order in which the text has them."""
    hrefs: list[str] = []
    for child in token.children or ():
        if child.type == "myst_role":
            text = _plain_role(writer, text, child)
        elif child.type == "link_open":
            hrefs.append(str(child.attrs.get("href", "")))
        elif child.type == "link_close":  # a link has its target behind its text
            href = hrefs.pop()
            written[href].append(_absolute_url(writer, href))
        elif child.type == "image":
            source = str(child.attrs.get("src", ""))
            written[source].append(_attachment(writer, source))

    def target(typed: re.Match[str]) -> str:
        href = LESSON_PARSER.normalizeLink(unescapeAll(typed[0].strip().removeprefix("<").removesuffix(">")))
        mine = written.get(href)
        new = mine.popleft() if mine else href
        return typed[0] if new == href else new

    return _TARGET.sub(target, text).split("\n")


def _plain_role(writer: _Writer, text: str, role: Token) -> str:
    written: re.Pattern[str] = re.compile(
        r"\{" + re.escape(role.meta["name"]) + r"\}(`+)" + re.escape(role.content) + r"\1"
    )
    plain = _plain_words(writer, role.meta["name"], role.content)
    return written.sub(lambda _match: plain, text, count=1)


def _plain_words(writer: _Writer, name: str, content: str) -> str:
    role = read_role(name, content)
    words = html.escape(role.words or role.target, quote=False)
    if role.name == "math":
        return f"${content}$"
    if role.name in ELEMENTS:
        element = ELEMENTS[role.name]
        return f"<{element}>{html.escape(content)}</{element}>"
    if role.name in ("ref", "numref", "eq"):
        words = html.escape(reference_words(role, writer.labels), quote=False)
        return f"[{words}](#{quote(role.target)})"
    if role.name == "glue":
        return f"`{role.target}`"
    return f"({words})" if role.name.startswith("cite") else words


def _absolute_url(writer: _Writer, href: str) -> str:
    try:
        target = parse_link(href)
    except InvalidLink:
        return href
    folder, _, slug = writer.page.rpartition("/")
    if target.kind == "outside":
        return href
    if target.kind == "here" and target.fragment:
        return href[href.index("#") :]
    return f"{folder}/{target.address(slug)}"
