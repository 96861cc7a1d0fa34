"""Expands fences that are directives into tokens. Their bodies are parsed in place.

=====================================  =====================================================
token                                  meaning
=====================================  =====================================================
``cell``                               ``{code-cell}``; only between top-level blocks
``admonition_open`` … ``_close``       ``{note}``, ``{admonition}``, ``{dropdown}`` and similar, and unknown directives
``figure_open`` … ``_close``           ``{figure}``, ``{video}`` and ``{glue:}`` around their caption
``picture``                            ``{image}``
``captioned_open`` … ``_close``        ``{table}``, ``{list-table}`` and ``{csv-table}`` around caption and table
``listing``                            ``{code-block}``, ``{literalinclude}``, ``{mermaid}``, and nested cells
``math_block``                         ``$$…$$``, ``{math}``, and LaTeX environments
``task_open`` … ``_close``             ``{exercise}``, ``{solution}`` of a cell, ``{quiz}`` and ``{predict}``
``gate_open`` … ``_close``             other ``{exercise}`` and ``{solution}``, and those of ``-start`` and ``-end``
``box_open`` … ``_close``              ``{tab-set}``, ``{tab-item}``, ``{grid}``, ``{card}``, ``{glossary}`` …
``rubric_open`` … ``_close``           ``{rubric}``
``bibliography``                       ``{bibliography}``
``include``, ``dropped``               ``{include}`` above the tokens of its file; what the page does not show
=====================================  =====================================================

Each of these tokens has its Directive in ``meta["directive"]``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, MutableMapping
from pathlib import Path
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.token import Token

from app.lessons.bibliography import parse_bibliography
from app.lessons.directive_specs import UNKNOWN_SPEC, DirectiveKind
from app.lessons.directives import Directive, LessonError, lesson_warning, parse_directive
from app.lessons.included_files import UnreadableInclude, bibliography_files, read_included_file
from app.lessons.limited_table import MAX_LESSON_CELLS
from app.lessons.line_ranges import InvalidLines, select_lines
from app.lessons.listed_tables import csv_rows, list_table_tokens, table_tokens

_UNREAD_FENCE = re.compile(r"(`{3,})[ \t]*(\{[\w-]+\})(?!.*\1).*`")
_CHOICE_MARK = re.compile(r"\[([ xX])\](?:[ \t\n]+|$)")
_TERM_LINE = re.compile(r"(?m)^(?=\S)(?!:)(?P<term>.+)\n(?P<meaning>(?:[ \t]+\S.*(?:\n|$))+)")
_MAX_DEPTH = 8
"""How deep directives may be nested."""
_AT_MARGIN = ("code-cell", "quiz", "predict")
"""Directives that are never inside another block. One that is tells of the other block's missing end."""
_MAX_INCLUDES = 50
_MAX_INCLUDED_BYTES = 1_000_000
"""Of all files that a lesson includes together, each as often as it is included."""
PYTHON_LANGUAGES = ("", "python", "python3", "ipython3", "ipython", "ipython2", "py")
"""The languages of a cell that can run."""


