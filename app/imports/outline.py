"""What the documents of an import say about each other: titles, headings, and the names that links use."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from markdown_it.token import Token

from app.imports.source import SourceDocument, TextSegment
from app.lessons.analysis import analyze
from app.lessons.labels import LABEL_NAME, Labels, collect_labels
from app.lessons.markdown import parse_markdown

_ANCHOR = re.compile(r"""<[a-z]+[^>]{0,300}?\s(?:name|id)\s*=\s*["']?([^"'\s>]+)""", re.IGNORECASE)
_MARKS, _ESCAPED = re.compile(r"([\\`*_{}\[\]<$#])"), r"\\\1"
_LATEX_INLINE = re.compile(r"\\\\\((.{1,500}?)\\\\\)")
_LATEX_BLOCK = re.compile(r"^(\s*)\\\\([\[\]])\s*$")
_MATH_IN_LINE = re.compile(r"(?<![\\$])\$\$([^$\n]{1,1000}?)\$\$(?!\$)")
_SPACED_MATH = re.compile(
    r"(?<![\\$\w])\$(?: ++([^$\n]{0,200}?[\\^_={][^$\n]{0,200}?) *|([^$\n]{0,200}?[\\^_={][^$\n]{0,200}?) +)\$(?![\w$])"
)


@dataclass(frozen=True, slots=True)
class ParsedText:
    """A text segment's tokens. Its first line is empty, so that ``token.map[0]`` counts its lines from 1."""

    segment: TextSegment
    lines: list[str]
    tokens: list[Token]


@dataclass(frozen=True, slots=True)
class HeadingInfo:
    """A heading as written."""

    at: tuple[int, int]
    """The number of its segment, and its line."""
    level: int
    text: str
    names: tuple[str, ...]
    """Labels and anchors in front of it."""


@dataclass(slots=True)
class Page:
    """A document, its place in the course, and its outline."""

    document: SourceDocument
    texts: dict[int, ParsedText]
    headings: list[HeadingInfo]
    title: str
    title_at: tuple[int, int] | None
    slug: str = ""
    ids: dict[str, str] = field(default_factory=dict)
    """The ID of a heading on the lesson's page, by each name that a link may use."""
    _labels: Labels | None = None

    def labels(self) -> Labels:
        """What has a name in the document. It is collected once: each other document may ask for it."""
        if self._labels is None:
            self._labels = collect_labels([token for parsed in self.texts.values() for token in parsed.tokens])[0]
        return self._labels

    def new_levels(self) -> Iterator[tuple[HeadingInfo, int]]:
        """Each heading with its level in the lesson: 2 or more, 0 for one that becomes bold text, 1 for the title.

        The title is in the front matter, so other headings of the first level, and all below them, move down by one.
        """
        after = [h for h in self.headings if self.title_at is None or h.at > self.title_at]
        down = 1 if any(h.level == 1 for h in after) else 0
        before = 1
        for heading in self.headings:
            if heading.at == self.title_at:
                yield heading, 1
            elif self.title_at is not None and heading.at < self.title_at:
                yield heading, 0
            else:
                level = min(max(heading.level + down, 2), before + 1, 6)
                before = level
                yield heading, level


def make_page(document: SourceDocument) -> Page:
    """Parse a document and read its outline."""
    texts = {
        number: _parse(segment) for number, segment in enumerate(document.segments) if isinstance(segment, TextSegment)
    }
    headings = [heading for number, parsed in texts.items() for heading in _headings(number, parsed)]
    first = next((h for h in headings if h.level == 1 and h.text), None)
    if first is None:
        first = next((h for h in headings if h.text), None)
        if first is not None and (document.title or first.at != headings[0].at):
            first = None
    is_title = first is not None and document.title in ("", first.text)
    title = document.title or (first.text if first is not None else "")
    page = Page(document, texts, headings, title, first.at if first is not None and is_title else None)
    page.ids = _ids(page)
    return page


def normalized(name: str) -> str:
    """A name that links use, without what generators of pages spell differently."""
    return "-".join(re.findall(r"\w+", unicodedata.normalize("NFKC", name).casefold().replace("_", "-")))


def _parse(segment: TextSegment) -> ParsedText:
    text = _plain_math("\n" + segment.text)
    return ParsedText(segment, text.split("\n"), parse_markdown(text).tokens)


def _plain_math(text: str) -> str:
    r"""Formulas as lessons write them: ``\\(…\\)``, ``$$…$$`` within a line and ``$ … $`` become ``$…$``."""
    lines = text.split("\n")
    fence = ""
    for i, line in enumerate(lines):
        bare = line.lstrip("> \t")
        mark = re.match(r"(`{3,}|~{3,})", bare)
        if fence:
            fence = "" if mark and bare.rstrip() == mark[1] and mark[1].startswith(fence) else fence
            continue
        if mark:
            fence = mark[1]
            continue
        if "$" not in line and "\\\\" not in line:
            continue
        pieces = re.split(r"(`+[^`]*`+)", line)
        lines[i] = "".join(p if p.startswith("`") else _plain_math_in(p, len(pieces) == 1) for p in pieces)
    return "\n".join(lines)


def _plain_math_in(text: str, is_line: bool) -> str:
    text = _LATEX_INLINE.sub(lambda m: f"${m[1].strip()}$", text)
    if is_line:
        text = _LATEX_BLOCK.sub(r"\1$$", text)
    if not (is_line and _MATH_IN_LINE.fullmatch(text.strip())):
        text = _MATH_IN_LINE.sub(lambda m: f"${m[1].strip()}$", text)
    return _SPACED_MATH.sub(lambda m: f"${(m[1] or m[2]).strip()}$", text)


def _headings(number: int, parsed: ParsedText) -> Iterator[HeadingInfo]:
    names: list[str] = []
    for token, after in zip(parsed.tokens, [*parsed.tokens[1:], None], strict=True):
        if token.type == "myst_target":
            names.append(token.content)
        elif token.type == "html_block":
            names += _ANCHOR.findall(token.content)
        elif token.type == "heading_open" and token.map is not None and after is not None:
            own = [name for child in after.children or () if child.type == "html_inline" for name in _anchors(child)]
            yield HeadingInfo((number, token.map[0]), int(token.tag[1]), heading_text(after), (*names, *own))
            names = []
        elif token.type == "inline" and token.children:
            found = [name for child in token.children if child.type == "html_inline" for name in _anchors(child)]
            names = found or ([] if heading_text(token) else names)


def _anchors(html: Token) -> list[str]:
    return _ANCHOR.findall(html.content)


def heading_text(inline: Token) -> str:
    """The words of a line, without marks."""
    kept = (child for child in inline.children or () if child.type not in ("html_inline", "footnote_ref", "image"))
    words = (" " if child.type in ("softbreak", "hardbreak") else child.content for child in kept)
    return " ".join("".join(words).split())


def _ids(page: Page) -> dict[str, str]:
    """What the lesson's own reader would call the headings, by all their names."""
    kept = [(heading, level) for heading, level in page.new_levels() if level >= 2 and heading.text]
    lines: list[str] = []
    for heading, level in kept:
        label = next((name for name in heading.names if LABEL_NAME.fullmatch(name)), None)
        target = [f"({label})="] if label and label in _targets(page, heading) else []
        lines += [*target, f"{'#' * level} {_MARKS.sub(_ESCAPED, heading.text)}", ""]
    found = analyze(parse_markdown("\n".join(lines)), None).headings
    ids: dict[str, str] = {}
    for (heading, _), made in zip(kept, found, strict=False):
        for name in (*heading.names, heading.text, made.id):
            ids.setdefault(normalized(name), made.id)
    return ids


def _targets(page: Page, heading: HeadingInfo) -> set[str]:
    """The MyST labels in a heading's segment; other names are anchors in HTML."""
    return {token.content for token in page.texts[heading.at[0]].tokens if token.type == "myst_target"}


def index_pages(pages: list[Page]) -> Mapping[PurePosixPath, Page]:
    """The pages by their paths without endings, as links in any format name them."""
    return {page.document.path.with_suffix(""): page for page in pages}
