"""Parses the text of a lesson file into a Document: front matter, tokens, cells, and all errors.

Parsing never raises, whatever the text: each error becomes a LessonError with its line, and all are found at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from markdown_it.token import Token

from app.lessons.analysis import LessonAnalysis, LessonReference, analyze
from app.lessons.cell_names import (
    CELL_NAME_PATTERN,
    MAX_CELL_NAME_LENGTH,
    derived_name,
    repaired_name,
)
from app.lessons.cell_tags import parse_tags
from app.lessons.defaults import with_defaults
from app.lessons.directive_specs import MACHINE_KEYS
from app.lessons.directives import Directive, LessonError, lesson_warning
from app.lessons.exercise_cells import (
    EXERCISE_KEYS,
    SourceTask,
    exercise_errors,
    gate_errors,
    is_exercise,
    marks_differ,
    parse_needs,
    parse_review,
    parse_seconds,
    parse_xp,
    prediction_errors,
    read_task,
    task_errors,
    task_translation_errors,
)
from app.lessons.expectations import Expectation, VacuousExpectation
from app.lessons.former_names import NamedItem, former_name_errors, parse_former_names
from app.lessons.front_matter import (
    FrontMatter,
    InvalidValue,
    parse_front_matter,
    parse_keras_version,
    parse_keras_versions,
    parse_topologies,
    parse_topology,
)
from app.lessons.labels import figure_option
from app.lessons.links import LinkTarget
from app.lessons.machine_options import machine_option_errors
from app.lessons.markdown import ParsedMarkdown, parse_markdown
from app.lessons.model import CellTag
from app.lessons.optional_sections import is_optional, mark_optional_sections, optional_levels
from app.lessons.python_source import find_syntax_issue, same_code
from app.lessons.questions import SourceQuestion, merge_questions, question_errors, read_question, repeated_names
from app.lessons.yaml_with_lines import YamlValue
from runners.wire.protocol import MAX_CODE_BYTES

MAX_SOURCE_BYTES = 1_000_000
MAX_EXPECTATIONS = 20
"""The maximum number of texts in a cell's ``expect``."""
_IGNORED_TOKENS = ("front_matter", "myst_line_comment", "myst_block_break", "myst_target", "dropped")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class SourceCell:
    """A cell as written in its file; values that it does not set are None. Lines count from 1."""

    name: str
    title: str | None
    code: str
    line: int
    """The first line of the code."""
    fence_line: int
    topology: str | None
    topologies: tuple[str, ...] | None
    keras: int | None
    kerases: tuple[int, ...] | None
    tags: frozenset[CellTag] | None
    expect: tuple[str, ...] | None
    needs: tuple[str, ...] | None
    seconds: int | None
    xp: int | None
    review: str | None
    was: tuple[str, ...] | None
    option_lines: Mapping[str, int]
    unnamed: bool = False
    """Whether its name comes from its code."""


@dataclass(frozen=True, slots=True)
class Document:
    """A parsed lesson file. ``cells`` and ``questions`` include what translations inherit."""

    language: str
    source: str
    header: FrontMatter
    parsed: ParsedMarkdown
    survey: LessonAnalysis
    cells: tuple[SourceCell, ...]
    questions: tuple[SourceQuestion, ...]
    tasks: tuple[SourceTask, ...]
    optional: frozenset[str]
    """The names of the cells and questions in optional sections, for a translation those of the original."""
    faults: tuple[LessonError, ...]

    @property
    def named_items(self) -> list[NamedItem]:
        """What learners' work is stored under: cells and questions."""
        return _named_items(self.cells, self.questions)


class LessonDecodeError(Exception):
    """The bytes are not the text of a lesson. Carries the LessonError."""

    def __init__(self, fault: LessonError) -> None:
        super().__init__(fault.text)
        self.fault = fault


