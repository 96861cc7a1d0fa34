"""Walks over a lesson's tokens once: assigns IDs to headings, and collects references and errors."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field

from markdown_it.token import Token

from app.lessons.directives import Directive, LessonError, lesson_warning
from app.lessons.formulas import InvalidFormula, latex_to_mathml
from app.lessons.highlight import can_highlight
from app.lessons.labels import Labels, collect_labels, safe_id
from app.lessons.links import InvalidLink, LinkTarget, parse_link
from app.lessons.markdown import ParsedMarkdown
from app.lessons.model import Heading
from app.lessons.plain_text import plain_text, text_id
from app.lessons.raw_html import mark_formatting
from app.lessons.roles import (
    ROLES,
    cited_keys,
    is_known_role,
    reference_problem,
    role_problem,
    role_reference,
    similar_role,
)

_UNDEFINED_FOOTNOTE = re.compile(r"\[\^([^\]\s]+)\]")
_LOWEST_HEADING = 6
PICTURE_WIDTH = re.compile(r"[0-9]{1,4}(?:px)?|[0-9]{1,3}(?:\.[0-9]+)?%")


@dataclass(frozen=True, slots=True)
class LessonReference:
    """A link or picture, and its line."""

    target: LinkTarget
    line: int
    steps: int | None = None
    """Of a picture: the length of the numbered list that says what its steps show; 0 without a list."""


@dataclass(slots=True)
class LessonAnalysis:
    headings: list[Heading] = field(default_factory=list)
    ids: set[str] = field(default_factory=set)
    references: list[LessonReference] = field(default_factory=list)
    faults: list[LessonError] = field(default_factory=list)
    labels: Labels = field(default_factory=Labels)
    title: str | None = None
    """The title, if it is a ``# heading`` at the top of the text."""


def analyze(parsed: ParsedMarkdown, title: str | None) -> LessonAnalysis:
    """Analyze the tokens. Headings get an ``id`` attribute; a heading that is the title is removed."""
    found = LessonAnalysis(title=_take_title(parsed.tokens, title))
    found.labels, faults = collect_labels(parsed.tokens)
    found.faults += faults
    found.ids = set(found.labels.ids)
    deeper = any(token.type == "heading_open" and token.tag == "h1" for token in parsed.tokens)
    walk = _Analyzer(found, deeper=deeper)
    for i, token in enumerate(parsed.tokens):
        if token.map is not None:
            walk.line = token.map[0] + 1
        visit = _VISITORS.get(token.type)
        if visit is not None:
            visit(walk, token, parsed.tokens, i)
    return walk.found


def _take_title(tokens: list[Token], title: str | None) -> str | None:
    """A notebook has its title as a ``# heading``; the page shows the title once.

    It is the first one of a lesson without another title, and one at the top that repeats the title.
    """
    skipped = ("front_matter", "myst_line_comment", "myst_block_break", "myst_target", "html_block", "dropped")
    at = next((i for i, token in enumerate(tokens) if token.type not in skipped), None)
    if title is None:
        at = next((i for i, token in enumerate(tokens) if token.type == "heading_open" and token.tag == "h1"), None)
    if at is None or tokens[at].type != "heading_open" or tokens[at].tag != "h1":
        return None
    written = plain_text(tokens[at + 1])
    if not written or title not in (None, written):
        return None
    del tokens[at : at + 3]
    return written