class DirectiveExpander:
    """Expands the tokens of one lesson. ``cells`` are the names of its top-level cells."""

    def __init__(
        self,
        env: MutableMapping[str, Any],
        parser: MarkdownIt,
        cells: frozenset[str],
        *,
        lines: list[str],
        faults: list[LessonError],
    ) -> None:
        self._env = env
        self._parser = parser
        self._cells = cells
        self._lines = lines
        self._faults = faults
        self._folder: Path | None = env.get("folder")
        self._around: list[Directive] = []
        """The directives around the tokens that are being expanded, the outermost first."""

    def expand(self, tokens: list[Token], depth: int = 0) -> Iterator[Token]:
        """Replace the fences of directives with the directives' tokens."""
        nesting = 0
        gates: list[tuple[int, Directive]] = []
        for token in tokens:
            nesting += token.nesting
            while gates and nesting < gates[-1][0]:
                yield self._close_gate(*gates.pop(), "it has to end in the same block")
            if token.type in ("amsmath", "math_block_label"):
                token.meta = {"name": token.info} if token.type == "math_block_label" else {}
                token.type = "math_block"
            if token.type not in ("fence", "colon_fence") or token.map is None:
                self._faults += _unread_fences(token)
                yield token
                continue
            directive = parse_directive(token.info, token.content, token.map[0] + 1, token.map[1], token.markup)
            if not (self._around and directive is not None and directive.name in _AT_MARGIN):
                self._faults += _fence_errors(token, directive, self._lines)
            if directive is None:
                if token.type == "fence":
                    yield token
                elif depth < _MAX_DEPTH:
                    yield from self._body(token.content, token.map[0] + 2, depth)
                continue
            self._faults += directive.faults
            if directive.spec.kind == "gate-start":
                gates.append((nesting, directive))
                yield from self._gate(directive, token)
            elif directive.spec.kind == "gate-end":
                yield _token("dropped", token, directive)
                name = directive.name.replace("-end", "-start")
                if not gates or gates[-1][1].name != name:
                    text = f"{{{directive.name}}} ends nothing; write {{{name}}} above it, or remove it"
                    self._faults.append(lesson_warning(directive.line, text))
                else:
                    yield self._close_gate(*gates.pop(), "")
            else:
                yield from self._directive(directive, token, depth, nested=bool(nesting or depth), gates=gates)
        while gates:
            yield self._close_gate(*gates.pop(), "it has no end")

    def _close_gate(self, _nesting: int, directive: Directive, problem: str) -> Token:
        if problem:
            name = directive.name.replace("-start", "-end")
            text = f"{{{directive.name}}} is never closed: {problem}; write {{{name}}} below it"
            self._faults.append(lesson_warning(directive.line, text))
        return Token("gate_close", "", -1, meta={"directive": directive}, block=True)

    def _directive(
        self, directive: Directive, fence: Token, depth: int, *, nested: bool, gates: list[tuple[int, Directive]]
    ) -> Iterator[Token]:
        kind = directive.spec.kind
        if kind == "cell":
            yield self._cell(directive, fence, nested=nested, solved=any("solution" in each.name for _, each in gates))
        elif depth >= _MAX_DEPTH:
            self._faults.append(LessonError(directive.line, "directives are nested too deeply; move this one out"))
        elif kind == "task":
            yield from self._task(directive, fence, depth, nested=nested)
        elif kind in ("silent", "dropped"):
            yield _token("dropped", fence, directive)
        else:
            self._around.append(directive)
            yield from _EXPANSIONS[kind](self, directive, fence, depth)
            self._around.pop()

    def _block_around(self) -> tuple[str, str]:
        """The outermost block that is open here, as an author finds it, and what to do about it."""
        if not self._around:
            return "another block", "move it to the left margin"
        outermost = self._around[0]
        hint = f"close that with {outermost.markup} above this, or move this to the left margin"
        return f"the {{{outermost.name}}} of line {outermost.line}", hint

    # --- cells and tasks ---

    def _cell(self, directive: Directive, fence: Token, *, nested: bool, solved: bool) -> Token:
        if nested:
            block, hint = self._block_around()
            text = f"a code cell cannot be inside {block}, so its code is only shown; {hint}"
        elif directive.argument not in PYTHON_LANGUAGES:
            text = f"a cell cannot run {directive.argument[:40]!r}, so its code is only shown; write python"
        else:
            if fence.type == "colon_fence":
                text = "a code cell needs ``` and not :::, or Jupyter would not see it"
                self._faults.append(lesson_warning(directive.line, text))
            cell = _token("cell", fence, directive)
            cell.meta["solution"] = solved
            return cell
        self._faults.append(lesson_warning(directive.line, text))
        return self._listing(directive, fence, directive.argument or "python", directive.body)

    def _task(self, directive: Directive, fence: Token, depth: int, *, nested: bool) -> Iterator[Token]:
        name = directive.argument if directive.name == "solution" else directive.option("label")
        if directive.name in ("exercise", "solution") and name not in self._cells:
            yield from self._gate(directive, fence)
            yield from self._body(directive.body, directive.body_line, depth)
            yield _token("gate_close", fence, directive, nesting=-1)
            return
        if nested:
            block, hint = self._block_around()
            text = f"{{{directive.name}}} cannot be inside {block}; {hint}"
            self._faults.append(LessonError(directive.line, text))
        body = self._body(directive.body, directive.body_line, depth)
        yield _token("task_open", fence, directive, nesting=1)
        if directive.argument:
            yield from _caption(directive)
        yield from _mark_choices(body) if directive.name in ("quiz", "predict") else body
        yield _token("task_close", fence, directive, nesting=-1)

    def _gate(self, directive: Directive, fence: Token) -> Iterator[Token]:
        yield _token("gate_open", fence, directive, nesting=1)
        if directive.argument and directive.name.startswith("exercise"):
            yield from _caption(directive)

    # --- boxes ---

    def _admonition(self, directive: Directive, fence: Token, depth: int) -> Iterator[Token]:
        yield _token("admonition_open", fence, directive, nesting=1)
        if directive.argument:
            yield from self._body(directive.argument, directive.line, depth)
        yield from self._body(directive.body, directive.body_line, depth)
        yield _token("admonition_close", fence, directive, nesting=-1)

    def _titled(self, directive: Directive, fence: Token, depth: int) -> Iterator[Token]:
        domain, _, kind = directive.name.rpartition(":")
        if domain:  # such as prf:theorem
            kind = kind.replace("-", " ").capitalize()
            directive.argument = f"{kind} ({directive.argument})" if directive.argument else kind
        elif directive.spec is UNKNOWN_SPEC and not directive.argument and not directive.body.strip():
            return
        yield _token("admonition_open", fence, directive, nesting=1)
        if directive.argument:
            yield from _caption(directive)
        yield from self._body(directive.body, directive.body_line, depth)
        yield _token("admonition_close", fence, directive, nesting=-1)

    def _box(self, directive: Directive, fence: Token, depth: int) -> Iterator[Token]:
        yield _token("box_open", fence, directive, nesting=1)
        yield from self._body(directive.body, directive.body_line, depth)
        yield _token("box_close", fence, directive, nesting=-1)

    def _tab(self, directive: Directive, fence: Token, depth: int) -> Iterator[Token]:
        yield _token("box_open", fence, directive, nesting=1)
        yield from _caption(directive)
        yield from self._body(directive.body, directive.body_line, depth)
        yield _token("box_close", fence, directive, nesting=-1)

    def _card(self, directive: Directive, fence: Token, depth: int) -> Iterator[Token]:
        lines = directive.body.split("\n")
        first, last = 0, len(lines)
        for number, line in enumerate(lines):
            first = number + 1 if re.fullmatch(r"\^{3,}\s*", line) and not first else first
            last = number if re.fullmatch(r"\+{3,}\s*", line) else last
        header, footer = directive.option("header"), directive.option("footer")
        yield _token("box_open", fence, directive, nesting=1)
        if header:
            yield from self._part("card_header", header, directive.line, depth)
        elif first:
            yield from self._part("card_header", "\n".join(lines[: first - 1]), directive.body_line, depth)
        if directive.argument:
            yield from _caption(directive)
        yield from self._body("\n".join(lines[first:last]), directive.body_line + first, depth)
        if footer:
            yield from self._part("card_footer", footer, directive.line, depth)
        elif last < len(lines):
            below = "\n".join(lines[last + 1 :])
            yield from self._part("card_footer", below, directive.body_line + last + 1, depth)
        yield _token("box_close", fence, directive, nesting=-1)

    def _part(self, kind: str, text: str, line: int, depth: int) -> Iterator[Token]:
        yield Token(f"{kind}_open", "", 1, block=True)
        yield from self._body(text, line, depth)
        yield Token(f"{kind}_close", "", -1, block=True)

    def _quote(self, directive: Directive, fence: Token, depth: int) -> Iterator[Token]:
        meta = {"directive": directive}
        yield Token("blockquote_open", "blockquote", 1, map=fence.map, block=True, meta=meta)
        if directive.argument:
            yield from self._body(directive.argument, directive.line, depth)
        yield from self._body(directive.body, directive.body_line, depth)
        yield Token("blockquote_close", "blockquote", -1, block=True)

    def _plain(self, directive: Directive, fence: Token, depth: int) -> Iterator[Token]:
        yield _token("dropped", fence, directive)
        yield from self._body(directive.body, directive.body_line, depth)

    def _glossary(self, directive: Directive, fence: Token, depth: int) -> Iterator[Token]:
        def as_definition(match: re.Match[str]) -> str:
            meaning = match["meaning"].rstrip("\n")
            return f"{match['term']}\n: {meaning.lstrip()}\n"

        body = directive.body
        if not re.search(r"(?m)^:[ \t]", body):
            body = _TERM_LINE.sub(as_definition, body)
        yield _token("box_open", fence, directive, nesting=1)
        yield from self._body(body, directive.body_line, depth)
        yield _token("box_close", fence, directive, nesting=-1)

    def _rubric(self, directive: Directive, fence: Token, depth: int) -> Iterator[Token]:
        meta = {"directive": directive}
        yield Token("rubric_open", "p", 1, map=fence.map, block=True, attrs={"class": "rubric"}, meta=meta)
        yield from list(_caption(directive))[1:2]
        yield Token("rubric_close", "p", -1, block=True)
        yield from self._body(directive.body, directive.body_line, depth)

    # --- pictures, code, formulas, tables ---

    def _figure(self, directive: Directive, fence: Token, depth: int) -> Iterator[Token]:
        figure = _token("figure_open", fence, directive, nesting=1)
        yield figure
        yield from self._body(directive.body, directive.body_line, depth)
        end = _token("figure_close", fence, directive, nesting=-1)
        end.meta = figure.meta
        yield end

    def _picture(self, directive: Directive, fence: Token, depth: int) -> Iterator[Token]:
        yield _token("picture", fence, directive)

    def _math(self, directive: Directive, fence: Token, depth: int) -> Iterator[Token]:
        body = "\n".join(filter(None, (directive.argument, directive.body)))
        formula = _token("math_block", fence, directive, content=body)
        formula.meta["name"] = directive.label
        yield formula

    def _code(self, directive: Directive, fence: Token, depth: int) -> Iterator[Token]:
        language = "text" if directive.name == "mermaid" else directive.argument
        yield self._listing(directive, fence, language, directive.body)

    def _literal_include(self, directive: Directive, fence: Token, depth: int) -> Iterator[Token]:
        text = self._read(directive, directive.argument)
        if text is None:
            yield _token("dropped", fence, directive)
            return
        try:
            shown = select_lines(text, {key: entry.text for key, entry in directive.options.items()})
        except InvalidLines as e:
            self._faults.append(lesson_warning(directive.line, f"{{literalinclude}} shows the whole file: {e}"))
            shown = text
        suffix = Path(directive.argument).suffix.removeprefix(".")
        language = directive.option("language") or {"py": "python", "sh": "bash", "yml": "yaml"}.get(suffix, suffix)
        yield self._listing(directive, fence, language, shown.rstrip("\n"))

    def _include(self, directive: Directive, fence: Token, depth: int) -> Iterator[Token]:
        content = self._read(directive, directive.argument)
        if content is None:
            yield _token("dropped", fence, directive)
            return
        yield _token("include", fence, directive, content=content)
        found: list[LessonError] = []
        inner = DirectiveExpander(self._env, self._parser, self._cells, lines=content.split("\n"), faults=found)
        for token in inner._body(content, 1, depth):
            if token.map is not None:
                token.map = [directive.line - 1, directive.end_line]
            yield token
        for fault in found:
            text = f"line {fault.line} of '{directive.argument[:80]}': {fault.text}"
            self._faults.append(lesson_warning(directive.line, text))

    def _read(self, directive: Directive, name: str) -> str | None:
        """The text of a file of the lesson; None if it cannot be shown, or if the lesson includes too much already."""
        number, size = self._env.get("included", (0, 0))
        if number >= _MAX_INCLUDES or size >= _MAX_INCLUDED_BYTES:
            limits = f"{_MAX_INCLUDES} files and {_MAX_INCLUDED_BYTES:,} bytes"
            text = f"the file '{name[:80]}' is not shown, because a lesson can include {limits}; split the lesson"
            self._faults.append(lesson_warning(directive.line, text))
            return None
        try:
            text = read_included_file(self._folder, name)
        except UnreadableInclude as e:
            self._faults.append(lesson_warning(directive.line, f"the file '{name[:80]}' {e}"))
            return None
        self._env["included"] = number + 1, size + len(text)
        return text

    def _listing(self, directive: Directive, fence: Token, language: str, code: str) -> Token:
        listing = _token("listing", fence, directive, content=code)
        listing.info = language
        return listing

    def _table(self, directive: Directive, fence: Token, depth: int) -> Iterator[Token]:
        yield _token("captioned_open", fence, directive, nesting=1)
        if directive.argument:
            yield from _caption(directive)
        if directive.spec.kind == "table":
            yield from self._body(directive.body, directive.body_line, depth)
        elif self._env.get("table_cells", 0) <= MAX_LESSON_CELLS:
            table = list(self._listed_table(directive, depth))
            cells = sum(token.type in ("th_open", "td_open") for token in table)
            self._env["table_cells"] = self._env.get("table_cells", 0) + cells
            yield from table
        yield _token("captioned_close", fence, directive, nesting=-1)

    def _listed_table(self, directive: Directive, depth: int) -> Iterator[Token]:
        if directive.spec.kind == "list-table":
            items = list(self._body(directive.body, directive.body_line, depth))
            return list_table_tokens(items, directive, self._faults)
        text = self._read(directive, directive.option("file")) if directive.option("file") else directive.body
        return table_tokens(csv_rows(text or "", directive), directive, self._faults)

    def _bibliography(self, directive: Directive, fence: Token, depth: int) -> Iterator[Token]:
        names = directive.argument.split() or bibliography_files(self._folder)
        texts = [self._read(directive, name) for name in names]
        if not names:
            text = "{bibliography} finds no .bib file in the lesson's folder; add it"
            self._faults.append(lesson_warning(directive.line, text))
        token = _token("bibliography", fence, directive)
        token.meta["works"] = [work for text in texts for work in parse_bibliography(text or "")]
        yield token

    # --- text ---

    def _body(self, text: str, line: int, depth: int) -> Iterator[Token]:
        """Parse a directive's body, which starts on ``line`` (from 1) of the source."""
        tokens: list[Token] = []
        self._parser.block.parse(text, self._parser, self._env, tokens)
        last = len(self._lines)
        for token in tokens:
            if token.map is not None:
                token.map = [min(token.map[0] + line - 1, last - 1), min(token.map[1] + line - 1, last)]
        yield from self.expand(tokens, depth + 1)


