"""Quizzes and predictions as written in a lesson's file: a question, choices, and the answer.

A quiz ends with a task list. A prediction has its answer in its options, or ends with a task list (for a choice) or a
numbered list (for an order).
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from markdown_it.token import Token

from app.lessons.directives import Directive, LessonError

NUMBER_PLACEHOLDER = "{number}"
MAX_CHOICES = 12
QUESTION_NAME = re.compile(r"[a-z][a-z0-9]*(?:-[a-z0-9]+)*")
_MAX_NAME_LENGTH = 40
_NAME_RULE = f"use at most {_MAX_NAME_LENGTH} lowercase letters, digits, and hyphens, starting with a letter"
_TOLERANCE = re.compile(r"(?:\d+(?:\.\d+)?|\.\d+)(?:[eE][-+]?\d+)?%?")
_MARK_WITHIN = re.compile(r"- ?\[[ xX]\] ")
_EXAMPLES = {
    "quiz": "end it with a list of '- [x] right' and '- [ ] wrong'",
    "predict": "add ':answer: 16', ':from: \"each sees {number}\"', a list of '- [ ] choice', or a numbered list",
}


@dataclass(frozen=True, slots=True)
class SourceChoice:
    """An item of the list. ``correct`` is None if it has no mark."""

    title: Token
    feedback: tuple[Token, ...]
    correct: bool | None
    line: int

    @property
    def text(self) -> str:
        """The choice without markup."""
        return " ".join("".join(_plain(self.title)).split())


@dataclass(frozen=True, slots=True)
class SourceQuestion:
    """A ``{quiz}`` or ``{predict}`` in a file. Missing options are empty."""

    directive: Directive
    name: str
    kind: Literal["quiz", "number", "choice", "order"]
    title: Token
    prose: tuple[Token, ...]
    choices: tuple[SourceChoice, ...]
    cell: str
    answer: str
    source: str
    tolerance: str
    unit: str
    was: tuple[str, ...] = ()

    @property
    def line(self) -> int:
        return self.directive.line

    def option_line(self, key: str) -> int:
        """The line of an option, or of the directive."""
        entry = self.directive.options.get(key)
        return entry.line if entry else self.directive.line


def read_question(tokens: Sequence[Token]) -> SourceQuestion:
    """Convert the tokens from ``task_open`` to ``task_close`` to a question."""
    directive: Directive = tokens[0].meta["directive"]
    body = list(tokens[4:-1]) if directive.argument else list(tokens[1:-1])
    title = tokens[2] if directive.argument else Token("inline", "", 0, children=[])
    at = _last_list(body)
    choices = tuple(_choices(body[at:])) if at is not None else ()
    marked = any(choice.correct is not None for choice in choices)
    ordered = at is not None and body[at].type == "ordered_list_open"
    kind: Literal["quiz", "number", "choice", "order"]
    if directive.name == "quiz":
        kind = "quiz"
    elif marked:
        kind = "choice"
    elif ordered:
        kind = "order"
    else:
        kind, choices, at = "number", (), None
    return SourceQuestion(
        directive,
        directive.option("name"),
        kind,
        title,
        tuple(body if at is None else body[:at]),
        choices,
        directive.option("cell"),
        directive.option("answer"),
        directive.option("from"),
        directive.option("tolerance"),
        directive.option("unit"),
    )


def _last_list(body: Sequence[Token]) -> int | None:
    """The index at which the list at the end of the body starts."""
    if not body or body[-1].type not in ("bullet_list_close", "ordered_list_close"):
        return None
    depth = 0
    for i in range(len(body) - 1, -1, -1):
        depth -= body[i].nesting
        if depth == 0:
            return i
    return None


def _choices(tokens: Sequence[Token]) -> Iterator[SourceChoice]:
    depth, start = 0, 0
    for i, token in enumerate(tokens):
        depth += token.nesting
        if token.type == "list_item_open" and depth == 2:
            start = i
        elif token.type == "list_item_close" and depth == 1:
            item = tokens[start : i + 1]
            begins_with_text = len(item) > 3 and item[1].type == "paragraph_open"
            title = item[2] if begins_with_text else Token("inline", "", 0, children=[])
            rest = item[4:-1] if begins_with_text else item[1:-1]
            line = item[0].map[0] + 1 if item[0].map else 1
            yield SourceChoice(title, tuple(rest), item[0].meta.get("correct"), line)


def _plain(inline: Token) -> Iterator[str]:
    for child in inline.children or ():
        yield " " if child.type in ("softbreak", "hardbreak") else child.content


# --- errors ----------------------------------------------------------------------------------------------------


def question_errors(question: SourceQuestion) -> Iterator[LessonError]:
    """Yield errors in a single question."""
    what = f"the {question.directive.name} '{question.name}'"
    if not question.name:
        if not question.directive.faults:
            text = f"this {{{question.directive.name}}} has no name; add ':name: what-it-asks' below its first line"
            yield LessonError(question.line, text)
    elif not QUESTION_NAME.fullmatch(question.name) or len(question.name) > _MAX_NAME_LENGTH:
        yield LessonError(question.option_line("name"), f"the name {question.name[:60]!r} is not valid; {_NAME_RULE}")
    yield from _choice_errors(question, what)
    if question.kind != "quiz":
        yield from _answer_errors(question, what)


def _choice_errors(question: SourceQuestion, what: str) -> Iterator[LessonError]:
    choices = question.choices
    if question.kind == "quiz" and not any(choice.correct is not None for choice in choices):
        yield LessonError(question.line, f"{what} has no choices; {_EXAMPLES['quiz']}")
        return
    if question.kind != "number" and not 2 <= len(choices) <= MAX_CHOICES:
        yield LessonError(question.line, f"{what} has {len(choices)} choices; write 2 to {MAX_CHOICES}")
    seen: dict[str, int] = {}
    for choice in choices:
        first = seen.setdefault(choice.text, choice.line)
        if not choice.text:
            yield LessonError(choice.line, f"a choice of {what} has no text; write it behind its mark")
        elif first != choice.line:
            yield LessonError(choice.line, f"{what} has the choice of line {first} twice; remove one")
        if _MARK_WITHIN.search(choice.text):
            yield LessonError(choice.line, f"a choice of {what} has a mark in its text; begin a line with each mark")
        if question.kind == "order" and choice.feedback:
            yield LessonError(choice.line, f"a step of {what} has feedback, which nobody sees; write one line")
        if question.kind in ("quiz", "choice") and choice.correct is None:
            yield LessonError(choice.line, f"this choice of {what} has no mark; write '- [x]' or '- [ ]' before it")
    right = sum(choice.correct is True for choice in choices)
    if question.kind in ("quiz", "choice") and not right:
        yield LessonError(question.line, f"{what} has no right choice; mark it with '- [x]'")
    if question.kind == "choice" and right > 1:
        yield LessonError(question.line, f"{what} has {right} right choices; mark one with '- [x]'")


def _answer_errors(question: SourceQuestion, what: str) -> Iterator[LessonError]:
    if not question.cell and not question.directive.faults:
        yield LessonError(question.line, f"{what} names no cell; add ':cell: name' with the cell that answers it")
    if question.kind == "number":
        yield from _number_errors(question, what)
    else:
        for key in ("answer", "tolerance", "unit", *(("from",) if question.kind == "order" else ())):
            if key in question.directive.options:
                text = f"'{key}' is for a number, but {what} ends with a list; remove one of the two"
                yield LessonError(question.option_line(key), text)
        if NUMBER_PLACEHOLDER in question.source:
            text = f"{what} is a choice, so 'from' cannot have {NUMBER_PLACEHOLDER}; write text that the run prints"
            yield LessonError(question.option_line("from"), text)


def _number_errors(question: SourceQuestion, what: str) -> Iterator[LessonError]:
    options = question.directive.options
    if not question.answer and not question.source:
        yield LessonError(question.line, f"{what} has no answer; {_EXAMPLES['predict']}")
    elif question.answer and question.source:
        yield LessonError(question.option_line("from"), f"{what} has both 'answer' and 'from'; keep one")
    elif question.answer and parse_number(question.answer) is None:
        yield LessonError(question.option_line("answer"), f"'answer' must be a number, not {question.answer[:40]!r}")
    elif question.source and question.source.count(NUMBER_PLACEHOLDER) != 1:
        text = f"'from' must have {NUMBER_PLACEHOLDER} once, in the place of the number that the run prints"
        yield LessonError(question.option_line("from"), text)
    if "tolerance" in options and not _TOLERANCE.fullmatch(question.tolerance):
        yield LessonError(question.option_line("tolerance"), "'tolerance' must be a number or a percentage, as in 5%")


def parse_number(text: str) -> float | None:
    """A finite number, or None."""
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def repeated_names(questions: Sequence[SourceQuestion], cells: Sequence[tuple[str, int]]) -> Iterator[LessonError]:
    """Yield errors for questions whose name is already used by a question or cell, given as (name, line)."""
    seen = dict(cells)
    for question in questions:
        if question.name and question.name in seen:
            text = f"the name '{question.name}' is already used on line {seen[question.name]}; choose another one"
            yield LessonError(question.option_line("name"), text)
        seen.setdefault(question.name, question.line)


# --- translations ----------------------------------------------------------------------------------------------


def merge_questions(
    questions: Sequence[SourceQuestion], english: Sequence[SourceQuestion]
) -> tuple[list[SourceQuestion], list[LessonError]]:
    """Fill in what questions inherit from the English ones, and compare them."""
    originals = {question.name: question for question in english}
    complete: list[SourceQuestion] = []
    faults: list[LessonError] = []
    for question in questions:
        original = originals.get(question.name)
        if original is not None and original.directive.name == question.directive.name:
            faults += _translation_errors(question, original)
            complete.append(_inherit_answer(question, original))
        elif question.name:
            text = f"the English lesson has no {{{question.directive.name}}} '{question.name}'"
            faults.append(LessonError(question.line, f"{text}; add it there or remove it"))
    names = [question.name for question in questions]
    for missing in (question for question in english if question.name not in names):
        text = f"the {{{missing.directive.name}}} '{missing.name}' of the English lesson is missing; translate it"
        faults.append(LessonError(1, text))
    if not faults and names != [question.name for question in english]:
        faults.append(LessonError(1, "the questions are in a different order than in the English lesson"))
    return complete, faults


def _inherit_answer(question: SourceQuestion, original: SourceQuestion) -> SourceQuestion:
    return replace(
        question,
        cell=original.cell,
        answer=original.answer,
        source=question.source or original.source,
        tolerance=original.tolerance,
        unit=question.unit or original.unit,
        was=original.was,
    )


def _translation_errors(question: SourceQuestion, original: SourceQuestion) -> Iterator[LessonError]:
    what = f"the {question.directive.name} '{question.name}'"
    for key in ("cell", "answer", "tolerance"):
        if key in question.directive.options and question.directive.option(key) != original.directive.option(key):
            text = f"'{key}' of {what} differs from the English lesson; leave it out here"
            yield LessonError(question.option_line(key), text)
    if len(question.choices) != len(original.choices) or (original.kind == "order") != (question.kind == "order"):
        yield LessonError(question.line, f"{what} has other choices than in English; translate each, in its order")
        return
    for mine, theirs in zip(question.choices, original.choices, strict=True):
        if mine.correct != theirs.correct:
            mark = {True: "[x]", False: "[ ]", None: "no mark"}[theirs.correct]
            yield LessonError(mine.line, f"this choice of {what} has {mark} in the English lesson; mark it alike")
