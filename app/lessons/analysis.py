"""Walks over a lesson's tokens once: assigns IDs to headings, and collects references and errors."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from markdown_it.token import Token

from app.lessons.directives import Directive, LessonError
from app.lessons.formulas import InvalidFormula, latex_to_mathml
from app.lessons.highlight import can_highlight
from app.lessons.links import InvalidLink, LinkTarget, parse_link
from app.lessons.markdown import ParsedMarkdown
from app.lessons.model import Heading

ROLES = {
    "kbd": "A key to press: {kbd}`Shift`.",
    "math": "A formula within the text, as `$…$` is.",
}
"""Every role and its description, for the reference in ``docs/teach``."""
_UNDEFINED_FOOTNOTE = re.compile(r"\[\^([^\]\s]+)\]")
_TARGET_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")


@dataclass(frozen=True, slots=True)
class LessonReference:
    """A link or picture, and its line."""

    target: LinkTarget
    line: int


@dataclass(slots=True)
class LessonAnalysis:
    headings: list[Heading] = field(default_factory=list)
    ids: set[str] = field(default_factory=set)
    references: list[LessonReference] = field(default_factory=list)
    faults: list[LessonError] = field(default_factory=list)


def analyze(parsed: ParsedMarkdown, title: str | None) -> LessonAnalysis:
    """Analyze the tokens. Headings get an ``id`` attribute; a heading that repeats the title is removed."""
    _remove_title(parsed.tokens, title)
    walk = _Analyzer(LessonAnalysis())
    for i, token in enumerate(parsed.tokens):
        if token.map is not None:
            walk.line = token.map[0] + 1
        visit = _VISITORS.get(token.type)
        if visit is not None:
            visit(walk, token, parsed.tokens, i)
    return walk.found


def _remove_title(tokens: list[Token], title: str | None) -> None:
    """A notebook may start with its title as a ``# heading``; the page shows the title once."""
    at = next((i for i, token in enumerate(tokens) if token.type not in ("front_matter", "myst_line_comment")), None)
    if at is None or title is None or tokens[at].type != "heading_open" or tokens[at].tag != "h1":
        return
    if " ".join(_text(tokens[at + 1]).split()) == title:
        del tokens[at : at + 3]