_EXPANSIONS: dict[DirectiveKind, Callable[[DirectiveExpander, Directive, Token, int], Iterator[Token]]] = {
    "admonition": DirectiveExpander._admonition,
    "titled": DirectiveExpander._titled,
    "figure": DirectiveExpander._figure,
    "video": DirectiveExpander._figure,
    "glue": DirectiveExpander._figure,
    "image": DirectiveExpander._picture,
    "math": DirectiveExpander._math,
    "table": DirectiveExpander._table,
    "list-table": DirectiveExpander._table,
    "csv-table": DirectiveExpander._table,
    "code": DirectiveExpander._code,
    "literal-include": DirectiveExpander._literal_include,
    "include": DirectiveExpander._include,
    "tabs": DirectiveExpander._box,
    "tab": DirectiveExpander._tab,
    "grid": DirectiveExpander._box,
    "card": DirectiveExpander._card,
    "quote": DirectiveExpander._quote,
    "plain": DirectiveExpander._plain,
    "rubric": DirectiveExpander._rubric,
    "glossary": DirectiveExpander._glossary,
    "bibliography": DirectiveExpander._bibliography,
}


def top_level_cells(tokens: Iterable[Token]) -> frozenset[str]:
    """The names of the cells between top-level blocks, before directives are expanded."""
    found = set()
    nesting = 0
    for token in tokens:
        nesting += token.nesting
        if token.type == "fence" and not nesting and token.map and token.info.strip().startswith("{code-cell}"):
            directive = parse_directive(token.info, token.content, token.map[0] + 1, token.map[1], token.markup)
            if directive is not None and directive.option("name"):
                found.add(directive.option("name"))
    return frozenset(found)


