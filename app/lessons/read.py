"""From the text of a lesson file to a Document: header, tokens, cells, and everything that is wrong with them.

Reading never raises for any text: each mistake becomes a Fault with its line, and all are found at once.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TypeVar

from app.lessons.choices import disagreements
from app.lessons.directives import MACHINE_KEYS, Directive, Fault
from app.lessons.expectations import Expectation, VacuousExpectation
from app.lessons.header import Header, Unfit, keras, kerases, read_header, topologies, topology
from app.lessons.links import Target
from app.lessons.model import Tag
from app.lessons.python_code import same_but_for_words, syntax_fault
from app.lessons.survey import Reference, Survey, survey
from app.lessons.syntax import Parsed, parse
from app.lessons.yaml_map import Value
from runners.protocol import MOST_CODE_BYTES

MOST_SOURCE_BYTES = 1_000_000
CELL_NAME = re.compile(r"[a-z][a-z0-9]*(?:-[a-z0-9]+)*")
_MOST_CELL_NAME = 40
MOST_EXPECTATIONS = 20
"""Texts that one cell's ``expect`` may hold."""
_PYTHONS = ("", "python", "python3", "ipython3")
_SAY_NOTHING = ("front_matter", "myst_line_comment", "myst_block_break", "myst_target")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class SourceCell:
    """A cell as its file has it; None where it says nothing. Lines count from 1."""

    name: str
    title: str | None
    code: str
    line: int
    """Where the code begins."""
    fence_line: int
    topology: str | None
    topologies: tuple[str, ...] | None
    keras: int | None
    kerases: tuple[int, ...] | None
    tags: frozenset[Tag] | None
    expect: tuple[str, ...] | None


@dataclass(frozen=True, slots=True)
class Document:
    """A lesson file that has been read. ``cells`` have their inherited parts filled in."""

    language: str
    source: str
    header: Header
    parsed: Parsed
    survey: Survey
    cells: tuple[SourceCell, ...]
    faults: tuple[Fault, ...]


class NotText(Exception):
    """The bytes are no lesson's text. Carries the Fault."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault.text)
        self.fault = fault


def decode(content: bytes) -> str:
    """Return the text of a file.

    Raises:
        NotText: it is not UTF-8, or longer than any lesson.
    """
    if len(content) > MOST_SOURCE_BYTES:
        raise NotText(Fault(1, f"the file has {len(content):,} bytes; split it into lessons of {MOST_SOURCE_BYTES:,}"))
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as e:
        line = content.count(b"\n", 0, e.start) + 1
        raise NotText(Fault(line, f"the byte 0x{content[e.start]:02x} is not UTF-8; save the file as UTF-8")) from e
    return text.replace("\r\n", "\n").replace("\r", "\n")


def read(source: str, language: str, english: Document | None = None) -> Document:
    """Read a lesson's text; ``english`` is the lesson it is a translation of."""
    parsed = parse(source)
    first = parsed.tokens[0] if parsed.tokens else None
    front = first.content if first is not None and first.type == "front_matter" else None
    header, faults = read_header(front, english.header if english else None)
    if english is not None:
        header = header.on_top_of(english.header)
    found = survey(parsed, header.title)
    needed = header.requires or () if english is None else ()
    found.references += [Reference(Target("lesson", slug), header.requires_line) for slug in needed]
    faults += parsed.faults + found.faults
    cells = []
    for token in parsed.tokens:
        if token.type == "cell":
            cell, wrong = _read_cell(token.meta["directive"])
            cells.append(cell)
            faults += wrong
    faults += _repeated(cells)
    if english is None:
        faults += [fault for cell in cells for fault in _code_faults(cell)]
    else:
        cells, wrong = _translated(cells, english.cells)
        faults += wrong
    if all(token.type in _SAY_NOTHING for token in parsed.tokens):
        faults.append(Fault(1, "the lesson is empty; write its text below the front matter"))
    in_order = sorted(dict.fromkeys(faults), key=lambda fault: (fault.line, fault.text))
    return Document(language, source, header, parsed, found, tuple(cells), tuple(in_order))


# --- cells -----------------------------------------------------------------------------------------------------


def _read_cell(directive: Directive) -> tuple[SourceCell, list[Fault]]:
    faults = []
    if directive.argument not in _PYTHONS:
        faults.append(Fault(directive.line, f"a cell cannot be in {directive.argument[:40]!r}; write python"))
    name = directive.option("name")
    if not name and not directive.faults:  # or else the name may be hidden in options that cannot be read
        faults.append(Fault(directive.line, "the cell has no name; add ':name: what-it-does' below its first line"))
    elif name and (not CELL_NAME.fullmatch(name) or len(name) > _MOST_CELL_NAME):
        rule = f"use at most {_MOST_CELL_NAME} small letters, digits and hyphens, a letter first"
        faults.append(Fault(directive.options["name"].line, f"the cell's name {name[:60]!r} is wrong; {rule}"))
    cell = SourceCell(
        name,
        " ".join(directive.option("caption").split()) or None,
        directive.body,
        directive.body_line,
        directive.line,
        _option(directive, "topology", topology, faults),
        _option(directive, "topologies", topologies, faults),
        _option(directive, "keras", keras, faults),
        _option(directive, "kerases", kerases, faults),
        _option(directive, "tags", _tags, faults),
        _option(directive, "expect", _expect, faults),
    )
    if cell.expect and Tag.skip_execution in (cell.tags or ()):
        reason = f"a cell tagged {Tag.skip_execution} prints nothing to compare 'expect' with; remove one of the two"
        faults.append(Fault(directive.options["expect"].line, reason))
    faults += disagreements(cell, directive.options)
    return cell, faults


