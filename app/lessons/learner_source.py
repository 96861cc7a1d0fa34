"""A lesson's source as learners may read it: without solutions and answers.

Everything that learners get of a lesson's source, including notebooks, is made from this version.
"""

from __future__ import annotations

import re

from app.lessons.directives import Directive
from app.lessons.document import Document
from app.lessons.exercise_cells import is_exercise
from app.lessons.model import shuffled_keys
from app.lessons.questions import SourceQuestion
from app.lessons.solution_marks import split_marked_code

_PUBLIC_OPTIONS = ("name", "cell", "unit")
"""Options of questions that do not reveal the answer."""


def learner_source(document: Document) -> str:
    """The source of a document that has no blocking errors, without solutions, answers, and feedback."""
    lines = document.source.split("\n")
    exercises = {cell.fence_line for cell in document.cells if is_exercise(cell)}
    questions = {question.line: question for question in document.questions}
    written: list[str] = []
    at = 0
    for token in document.parsed.tokens:
        if token.map is None or token.type not in ("cell", "task_open"):
            continue
        directive: Directive = token.meta["directive"]
        start, end = token.map
        if directive.line in exercises:
            replacement = _starter_lines(directive, lines[start:end], start)
        elif directive.line in questions:
            replacement = _question_lines(questions[directive.line], lines)
        elif directive.name == "solution":
            replacement = []
            end += end < len(lines) and not lines[end].strip()
        else:
            continue
        written += lines[at:start] + replacement
        at = end
    return "\n".join(written + lines[at:])


def _starter_lines(directive: Directive, lines: list[str], start: int) -> list[str]:
    """An exercise's cell with its starter, and without the expected output of its solution."""
    body = directive.body_line - 1 - start
    head = lines[:body]
    if "expect" in directive.options:
        first = directive.options["expect"].line - 1 - start
        later = [entry.line - 1 - start for entry in directive.options.values() if entry.line - 1 - start > first]
        last = (
            min(later)
            if later
            else next((i for i in range(first + 1, body) if not head[i].strip() or head[i].startswith("---")), body)
        )
        del head[first:last]
    starter = split_marked_code("\n".join(lines[body:-1]), 1)[0].starter
    return [*head, *starter.split("\n"), lines[-1]] if lines[body:-1] else [*head, lines[-1]]


def _question_lines(question: SourceQuestion, lines: list[str]) -> list[str]:
    directive = question.directive
    options = [f":{key}: {_quoted(directive.option(key))}" for key in _PUBLIC_OPTIONS if key in directive.options]
    body_end = question.choices[0].line - 1 if question.choices else directive.end_line - 1
    prose = "\n".join(lines[directive.body_line - 1 : body_end]).strip("\n")
    parts = [prose] if prose else []
    if question.choices:
        parts.append("\n".join(_choice_lines(question)))
    body = "\n\n".join(parts)
    opening = f"{directive.markup}{{{directive.name}}} {directive.argument}".rstrip()
    return [opening, *options, *(["", *body.split("\n")] if body else []), directive.markup]


def _choice_lines(question: SourceQuestion) -> list[str]:
    texts = [choice.title.content.replace("\n", "\n  ") for choice in question.choices]
    if question.kind != "order":
        return [f"- [ ] {text}" for text in texts]
    shuffled = shuffled_keys(question.name, [choice.text for choice in question.choices])
    return [f"- {texts[number]}" for _, number in shuffled]


def _quoted(value: str) -> str:
    """The value as a YAML scalar."""
    return value if re.fullmatch(r"[\w-]+", value) else "'" + value.replace("'", "''") + "'"