def _fence_errors(token: Token, directive: Directive | None, lines: list[str]) -> Iterator[LessonError]:
    first, end = token.map or [0, 0]
    mark = token.markup
    closing = lines[end - 1].strip().lstrip("> ") if first < end - 1 <= len(lines) - 1 else ""
    if len(closing) < len(mark) or set(closing) != {mark[0]}:
        hint = f"put {mark} at its end, and {mark}{mark[0]} around a block that contains {mark} itself"
        yield LessonError(first + 1, f"the {mark} opened here is never closed; {hint}")
    if directive is None and token.type == "colon_fence":
        name = token.info.strip()[:40]
        text = f"{mark}{name} is not a directive; write its name in braces, as in {mark}{{note}}"
        yield lesson_warning(first + 1, text)


def _unread_fences(token: Token) -> Iterator[LessonError]:
    """Lines of a paragraph that are no fences, because CommonMark allows no backtick after the three that open one."""
    if token.type != "inline" or token.map is None:
        return
    for number, line in enumerate(token.content.split("\n"), token.map[0] + 1):
        if match := _UNREAD_FENCE.match(line):
            mark, name = match.groups()
            hint = f"remove them, or open and close the block with {'~' * len(mark)} in place of {mark}"
            yield LessonError(number, f"backticks in its title keep {name} from being a block; {hint}")


def _caption(directive: Directive) -> Iterator[Token]:
    yield Token("caption_open", "", 1, meta={"directive": directive})
    at = [directive.line - 1, directive.line]
    yield Token("inline", "", 0, content=directive.argument, children=[], map=at, block=True)
    yield Token("caption_close", "", -1, meta={"directive": directive})


def _mark_choices(tokens: Iterable[Token]) -> Iterator[Token]:
    """Remove ``[x]`` and ``[ ]`` from the items of task lists, and store them in the items' ``meta["correct"]``."""
    item: Token | None = None
    for token in tokens:
        if token.type == "inline" and item is not None:
            mark = _CHOICE_MARK.match(token.content)
            if mark is not None:
                item.meta["correct"] = mark[1] != " "
                token.content = token.content[mark.end() :]
        if token.type != "paragraph_open":
            item = token if token.type == "list_item_open" else None
        yield token


def _token(kind: str, fence: Token, directive: Directive, *, nesting: Any = 0, content: str = "") -> Token:
    meta = {"directive": directive}
    return Token(kind, "", nesting, map=fence.map, content=content, meta=meta, block=True, level=fence.level)