@dataclass(slots=True)
class _Analyzer:
    found: LessonAnalysis
    line: int = 1
    level: int = 1
    target: str | None = None
    task: str = ""
    """The directive of the task that the walk is in; empty outside."""

    def fault(self, text: str, line: int | None = None) -> None:
        self.found.faults.append(LessonError(self.line if line is None else line, text))

    # --- blocks ---

    def heading(self, token: Token, tokens: list[Token], i: int) -> None:
        level, text = int(token.tag[1]), _text(tokens[i + 1]).strip()
        if self.task:
            self.fault(f"a heading cannot be inside {{{self.task}}}; use **bold** text")
            return
        if level == 1:
            self.fault("the title is in the front matter; start headings with ##")
        elif level > self.level + 1:
            self.fault(f"a heading of level {level} follows one of level {self.level}; write {'#' * (self.level + 1)}")
        if not text:
            self.fault("the heading is empty; write its text or remove it")
        self.level = max(level, 2) if level > 1 else 1
        name = self.target or _unique(_slug(text), self.found.ids)
        self.target = None
        self.found.ids.add(name)
        token.attrSet("id", name)
        self.found.headings.append(Heading(name, text, level))

    def named_target(self, token: Token, tokens: list[Token], i: int) -> None:
        name = token.content
        if not _TARGET_NAME.fullmatch(name) or name.startswith("cell-"):
            self.fault(f"the target '{name[:40]}' cannot be a name; use letters, digits, and hyphens")
        elif name in self.found.ids:
            self.fault(f"the target '{name}' is defined twice; give this one another name")
        elif i + 1 >= len(tokens) or tokens[i + 1].type != "heading_open":
            self.fault(f"the target '{name}' labels nothing; put it on the line above a heading")
        else:
            self.target = name

    def fence(self, token: Token, tokens: list[Token], i: int) -> None:
        language = token.info.split()[0] if token.info.split() else ""
        if language and not can_highlight(language):
            self.fault(f"unknown language '{language[:40]}' for a code block; write python, bash, text, …")

    def html(self, token: Token, tokens: list[Token], i: int) -> None:
        hint = "use % for a comment" if token.content.lstrip().startswith("<!--") else "write Markdown, or `code`"
        self.fault(f"raw HTML is not shown: {token.content.strip()[:40]!r}; {hint}")

    def formula(self, token: Token, tokens: list[Token], i: int) -> None:
        self._formula(token.content, self.line, block=True)

    def figure(self, token: Token, tokens: list[Token], i: int) -> None:
        directive: Directive = token.meta["directive"]
        self._picture(directive.argument, directive.option("alt"), directive.line, "an option ':alt: …'")
        width = directive.option("width")
        if width and not (re.fullmatch(r"[0-9]{1,4}", width) and int(width)):
            self.fault("'width' must be a whole number of pixels", directive.options["width"].line)

    def task_opens(self, token: Token, tokens: list[Token], i: int) -> None:
        self.task = token.meta["directive"].name

    def task_closes(self, token: Token, tokens: list[Token], i: int) -> None:
        self.task = ""

    def box(self, token: Token, tokens: list[Token], i: int) -> None:
        directive: Directive = token.meta["directive"]
        if "class" in directive.options and directive.option("class") not in ("dropdown", "note", "tip", "warning"):
            self.fault("'class' must be dropdown, note, tip or warning", directive.options["class"].line)

    def captioned(self, token: Token, tokens: list[Token], i: int) -> None:
        depth = 0
        for later in tokens[i:]:
            depth += later.nesting if later.type.startswith("captioned_") else 0
            if later.type == "table_open" or depth == 0:
                break
        if later.type != "table_open":
            self.fault("{table} contains no table; write one with | columns | like | these |")

    # --- text ---

    def inline(self, token: Token, tokens: list[Token], i: int) -> None:
        line = self.line
        for child in token.children or ():
            if child.type in ("softbreak", "hardbreak"):
                line += 1
            self._piece(child, line)

    def _piece(self, child: Token, line: int) -> None:
        if child.type == "link_open":
            self._link(str(child.attrs.get("href", "")), line)
        elif child.type == "image":
            self._picture(str(child.attrs.get("src", "")), child.content, line, "words between ![ and ]")
            for inner in child.children or ():
                self._piece(inner, line)
        elif child.type == "html_inline":
            hint = "use % for a comment" if child.content.startswith("<!--") else "write Markdown, or `code`"
            self.fault(f"raw HTML is not shown: {child.content[:40]!r}; {hint}", line)
        elif child.type == "math_inline":
            self._formula(child.content, line, block=False)
        elif child.type == "myst_role":
            self._role(child, line)
        elif child.type == "footnote_ref" and self.task:
            self.fault(f"a footnote cannot be inside {{{self.task}}}; write its text in place", line)
        elif child.type == "text":
            for lost in _UNDEFINED_FOOTNOTE.finditer(child.content):
                self.fault(f"there is no footnote '{lost[1]}'; add a line '[^{lost[1]}]: …'", line)

    def _role(self, role: Token, line: int) -> None:
        if role.meta["name"] == "math":
            self._formula(role.content, line, block=False)
        elif role.meta["name"] not in ROLES:
            self.fault(f"unknown role {{{role.meta['name'][:40]}}}; use one of {', '.join(ROLES)}", line)

    def _formula(self, latex: str, line: int, *, block: bool) -> None:
        try:
            latex_to_mathml(latex, block=block)
        except InvalidFormula as e:
            self.fault(f"the formula cannot be read: {e}", line)

    def _link(self, href: str, line: int) -> None:
        try:
            self.found.references.append(LessonReference(parse_link(href), line))
        except InvalidLink as e:
            self.fault(f"the link {e}", line)

    def _picture(self, source: str, alt: str, line: int, where: str) -> None:
        if not alt.strip():
            self.fault(f"the picture '{source[:80]}' has no alternative text; add {where}", line)
        try:
            target = parse_link(source)
        except InvalidLink:
            target = LinkTarget("outside")
        if target.kind != "asset":
            self.fault(f"the picture '{source[:80]}' is not in the lesson; put it in assets/ and write assets/…", line)
        else:
            self.found.references.append(LessonReference(target, line))


_VISITORS: dict[str, Callable[[_Analyzer, Token, list[Token], int], None]] = {
    "heading_open": _Analyzer.heading,
    "myst_target": _Analyzer.named_target,
    "fence": _Analyzer.fence,
    "html_block": _Analyzer.html,
    "math_block": _Analyzer.formula,
    "figure_open": _Analyzer.figure,
    "picture": _Analyzer.figure,
    "admonition_open": _Analyzer.box,
    "captioned_open": _Analyzer.captioned,
    "task_open": _Analyzer.task_opens,
    "task_close": _Analyzer.task_closes,
    "inline": _Analyzer.inline,
}


def _text(inline: Token) -> str:
    return "".join(_text_parts(inline.children or []))


def _text_parts(children: list[Token]) -> Iterator[str]:
    for child in children:
        if child.type in ("softbreak", "hardbreak"):
            yield " "
        elif child.type not in ("html_inline", "footnote_ref"):
            yield child.content


def _slug(text: str) -> str:
    """The letters and digits of any script, joined by hyphens."""
    words = re.findall(r"\w+", unicodedata.normalize("NFKC", text).casefold())
    return "-".join(words)[:80] or "section"


def _unique(slug: str, taken: set[str]) -> str:
    if slug.startswith(("cell-", "fn")):
        slug = f"s-{slug}"  # the prefixes are used for IDs of cells and footnotes
    if slug not in taken:
        return slug
    n = next(n for n in range(2, len(taken) + 3) if f"{slug}-{n}" not in taken)
    return f"{slug}-{n}"