def decode_source(content: bytes) -> str:
    """Decode the text of a file.

    Raises:
        LessonDecodeError: it is not UTF-8, or it is too long.
    """
    if len(content) > MAX_SOURCE_BYTES:
        raise LessonDecodeError(
            LessonError(
                1, f"the file has {len(content):,} bytes; split it into lessons of at most {MAX_SOURCE_BYTES:,}"
            )
        )
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as e:
        line = content.count(b"\n", 0, e.start) + 1
        raise LessonDecodeError(
            LessonError(line, f"the byte 0x{content[e.start]:02x} is not UTF-8; save the file as UTF-8")
        ) from e
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        raise LessonDecodeError(LessonError(line, "the line has a NUL character; remove it, or save the file as UTF-8"))
    return text


def parse_document(source: str, language: str, english: Document | None = None, folder: Path | None = None) -> Document:
    """Parse a lesson's text. For a translation, ``english`` is the original. ``folder`` has what the text includes."""
    parsed = parse_markdown(source, folder)
    first = parsed.tokens[0] if parsed.tokens else None
    front = first.content if first is not None and first.type == "front_matter" else None
    header, faults = parse_front_matter(front, english.header if english else None)
    front_is_unread = header == FrontMatter() and bool(faults)
    if front is None and source.startswith("---\n"):
        front_is_unread = True
        faults = [LessonError(1, "the front matter is not closed; write a line with --- below its last key")]
    if english is not None:
        header = header.on_top_of(english.header)
    faults += mark_optional_sections(parsed.tokens)  # before the title is taken out of the tokens
    found = analyze(parsed, header.title)
    titled = header.title or found.title
    needed = header.requires or () if english is None else ()
    found.references += [LessonReference(LinkTarget("lesson", slug), header.requires_line) for slug in needed]
    faults += parsed.faults + found.faults
    if not titled and not front_is_unread:
        text = "the lesson has no title; start its text with '# …', or add 'title: …' to the front matter"
        faults.append(lesson_warning(1, text))
    questions, tasks = _parse_tasks(parsed.tokens)
    questions = [
        replace(one, was=_parse_option(one.directive, "was", parse_former_names, faults) or ()) for one in questions
    ]
    cells, wrong = _parse_cells(parsed.tokens, {question.name for question in questions}, english)
    header = with_defaults(header, parsed.tokens, cells, found.title)
    faults += wrong
    optional = _optional_names(parsed.tokens, cells, questions)
    found.labels.place_cells({cell.fence_line: cell.name for cell in cells})
    faults += repeated_names(questions, [(cell.name, cell.fence_line) for cell in cells])
    faults += former_name_errors(_named_items(cells, questions))
    if english is None:
        faults += [fault for cell in cells for fault in _code_errors(cell)]
        faults += exercise_errors(cells)
    else:
        cells, wrong = _merge_translation(cells, english.cells)
        questions, wrong_questions = merge_questions(questions, english.questions)
        faults += [*wrong, *wrong_questions, *task_translation_errors(tasks, english.tasks)]
        wrong = list(_optional_translation_errors(optional, english.optional, _named_items(cells, questions)))
        if not wrong and optional_levels(parsed.tokens) != optional_levels(english.parsed.tokens):
            text = "the optional sections are not those of the English lesson; tag the same sections here"
            wrong = [lesson_warning(1, text)]
        faults += wrong
        optional = english.optional
    faults += [fault for question in questions for fault in question_errors(question)]
    shown_only = _names_of_nested_cells(parsed.tokens)  # which is an error of its own
    answered = [question for question in questions if question.cell not in shown_only]
    faults += [*task_errors(tasks, cells), *gate_errors(parsed.tokens, cells), *prediction_errors(answered, cells)]
    if all(token.type in _IGNORED_TOKENS for token in parsed.tokens):
        faults.append(LessonError(1, "the lesson is empty; write its text below the front matter"))
    in_order = sorted(dict.fromkeys(faults), key=lambda fault: (fault.line, fault.text))
    return Document(
        language,
        source,
        header,
        parsed,
        found,
        tuple(cells),
        tuple(questions),
        tuple(tasks),
        optional,
        tuple(in_order),
    )


