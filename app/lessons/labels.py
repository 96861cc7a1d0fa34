"""What the text of a lesson can refer to by a name: headings, figures, equations, cells, terms, works, and others.

Names come from ``(name)=``, ``:name:``, ``:label:``, and ``$$…$$ (name)``. Figures, tables, listings, equations, and
exercises with a name are numbered in order.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from markdown_it.token import Token

from app.lessons.bibliography import CitedWork
from app.lessons.directives import Directive, LessonError, lesson_warning
from app.lessons.plain_text import plain_text, text_id

LabelKind = Literal["heading", "figure", "table", "listing", "equation", "exercise", "solution", "cell", "block"]
LABEL_NAME = re.compile(r"[^\s<>\"'`&\\]{1,100}")
"""What a name may be."""
_GLUED = re.compile(r"""(?:^|;)[^#;\n]*\bglue\(\s*(?:name\s*=\s*)?[rbu]?(["'])([^"'\\\n]{1,90})\1""", re.MULTILINE)
"""A call of MyST-NB's ``glue`` with the name of the value."""
_LATEX_LABEL = re.compile(r"\\label\{([^{}]{1,100})\}")
_RESERVED = ("cell-", "fn", "term-", "cite-")
"""Prefixes of IDs that the page makes itself."""
_WITH_ID = ("admonition_open", "box_open", "gate_open", "picture")
"""Tokens of directives that become an element with their ID."""
_NUMBERED: dict[str, LabelKind] = {
    "figure_open": "figure",
    "captioned_open": "table",
    "listing": "listing",
    "math_block": "equation",
}


@dataclass(frozen=True, slots=True)
class Label:
    """Something with a name. ``number`` is None if its kind is not numbered; ``title`` may be empty."""

    id: str
    kind: LabelKind
    number: int | None = None
    title: str = ""
    of: str = ""
    """Of a solution: the name of its exercise."""


@dataclass(slots=True)
class Labels:
    """Everything with a name in one lesson."""

    by_name: dict[str, Label] = field(default_factory=dict)
    terms: dict[str, str] = field(default_factory=dict)
    """The IDs of the terms of a glossary, by the term in lowercase."""
    works: dict[str, CitedWork] = field(default_factory=dict)
    """The works of the bibliography, by their keys."""
    cited: dict[str, None] = field(default_factory=dict)
    """The keys of the works that the lesson cites, in order."""

    cells: dict[str, int] = field(default_factory=dict)
    """The lines of the cells with these names."""

    @property
    def ids(self) -> Iterator[str]:
        """Every ID that the page has because of a label."""
        yield from (label.id for label in self.by_name.values() if label.kind != "cell")
        yield from self.terms.values()

    def place_cells(self, names: Mapping[int, str]) -> None:
        """Give the labels of cells their IDs; ``names`` are the cells' by the lines of their fences."""
        for label, line in self.cells.items():
            if line in names:
                self.by_name[label] = replace(self.by_name[label], id=f"cell-{names[line]}")


def collect_labels(tokens: Sequence[Token]) -> tuple[Labels, list[LessonError]]:
    """All labels but those of headings, which get theirs with their IDs. Tokens with a label get ``meta["id"]``."""
    found = _Collector()
    term_ids: set[str] = set()
    glossaries = 0
    for i, token in enumerate(tokens):
        directive: Directive | None = token.meta.get("directive") if token.meta else None
        if token.type == "myst_target":
            found.target(token, tokens, i)
        elif token.type in ("box_open", "box_close") and directive is not None and directive.name == "glossary":
            glossaries += token.nesting
            if directive.label and token.nesting > 0:
                found.named(directive.label, token, "block", "")
        elif token.type == "dt_open" and glossaries:
            term = plain_text(tokens[i + 1])
            name = f"term-{text_id(term)}"
            if term and term.casefold() not in found.labels.terms and name not in term_ids:
                found.labels.terms[term.casefold()] = name
                term_ids.add(name)
                token.attrSet("id", name)
        elif token.type == "bibliography":
            for work in token.meta["works"]:
                found.labels.works.setdefault(work.key, work)
        elif token.type == "math_block":
            name = equation_name(token)
            if name:
                found.named(name, token, "equation", "")
        elif token.type == "gate_open" and directive is not None:
            found.gate(token, directive)
        elif token.type == "cell" and directive is not None:
            found.cell(directive)
        elif directive is not None and directive.label and token.type in (*_NUMBERED, *_WITH_ID, "bibliography"):
            kind = "equation" if directive.name == "glue:math" else _NUMBERED.get(token.type, "block")
            title = directive.option("caption") or directive.argument if kind != "figure" else ""
            found.named(directive.label, token, kind, title)
    return found.labels, found.faults


def equation_name(token: Token) -> str:
    """The name of a formula, from its markup or from LaTeX's ``\\label``."""
    name = token.meta.get("name")
    written = _LATEX_LABEL.search(token.content)
    return name if isinstance(name, str) and name else written[1].strip() if written else ""


@dataclass(slots=True)
class _Collector:
    labels: Labels = field(default_factory=Labels)
    faults: list[LessonError] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)
    labeled: int = 0
    """The index of the token below the last targets: all of those that follow each other label it."""

    def named(self, name: str, token: Token, kind: LabelKind, title: str, of: str = "") -> None:
        line = token.map[0] + 1 if token.map else 1
        if "label" in token.meta and isinstance(token.meta["label"], Label):  # it has a name already
            self.labels.by_name.setdefault(name, token.meta["label"])
            return
        self.counts[kind] = number = self.counts.get(kind, 0) + 1
        numbered = kind not in ("block", "solution", "heading", "cell")
        label = self.add(name, line, kind, number if numbered else None, title, of)
        if label is not None:
            token.meta |= {"id": label.id, "number": label.number, "label": label}

    def add(
        self, name: str, line: int, kind: LabelKind, number: int | None = None, title: str = "", of: str = ""
    ) -> Label | None:
        if not LABEL_NAME.fullmatch(name):
            text = f"the target '{name[:40]}' cannot be a name; use letters, digits, and hyphens"
            self.faults.append(lesson_warning(line, text))
            return None
        if name in self.labels.by_name and self.labels.cells.pop(name, None) is None:
            text = f"the target '{name}' is defined twice; give this one another name"
            self.faults.append(lesson_warning(line, text))
            return None
        label = Label(safe_id(name), kind, number, title, of)
        self.labels.by_name[name] = label
        return label

    def gate(self, token: Token, directive: Directive) -> None:
        if directive.name.startswith("solution"):
            if directive.label:
                self.named(directive.label, token, "solution", "", directive.argument)
            return
        if "nonumber" in directive.options or directive.option("enumerated") == "false":
            if directive.label:
                self.named(directive.label, token, "block", directive.argument)
            return
        if directive.label:
            self.named(directive.label, token, "exercise", directive.argument)
        else:
            self.counts["exercise"] = token.meta["number"] = self.counts.get("exercise", 0) + 1

    def cell(self, directive: Directive) -> None:
        """MyST-NB also names the figure that a cell draws. ``Labels.place_cells`` adds the IDs."""
        name = directive.option("name")
        for alias in (name, directive.option("label"), figure_option(directive, "name")):
            if alias and alias not in self.labels.by_name and LABEL_NAME.fullmatch(alias):
                title = directive.option("caption") or figure_option(directive, "caption")
                self.labels.by_name[alias] = Label("", "cell", None, title)
                self.labels.cells[alias] = directive.line
        for _, value in _GLUED.findall(directive.body):
            self.labels.by_name.setdefault(glue_label(value), Label("", "cell", None, value))
            self.labels.cells.setdefault(glue_label(value), directive.line)

    def target(self, token: Token, tokens: Sequence[Token], i: int) -> None:
        name, line = token.content.strip(), token.map[0] + 1 if token.map else 1
        after = max(i + 1, self.labeled)
        while after < len(tokens) and tokens[after].type in ("myst_target", "myst_line_comment"):
            after += 1
        self.labeled = after
        if after >= len(tokens) or tokens[after].nesting < 0:
            text = f"the target '{name[:40]}' labels nothing; put it on the line above a heading"
            self.faults.append(lesson_warning(line, text))
            return
        labeled = tokens[after]
        directive: Directive | None = labeled.meta.get("directive") if labeled.meta else None
        kind = _NUMBERED.get(labeled.type, "block")
        if labeled.type == "heading_open":
            label = self.add(name, line, "heading", None, plain_text(tokens[after + 1]))
            named = labeled if tokens[i + 1] is labeled else token
        elif kind != "block" or (directive is not None and labeled.type in _WITH_ID):
            title = directive.option("caption") or directive.argument if directive and kind != "figure" else ""
            self.named(name, labeled, kind, title)
            return
        else:
            label = self.add(name, line, "block")
            named = token
        if label is not None:
            named.meta["id"] = label.id


def glue_label(name: str) -> str:
    """The label of the cell that computes a value with this name; no text can write it."""
    return f"glue {name}"


def figure_option(directive: Directive, key: str) -> str:
    """The caption or the name that MyST-NB gives to the figure of a cell."""
    entry = directive.options.get("mystnb")
    value = entry.value if entry else None
    figure = value.get("figure") if isinstance(value, dict) else None
    text = figure.get(key) if isinstance(figure, dict) else None
    return " ".join(text.split()) if isinstance(text, str) else ""


def safe_id(name: str) -> str:
    """The HTML ID of a name; some prefixes are used for cells, footnotes, terms, and works."""
    return f"s-{name}" if name.startswith(_RESERVED) else name