@dataclass(slots=True)
class _Analyzer:
    found: LessonAnalysis
    line: int = 1
    level: int = 1
    written: int = 1
    """The level of the last heading as its author wrote it."""
    task: str = ""
    """The directive of the task that the walk is in; empty outside."""
    deeper: bool = False
    """Whether every heading moves down by one level, because the text has more headings like its title."""
    roles_listed: bool = False
    """Whether a warning has named all roles, which is said once."""
    numbers: dict[str, int] = field(default_factory=dict)
    """The last number that made a heading's ID unique, by the ID without it."""

    def fault(self, text: str, line: int | None = None) -> None:
        self.found.faults.append(LessonError(self.line if line is None else line, text))

    def warn(self, text: str, line: int | None = None) -> None:
        self.found.faults.append(lesson_warning(self.line if line is None else line, text))

    # --- blocks ---

    def heading(self, token: Token, tokens: list[Token], i: int) -> None:
        written, text = int(token.tag[1]), plain_text(tokens[i + 1])
        if self.task:
            self.fault(f"a heading cannot be inside {{{self.task}}}; use **bold** text")
            return
        if written == 1:
            self.warn("a lesson has one title; start this heading with ##")
        deepest = self.written + 1
        if written > deepest:
            self.warn(f"a heading of level {written} follows one of level {self.written}; write {'#' * deepest}")
        self.written = min(written, deepest)
        level = min(written + self.deeper, self.level + 1, _LOWEST_HEADING)
        if not text:
            self.warn("the heading is empty; write its text or remove it")
        self.level = level
        name = token.meta.get("id") or self._unique(text_id(text))
        self.found.ids.add(name)
        token.attrSet("id", name)
        token.tag = tokens[i + 2].tag = f"h{level}"
        self.found.headings.append(Heading(name, text, level))

    def _unique(self, name: str) -> str:
        name = unique = safe_id(name)
        number = self.numbers.get(name, 1)
        while unique in self.found.ids:
            number += 1
            unique = f"{name}-{number}"
        self.numbers[name] = number
        return unique

    def fence(self, token: Token, tokens: list[Token], i: int) -> None:
        language = token.info.split()[0] if token.info.split() else ""
        if language and not can_highlight(language):
            self.warn(f"unknown language '{language[:40]}' for a code block; write python, bash, text, …")

    def html(self, token: Token, tokens: list[Token], i: int) -> None:
        self._html(token.content.strip(), self.line)

    def formula(self, token: Token, tokens: list[Token], i: int) -> None:
        self._formula(token.content, self.line, block=True)

    def figure(self, token: Token, tokens: list[Token], i: int) -> None:
        directive: Directive = token.meta["directive"]
        if directive.spec.kind == "glue":
            problem = role_problem(directive.name, directive.argument, self.found.labels)
            if problem is not None:
                self.warn(problem, directive.line)
            return
        steps = _steps_in_caption(tokens, i) if token.type == "figure_open" else 0
        self._picture(directive.argument, directive.option("alt"), directive.line, "an option ':alt: …'", steps)
        width = directive.option("width")
        if width and not (PICTURE_WIDTH.fullmatch(width) and width.strip("0px%.")):
            self.warn("'width' must be a whole number of pixels, or a percentage", directive.options["width"].line)

    def task_opens(self, token: Token, tokens: list[Token], i: int) -> None:
        self.task = token.meta["directive"].name

    def task_closes(self, token: Token, tokens: list[Token], i: int) -> None:
        self.task = ""

    def captioned(self, token: Token, tokens: list[Token], i: int) -> None:
        depth = 0
        for later in tokens[i:]:
            depth += later.nesting if later.type.startswith("captioned_") else 0
            if later.type == "table_open" or depth == 0:
                break
        if later.type != "table_open":
            name = token.meta["directive"].name
            self.warn(f"{{{name}}} contains no table; write one with | columns | like | these |")

    # --- text ---

    def inline(self, token: Token, tokens: list[Token], i: int) -> None:
        line = self.line
        mark_formatting(token.children or [])
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
            if not child.content.startswith("</"):
                self._html(child.content, line)
        elif child.type in ("math_inline", "math_inline_double"):
            self._formula(child.content, line, block=child.type != "math_inline")
        elif child.type == "myst_role":
            self._role(child, line)
        elif child.type == "footnote_ref" and self.task:
            self.fault(f"a footnote cannot be inside {{{self.task}}}; write its text in place", line)
        elif child.type == "text":
            for lost in _UNDEFINED_FOOTNOTE.finditer(child.content):
                self.warn(f"there is no footnote '{lost[1]}'; add a line '[^{lost[1]}]: …'", line)

    def _html(self, content: str, line: int) -> None:
        if content.startswith("<!--"):
            self.warn(f"raw HTML is not shown: {content[:40]!r}; use % for a comment", line)
        else:
            what = f"raw HTML is reduced to its words and simple formatting: {content[:40]!r}"
            self.warn(f"{what}; write Markdown, or `code`", line)

    def _role(self, role: Token, line: int) -> None:
        name, labels = role.meta["name"], self.found.labels
        if name == "math":
            self._formula(role.content, line, block=False)
            return
        if not is_known_role(name):
            self._unknown_role(name, line)
        elif (broken := reference_problem(name, role.content, labels)) is not None:
            self.found.faults.append(LessonError(line, broken, blocks=False))
        elif (problem := role_problem(name, role.content, labels)) is not None:
            self.warn(problem, line)
        target = role_reference(name, role.content)
        if target is not None:
            self.found.references.append(LessonReference(target, line))
        if name.startswith("cite"):
            labels.cited |= dict.fromkeys(cited_keys(role.content))

    def _unknown_role(self, name: str, line: int) -> None:
        text = f"unknown role {{{name[:40]}}}: its words are shown as they are"
        similar = similar_role(name)
        if similar:
            self.warn(f"{text}; did you mean '{similar}'?", line)
            return
        self.warn(f"{text}; use one of {', '.join(ROLES)}" if not self.roles_listed else text, line)
        self.roles_listed = True

    def _formula(self, latex: str, line: int, *, block: bool) -> None:
        try:
            latex_to_mathml(latex, block=block)
        except InvalidFormula as e:
            self.warn(f"the formula cannot be read, so its LaTeX is shown: {e}", line)

    def _link(self, href: str, line: int) -> None:
        if href.removeprefix("#") in self.found.labels.by_name:
            return
        try:
            self.found.references.append(LessonReference(parse_link(href), line))
        except InvalidLink as e:
            self.warn(f"the link {e}", line)

    def _picture(self, source: str, alt: str, line: int, where: str, steps: int = 0) -> None:
        if not alt.strip():
            self.warn(f"the picture '{source[:80]}' has no alternative text; add {where}", line)
        try:
            target = parse_link(source)
        except InvalidLink:
            target = LinkTarget("outside")
        if target.kind != "asset":
            self.warn(f"the picture '{source[:80]}' is not in the lesson; put it in assets/ and write assets/…", line)
        else:
            self.found.references.append(LessonReference(target, line, steps))


def _steps_in_caption(tokens: list[Token], i: int) -> int:
    """The number of items in the numbered list that ends the caption of the figure at ``i``; 0 without one."""
    end = next(j for j in range(i, len(tokens)) if tokens[j].type == "figure_close")
    if tokens[end - 1].type != "ordered_list_close":
        return 0
    level = tokens[end - 1].level
    items = 0
    for token in reversed(tokens[i : end - 1]):
        if token.type == "ordered_list_open" and token.level == level:
            break
        items += token.type == "list_item_open" and token.level == level + 1
    return items


_VISITORS: dict[str, Callable[[_Analyzer, Token, list[Token], int], None]] = {
    "heading_open": _Analyzer.heading,
    "fence": _Analyzer.fence,
    "html_block": _Analyzer.html,
    "math_block": _Analyzer.formula,
    "figure_open": _Analyzer.figure,
    "picture": _Analyzer.figure,
    "captioned_open": _Analyzer.captioned,
    "task_open": _Analyzer.task_opens,
    "task_close": _Analyzer.task_closes,
    "inline": _Analyzer.inline,
}