def _named_items(cells: Iterable[SourceCell], questions: Iterable[SourceQuestion]) -> list[NamedItem]:
    items = [NamedItem(cell.name, cell.was or (), cell.fence_line) for cell in cells]
    return items + [NamedItem(one.name, one.was, one.line) for one in questions]


def task_tokens(tokens: Sequence[Token], start: int) -> Sequence[Token]:
    """The tokens of the task that opens at ``start``, up to the one that closes it. Tasks are never nested."""
    end = next(i for i in range(start, len(tokens)) if tokens[i].type == "task_close")
    return tokens[start : end + 1]


def _parse_tasks(tokens: Sequence[Token]) -> tuple[list[SourceQuestion], list[SourceTask]]:
    questions, tasks = [], []
    for i, token in enumerate(tokens):
        if token.type == "task_open":
            inside = task_tokens(tokens, i)
            if token.meta["directive"].name in ("quiz", "predict"):
                questions.append(read_question(inside))
            else:
                tasks.append(read_task(inside))
    return questions, tasks


def _optional_names(
    tokens: Sequence[Token], cells: Sequence[SourceCell], questions: Sequence[SourceQuestion]
) -> frozenset[str]:
    lines = {token.meta["directive"].line for token in tokens if "directive" in token.meta and is_optional(token)}
    return frozenset(
        [cell.name for cell in cells if cell.fence_line in lines] + [one.name for one in questions if one.line in lines]
    )


def _optional_translation_errors(
    mine: frozenset[str], theirs: frozenset[str], items: Iterable[NamedItem]
) -> Iterator[LessonError]:
    for item in items:
        if item.name in mine ^ theirs:
            where = "is" if item.name in theirs else "is not"
            text = f"'{item.name}' {where} in an optional section of the English lesson; tag the same sections here"
            yield LessonError(item.line, text)


def _names_of_nested_cells(tokens: Sequence[Token]) -> frozenset[str]:
    directives = [token.meta["directive"] for token in tokens if token.type == "listing"]
    return frozenset(each.option("name") for each in directives if each.name == "code-cell")


# --- cells -----------------------------------------------------------------------------------------------------


def _parse_cells(
    tokens: Sequence[Token], taken: set[str], english: Document | None
) -> tuple[list[SourceCell], list[LessonError]]:
    """The cells with their names; ``taken`` are those of questions.

    A cell of a translation that has no name takes that of the English cell in the same place.
    """
    cells: list[SourceCell] = []
    faults: list[LessonError] = []
    directives: list[Directive] = []
    for token in tokens:
        if token.type == "cell":
            directives.append(token.meta["directive"])
            cell, wrong = _parse_cell(token.meta["directive"])
            if token.meta["solution"] and (english is None or cell.tags is not None):
                cell = replace(cell, tags=(cell.tags or frozenset()) | {CellTag.hide_input})
            if english is None and not cell.code.strip() and not cell.name:
                hidden = {CellTag.remove_cell, CellTag.skip_execution}
                cell = replace(cell, tags=(cell.tags or frozenset()) | hidden)
            cells.append(cell)
            faults += wrong
    faults += _duplicate_names(cells)
    taken = taken | {cell.name for cell in cells if cell.name}
    nameless = [number for number, cell in enumerate(cells) if not cell.name]
    theirs = iter([cell.name for cell in english.cells if cell.unnamed and cell.name not in taken] if english else [])
    readable = [number for number in nameless if not directives[number].faults]
    numbers: dict[str, int] = {}
    for number in nameless:
        name = next(theirs, None) or derived_name(cells[number].code, taken, numbers)
        cells[number] = replace(cells[number], name=name, unnamed=True)
        taken.add(name)
    if readable and english is None:
        who = "a cell has no name" if len(readable) == 1 else f"{len(readable)} cells have no names"
        text = (
            f"{who}, so the first words of the code are used; add ':name: what-it-does' before learners comment on it"
        )
        faults.append(lesson_warning(cells[readable[0]].fence_line, text))
    return cells, faults