def _option(directive: Directive, key: str, reader: Callable[[Value], T], faults: list[Fault]) -> T | None:
    entry = directive.options.get(key)
    if entry is None:
        return None
    try:
        return reader(entry.value)
    except Unfit as e:
        faults.append(Fault(entry.line, f"'{key}' {e}"))
        return None


def _tags(value: Value) -> frozenset[Tag]:
    if not isinstance(value, list):
        raise Unfit("has to be a list; write it as [hide-input, …]")
    unknown = [item for item in value if item not in tuple(Tag)]
    if unknown:
        raise Unfit(f"has an unknown tag {str(unknown[0])[:40]!r}; use {', '.join(Tag)}")
    return frozenset(Tag(str(item)) for item in value)


def _expect(value: Value) -> tuple[str, ...]:
    texts = value if isinstance(value, list) else [value]
    if not 1 <= len(texts) <= MOST_EXPECTATIONS:
        raise Unfit(f"has to be a text or a list of 1 to {MOST_EXPECTATIONS}")
    for text in texts:
        if not isinstance(text, str) or "\n" in text:
            raise Unfit("has to hold texts of one line each; write each in quotation marks")
        try:
            Expectation.parse(text)
        except VacuousExpectation:
            raise Unfit(
                f"has {text!r}, which any output contains; write words or numbers that the cell prints"
            ) from None
    return tuple(str(text) for text in texts)


def _repeated(cells: list[SourceCell]) -> Iterator[Fault]:
    seen: dict[str, int] = {}
    for cell in cells:
        if cell.name and cell.name in seen:
            yield Fault(
                cell.fence_line,
                f"a cell named '{cell.name}' is on line {seen[cell.name]} already; give this one another name",
            )
        seen.setdefault(cell.name, cell.fence_line)


def _code_faults(cell: SourceCell) -> Iterator[Fault]:
    size = len(cell.code.encode("utf-8", "surrogatepass"))
    if size > MOST_CODE_BYTES:
        yield Fault(
            cell.line, f"the code has {size:,} bytes; at most {MOST_CODE_BYTES:,} can be run, so split the cell"
        )
    if not cell.code.strip():
        yield Fault(cell.fence_line, f"the cell '{cell.name}' has no code; write some, or take the cell out")
    elif Tag.raises_exception not in (cell.tags or ()):
        fault = syntax_fault(cell.code)
        if fault is not None:
            line = cell.line + min(fault.line - 1, cell.code.count("\n"))
            yield Fault(
                line,
                f"the cell '{cell.name}' is not Python: {fault.reason}; correct it, or tag the cell raises-exception",
            )


def _translated(cells: list[SourceCell], english: tuple[SourceCell, ...]) -> tuple[list[SourceCell], list[Fault]]:
    """Fill in what the English cells say, and compare."""
    originals = {cell.name: cell for cell in english}
    complete, faults = [], []
    for cell in cells:
        original = originals.get(cell.name)
        if original is None:
            if cell.name:
                faults.append(
                    Fault(cell.fence_line, f"the English lesson has no cell '{cell.name}'; add it there or remove it")
                )
            complete.append(cell)
            continue
        faults += _differences(cell, original)
        complete.append(_completed(cell, original))
    names = {cell.name for cell in cells}
    for missing in (cell.name for cell in english if cell.name not in names):
        faults.append(Fault(1, f"the cell '{missing}' of the English lesson is missing; add it with an empty body"))
    order = [cell.name for cell in cells if cell.name in originals]
    if not faults and order != [cell.name for cell in english]:
        faults.append(Fault(1, "the cells stand in another order than in the English lesson; put them in its order"))
    return complete, faults


def _completed(cell: SourceCell, original: SourceCell) -> SourceCell:
    return replace(
        cell,
        title=cell.title or original.title,
        code=cell.code if cell.code.strip() else original.code,
        topology=original.topology,
        topologies=original.topologies,
        keras=original.keras,
        kerases=original.kerases,
        tags=original.tags,
        expect=original.expect,
    )


def _differences(cell: SourceCell, original: SourceCell) -> Iterator[Fault]:
    if cell.code.strip():
        yield from _code_faults(replace(cell, tags=original.tags))
        if not same_but_for_words(cell.code, original.code):
            yield Fault(
                cell.line,
                f"the code of '{cell.name}' differs from the English cell in more than comments and strings;"
                " leave the body empty to take the English code",
            )
    for key in (*MACHINE_KEYS, "tags", "expect"):
        mine = getattr(cell, key)
        if mine is not None and mine != getattr(original, key):
            yield Fault(cell.fence_line, f"'{key}' of '{cell.name}' differs from the English cell; leave it out here")
