"""Rewrites a document's text as the text of a lesson, line by line: what needs no change stays as it is.

Directives stay as they are written; only the files that they name, and those that make no sense in a lesson, change.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from markdown_it.token import Token

from app.imports.code_cells import CellWriter
from app.imports.formulas import ENVIRONMENT, usable_formula
from app.imports.html_markdown import HtmlContext, html_to_markdown
from app.imports.inline_text import InlineRewriter
from app.imports.outline import Page, ParsedText, heading_text
from app.imports.references import References
from app.imports.source import yaml_text
from app.lessons.analysis import PICTURE_WIDTH
from app.lessons.directive_specs import DIRECTIVE_SPECS, JUPYTER_OPTIONS
from app.lessons.directives import Directive
from app.lessons.formulas import InvalidFormula
from app.lessons.highlight import can_highlight
from app.lessons.labels import equation_name, figure_option
from app.lessons.markdown import BODY_PARSER
from app.lessons.roles import read_role

_INFO = re.compile(r"\{([\w:.-]+)\}[ \t]*(.*)")
_DROPPED = {
    "toctree": "course.toml lists the lessons",
    "tableofcontents": "the course's page lists the lessons",
    "contents": "every lesson has a list of its headings",
    "raw": "lessons show no raw HTML or LaTeX",
    "eval-rst": "lessons are Markdown, not reStructuredText",
    "sectionauthor": "a lesson has no place for it",
    "codeauthor": "a lesson has no place for it",
}
"""Directives that make no sense in a lesson, and why."""
_FILE_DIRECTIVES = frozenset({"literalinclude", "video", "csv-table", "download"})
_PREFIX = re.compile(r"^[ \t]*(?:(?:>|[*+-]|\d{1,9}[.)])[ \t]+)*>?[ \t]*")
_Edit = tuple[int, int, list[str]]
"""First line and end line, from 0, and the replacement."""


@dataclass(slots=True)
class TextRewriter:
    """Rewrites the texts of one page, in order."""

    page: Page
    references: References
    cells: CellWriter
    levels: dict[tuple[int, int], int]
    summary: str = ""
    """The first paragraph after the title, as plain text."""
    html: HtmlContext = field(init=False)

    def __post_init__(self) -> None:
        self.html = HtmlContext(self.references.picture, self.references.link)

    def rewrite(self, number: int, parsed: ParsedText) -> str:
        """The text of a segment as lines of the lesson."""
        self.references.segment = parsed.segment
        self.html.removed.clear()
        self.html.details = 0
        self.html.keep_details = _balanced_details(parsed.tokens)
        edits = list(self._edits(number, parsed))
        lines: list[str] = []
        at = 1  # without the empty first line
        for start, end, replacement in edits:
            lines += parsed.lines[at:start] + replacement
            at = max(end, at)
        text = "\n".join(lines + parsed.lines[at:]).strip("\n")
        if self.html.removed:
            tags = ", ".join(f"<{tag}>" for tag in sorted(self.html.removed))
            self.references.report.note(parsed.segment.place(1), f"HTML removed, its text kept: {tags}")
        return re.sub(r"\n{4,}", "\n\n\n", text)

    # --- which lines change ---

    def _edits(self, number: int, parsed: ParsedText) -> Iterator[_Edit]:
        taken = sorted(self._directive_edits(parsed), key=lambda edit: edit[:2])
        done = 1
        for i, token in enumerate(parsed.tokens):
            if token.map is None or token.nesting < 0:
                continue
            start = token.map[0]
            while taken and taken[0][0] <= start:
                first = taken.pop(0)
                if first[0] >= done:
                    yield first
                    done = first[1]
            if start < done:
                continue
            self.references.place = parsed.segment.place(start)
            made = self._edit(number, parsed, i, token)
            if made is not None:
                yield made
                done = made[1]
        yield from (edit for edit in taken if edit[0] >= done)
        unclosed = self._unclosed(parsed)
        if unclosed is not None:
            yield unclosed

    def _edit(self, number: int, parsed: ParsedText, i: int, token: Token) -> _Edit | None:
        assert token.map is not None
        start, end = token.map
        tokens, lines = parsed.tokens, parsed.lines
        directive: Directive | None = token.meta.get("directive") if token.meta else None
        match token.type:
            case "heading_open":
                return start, end, self._heading(number, parsed, start, tokens[i + 1])
            case "myst_target" if self._labels_title(number, tokens[i + 1 : i + 2]):
                return start, end, []  # links to the title need no label
            case "myst_block_break" if token.content.strip():
                return start, end, ["+++"]  # without the metadata of another site's parts
            case "html_block":
                return start, end, _prefixed(lines[start], html_to_markdown(token.content, self.html))
            case "inline":
                return start, end, self._paragraph(lines[start:end], tokens, i)
            case "cell" if directive is not None:
                return start, end, self._cell(parsed, directive, lines[start:end])
            case "figure_open" | "picture" if directive is not None and directive.spec.kind != "glue":
                return self._picture(parsed, directive, start, end)
            case "math_block":
                made = self._formula(token.content, name=equation_name(token))
                return (start, end, _prefixed(lines[start], made)) if made is not None else None
            case "fence" if token.info.split() and not can_highlight(token.info.split()[0]):
                word = token.info.split()[0]
                self._note(f"language '{word[:40]}' of a code block replaced by text")
                return start, start + 1, [lines[start].replace(token.info.strip(), "text", 1)]
        return None

    def _labels_title(self, number: int, after: Sequence[Token]) -> bool:
        lines = [token.map[0] for token in after if token.map is not None]
        return any(self.levels.get((number, line), 2) < 2 for line in lines)

    def _note(self, text: str) -> None:
        self.references.report.note(self.references.place, text)

    # --- text ---

    def _heading(self, number: int, parsed: ParsedText, start: int, inline: Token) -> list[str]:
        level = self.levels.get((number, start), 2)
        text = heading_text(inline)
        if level == 1:
            self._note("heading became the title, in the front matter")
            return []
        written = " ".join(self._inline(inline.content, [inline]).split())
        if not text or not written:
            self._note("empty heading dropped")
            return [] if not written else [written]
        prefix = (_PREFIX.match(parsed.lines[start]) or [""])[0]
        if level == 0:
            return [f"{prefix}**{text}**", ""]
        self.cells.heading = text
        return [f"{prefix}{'#' * level} {written}"]

    def _paragraph(self, lines: list[str], tokens: Sequence[Token], i: int) -> list[str]:
        token = tokens[i]
        in_table = tokens[i - 1].type in ("td_open", "th_open")
        same = list(_row(tokens, i)) if in_table else [token]
        formula = None if in_table else ENVIRONMENT.fullmatch(token.content)
        if formula is not None:
            made = self._formula(token.content, force=True)
            assert made is not None
            return _prefixed(lines[0], made)
        text = self._inline("\n".join(lines), same, in_table=in_table)
        if not self.summary and not in_table and tokens[i - 1].type == "paragraph_open" and tokens[i - 1].level == 0:
            words = heading_text(token) if not _refers(token) else ""
            if len(words.split()) > 4 and not words.lower().startswith(("copyright", "licensed", "author", "©")):
                self.summary = words
        return text.split("\n")

    def _inline(self, text: str, tokens: Sequence[Token], *, in_table: bool = False) -> str:
        rewriter = InlineRewriter(text, self.references, self.html, in_table=in_table)
        for token in tokens:
            rewriter.run(token.children or [])
        return rewriter.result()

    def _formula(self, latex: str, *, name: str = "", force: bool = False) -> str | None:
        """The formula as Markdown, with its name; None if nothing needs to change."""
        try:
            usable = usable_formula(latex, block=True)
        except InvalidFormula as e:
            self._note(f"formula shown as its LaTeX: {e}")
            target = f"({name})=\n" if name else ""
            return f"{target}```latex\n{latex.strip()}\n```"
        if usable == latex and not force:
            return None
        if usable != latex:
            self._note("parts of a formula replaced by what MathML has")
        return f"$$\n{usable.strip()}\n$$" + (f" ({name})" if name else "")

    # --- directives ---

    def _cell(self, parsed: ParsedText, directive: Directive, lines: list[str]) -> list[str]:
        place = parsed.segment.place(directive.line - 1)
        self.references.place = place
        language = directive.argument
        if language not in ("", "python", "python3", "ipython", "ipython3", "ipython2"):
            self._note(f"cell in {language[:40]!r} kept as a code block: Lockstep runs Python")
            return [f"```{language if can_highlight(language) else 'text'}", *directive.body.split("\n"), "```"]
        tags = directive.options.get("tags")
        value = tags.value if tags is not None else []
        words = [str(tag) for tag in value] if isinstance(value, list) else str(value).split(",")
        known = DIRECTIVE_SPECS["code-cell"].options
        kept = []
        for key, entry in directive.options.items():
            if key in ("name", "label", "caption", "tags"):
                continue
            if key in known and isinstance(entry.value, str):
                kept.append(f":{key}: {entry.value}")
            elif key not in JUPYTER_OPTIONS:
                self._note(f"option '{key[:40]}' of a cell dropped")
        label = directive.option("label") or figure_option(directive, "name")
        if label:
            kept.append(f":label: {yaml_text(label)}")
        return self.cells.write(
            directive.body,
            place,
            name=directive.option("name"),
            caption=directive.option("caption") or figure_option(directive, "caption"),
            tags=words,
            options=kept,
        )

    def _picture(self, parsed: ParsedText, directive: Directive, start: int, end: int) -> _Edit | None:
        """The opening of a picture's directive, with its file in assets and alternative text."""
        head_end = directive.body_line
        path = self.references.picture_path(directive.argument)
        if path is None:
            words = self.references.picture(directive.argument, directive.option("alt"))
            body = [*directive.body.split("\n")] if directive.body.strip() else []
            return start, end, ["", words, "", *body]
        prefix = (_PREFIX.match(parsed.lines[start]) or [""])[0]
        indent = re.sub(r"[^\s>]", " ", prefix)
        alt = directive.option("alt") or " ".join(directive.body.split())[:200] or self.references.describe(path)
        options = {key: entry.text for key, entry in directive.options.items()} | {"alt": alt}
        width = options.pop("width", "")
        if PICTURE_WIDTH.fullmatch(width):
            options["width"] = width.removesuffix("px")
        elif width:
            self._note(f"width '{width[:20]}' dropped: write a number of pixels, or a percentage")
        kept = {*directive.spec.options, "name", "label"}
        for key in [key for key in options if key not in kept]:
            self._note(f"option '{key[:40]}' of a picture dropped")
            del options[key]
        first = f"{prefix}{directive.markup}{{{directive.name}}} {path}"
        written = [f"{indent}:{key}: {yaml_text(value)}" for key, value in options.items()]
        return start, min(head_end - 1, end), [first, *written]

    def _directive_edits(self, parsed: ParsedText) -> Iterator[_Edit]:
        """Changes of directives that the reader of lessons may not know."""
        tokens: list[Token] = []
        BODY_PARSER.block.parse("\n".join(parsed.lines), BODY_PARSER, {}, tokens)
        for token in tokens:
            info = _INFO.fullmatch(token.info.strip()) if token.type in ("fence", "colon_fence") else None
            if info is None or token.map is None:
                continue
            start, end = token.map
            self.references.place = parsed.segment.place(start)
            name, argument = info[1], info[2].strip()
            if name in _DROPPED:
                self._note(f"{{{name}}} dropped: {_DROPPED[name]}")
                yield start, end, []
            elif name in _FILE_DIRECTIVES and argument:
                path = self.references.file_link(argument)
                if path is not None:
                    yield start, start + 1, [parsed.lines[start].replace(argument, path, 1)]
                else:
                    self._note(f"{{{name}}}: there is no file '{argument[:80]}' here")

    def _unclosed(self, parsed: ParsedText) -> _Edit | None:
        """The end of a code block that a notebook's cell leaves open; below it come other cells."""
        last = next((t for t in reversed(parsed.tokens) if t.map is not None and t.level == 0), None)
        count = len(parsed.lines)
        if parsed.segment.cell is None or last is None or last.type != "fence" or last.map is None:
            return None
        end = next((n for n in range(count - 1, 0, -1) if parsed.lines[n].strip()), 0)
        closing = parsed.lines[end].strip()
        is_closed = set(closing) == {last.markup[0]} and len(closing) >= len(last.markup) and end > last.map[0]
        if last.map[1] < end + 1 or is_closed:
            return None
        self.references.report.note(parsed.segment.place(1), f"{last.markup} added at the end of an open code block")
        return count, count, [last.markup]