def _parse_cell(directive: Directive) -> tuple[SourceCell, list[LessonError]]:
    faults: list[LessonError] = []
    cell = SourceCell(
        _cell_name(directive, faults),
        " ".join(directive.option("caption").split()) or figure_option(directive, "caption") or None,
        directive.body,
        directive.body_line,
        directive.line,
        _parse_option(directive, "topology", parse_topology, faults),
        _parse_option(directive, "topologies", parse_topologies, faults),
        _parse_option(directive, "keras", parse_keras_version, faults),
        _parse_option(directive, "kerases", parse_keras_versions, faults),
        parse_tags(directive, faults),
        _parse_option(directive, "expect", _parse_expectations, faults),
        _parse_option(directive, "needs", parse_needs, faults),
        _parse_option(directive, "seconds", parse_seconds, faults),
        _parse_option(directive, "xp", parse_xp, faults),
        _parse_option(directive, "review", parse_review, faults),
        _parse_option(directive, "was", parse_former_names, faults),
        {key: entry.line for key, entry in directive.options.items()},
    )
    if cell.expect and CellTag.skip_execution in (cell.tags or ()):
        reason = (
            f"a cell tagged {CellTag.skip_execution} prints nothing to compare 'expect' with; remove one of the two"
        )
        faults.append(LessonError(directive.options["expect"].line, reason))
    if is_exercise(cell) and not cell.name and not directive.faults:
        faults.append(LessonError(directive.line, "the exercise has no name; add ':name: what-it-does' to its cell"))
    faults += machine_option_errors(cell, directive.options)
    return cell, faults


def _cell_name(directive: Directive, faults: list[LessonError]) -> str:
    """The name of a cell; empty if it has none. A name that is not valid is repaired."""
    name = directive.option("name")
    if not name or (CELL_NAME_PATTERN.fullmatch(name) and len(name) <= MAX_CELL_NAME_LENGTH):
        return name
    rule = f"use at most {MAX_CELL_NAME_LENGTH} lowercase letters, digits, and hyphens, starting with a letter"
    repaired = repaired_name(name)
    here = f"it is called '{repaired}' here" if repaired else "it is called by its code"
    text = f"the cell's name {name[:60]!r} is not valid, so {here}; {rule}"
    faults.append(lesson_warning(directive.options["name"].line, text))
    return repaired


def _parse_option(
    directive: Directive, key: str, reader: Callable[[YamlValue], T], faults: list[LessonError]
) -> T | None:
    entry = directive.options.get(key)
    if entry is None:
        return None
    try:
        return reader(entry.value)
    except InvalidValue as e:
        faults.append(LessonError(entry.line, f"'{key}' {e}"))
        return None


def _parse_expectations(value: YamlValue) -> tuple[str, ...]:
    texts = value if isinstance(value, list) else [value]
    if not 1 <= len(texts) <= MAX_EXPECTATIONS:
        raise InvalidValue(f"must be a string or a list of 1 to {MAX_EXPECTATIONS}")
    for text in texts:
        if not isinstance(text, str) or "\n" in text:
            raise InvalidValue("must contain strings of one line each; put each in quotation marks")
        try:
            Expectation.parse(text)
        except VacuousExpectation:
            raise InvalidValue(
                f"has {text!r}, which any output contains; write words or numbers that the cell prints"
            ) from None
    return tuple(str(text) for text in texts)


def _duplicate_names(cells: list[SourceCell]) -> Iterator[LessonError]:
    seen: dict[str, int] = {}
    for cell in cells:
        if cell.name and cell.name in seen:
            yield LessonError(
                cell.fence_line,
                f"a cell named '{cell.name}' is already on line {seen[cell.name]}; give this one another name",
            )
        seen.setdefault(cell.name, cell.fence_line)


def _code_errors(cell: SourceCell) -> Iterator[LessonError]:
    size = len(cell.code.encode("utf-8", "surrogatepass"))
    if size > MAX_CODE_BYTES:
        yield LessonError(
            cell.line, f"the code has {size:,} bytes, and the limit is {MAX_CODE_BYTES:,}; split the cell"
        )
    if not cell.code.strip() and cell.unnamed:
        yield lesson_warning(
            cell.fence_line, "the cell has no code, so it is not shown; write some, or remove the cell"
        )
    elif not cell.code.strip():
        yield LessonError(cell.fence_line, f"the cell '{cell.name}' has no code; write some, or remove the cell")
    elif (begun := _begun_block(cell.code)) is not None:
        text = f"the cell '{cell.name}' is not closed, and another block begins here; write ``` above it"
        yield LessonError(cell.line + begun, text)
    elif CellTag.raises_exception not in (cell.tags or ()):
        fault = find_syntax_issue(cell.code)
        if fault is not None:
            line = cell.line + min(fault.line - 1, cell.code.count("\n"))
            yield LessonError(
                line,
                f"the cell '{cell.name}' is not Python: {fault.reason}; correct it, or tag the cell raises-exception",
                blocks=not cell.unnamed,
            )


def _begun_block(code: str) -> int | None:
    """The first line of the code, from 0, that opens a directive: the fence above it is missing."""
    return next((i for i, row in enumerate(code.split("\n")) if row.startswith("```{")), None)


def _merge_translation(
    cells: list[SourceCell], english: tuple[SourceCell, ...]
) -> tuple[list[SourceCell], list[LessonError]]:
    """Fill in what cells inherit from the English cells, and compare them."""
    originals = {cell.name: cell for cell in english}
    complete, faults = [], []
    for cell in cells:
        original = originals.get(cell.name)
        if original is None:
            if cell.name:
                faults.append(
                    LessonError(
                        cell.fence_line, f"the English lesson has no cell '{cell.name}'; add it there or remove it"
                    )
                )
            complete.append(cell)
            continue
        faults += _translation_errors(cell, original)
        complete.append(_inherit_fields(cell, original))
    names = {cell.name for cell in cells}
    for missing in (cell.name for cell in english if cell.name not in names):
        faults.append(
            LessonError(1, f"the cell '{missing}' of the English lesson is missing; add it with an empty body")
        )
    order = [cell.name for cell in cells if cell.name in originals]
    if not faults and order != [cell.name for cell in english]:
        faults.append(LessonError(1, "the cells are in a different order than in the English lesson; use its order"))
    return complete, faults


def _inherit_fields(cell: SourceCell, original: SourceCell) -> SourceCell:
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
        needs=original.needs,
        seconds=original.seconds,
        xp=original.xp,
        review=original.review,
        was=original.was,
    )


def _translation_errors(cell: SourceCell, original: SourceCell) -> Iterator[LessonError]:
    if cell.code.strip():
        yield from _code_errors(replace(cell, tags=original.tags))
        if is_exercise(original) and marks_differ(cell.code, original.code):
            yield LessonError(
                cell.line,
                f"the exercise '{cell.name}' has other marks or code than the English one, beyond comments and strings;"
                " leave the body empty to use the English code",
            )
        elif not same_code(cell.code, original.code):
            yield LessonError(
                cell.line,
                f"the code of '{cell.name}' differs from the English cell in more than comments and strings;"
                " leave the body empty to use the English code",
            )
    for key in (*MACHINE_KEYS, *EXERCISE_KEYS, "tags", "expect", "was"):
        mine = getattr(cell, key)
        if mine is not None and mine != getattr(original, key):
            yield LessonError(
                cell.fence_line, f"'{key}' of '{cell.name}' differs from the English cell; leave it out here"
            )