def _refers(paragraph: Token) -> bool:
    """Whether a paragraph has references, whose numbers and names only the page can show."""
    names = [child.meta["name"] for child in paragraph.children or () if child.type == "myst_role"]
    return any(read_role(name, "").name in ("ref", "numref", "eq", "cite", "cite:t", "doc") for name in names)


def _row(tokens: Sequence[Token], i: int) -> Iterator[Token]:
    """The texts of a table's row, from the one at ``i`` on: they are on one line."""
    while i < len(tokens) and tokens[i].type != "tr_close":
        if tokens[i].type == "inline":
            yield tokens[i]
        i += 1


def _balanced_details(tokens: Sequence[Token]) -> bool:
    """Whether ``<details>`` in a text can become a block: each is closed, and no cell is inside."""
    depth = 0
    for token in tokens:
        if token.type == "cell" and depth:
            return False
        if token.type == "html_block":
            if token.level:
                return False
            depth += len(re.findall(r"<details\b", token.content, re.IGNORECASE))
            depth -= len(re.findall(r"</details\s*>", token.content, re.IGNORECASE))
        if depth < 0:
            return False
    return depth == 0


def _prefixed(first_line: str, text: str) -> list[str]:
    """The lines of a block that starts on ``first_line``, with the prefix of its list or quotation."""
    prefix = (_PREFIX.match(first_line) or [""])[0]
    behind = re.sub(r"[^\s>]", " ", prefix)
    return [(behind if i else prefix) + line for i, line in enumerate(text.split("\n"))] if text else []
