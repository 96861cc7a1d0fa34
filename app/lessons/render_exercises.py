"""Renders exercises, quizzes, and predictions."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from markdown_it.token import Token
from markupsafe import Markup, escape

from app.i18n import N_, gettext
from app.lessons.document import Document, SourceCell
from app.lessons.exercise_cells import DEFAULT_SECONDS, DEFAULT_XP, SourceTask
from app.lessons.exercise_files import ExerciseFiles
from app.lessons.model import Check, Choice, Exercise, Prediction, Quiz
from app.lessons.questions import SourceQuestion, parse_number
from app.lessons.solution_marks import MarkedCode

TASK_TITLES = {"exercise": N_("Exercise"), "solution": N_("Solution"), "quiz": N_("Question"), "predict": N_("Predict")}
"""By the name of the directive."""
RenderTokens = Callable[[Sequence[Token]], Markup]
"""Renders tokens of the lesson as HTML."""


def render_question(question: SourceQuestion, render: RenderTokens) -> Quiz | Prediction:
    """Render a quiz or prediction."""
    title, prose = render([question.title]), render(question.prose)
    choices = tuple(
        Choice(render([choice.title]), choice.text, bool(choice.correct), render(choice.feedback))
        for choice in question.choices
    )
    if question.kind == "quiz":
        return Quiz(question.name, title, prose, choices, question.line, question.was)
    return Prediction(
        name=question.name,
        cell=question.cell,
        kind=question.kind,
        question=title,
        prose=prose,
        unit=question.unit,
        answer=parse_number(question.answer) if question.kind == "number" and question.answer else None,
        tolerance=question.tolerance,
        source=question.source or None,
        choices=choices,
        line=question.line,
        was=question.was,
    )


def render_exercise(
    cell: SourceCell, marked: MarkedCode, document: Document, files: ExerciseFiles, render: RenderTokens
) -> Exercise:
    """Render the exercise of a cell whose code was split into ``marked``."""
    tasks = {task.directive.name: task for task in document.tasks if task.label == cell.name}
    words = files.translations.get(document.language, {})
    return Exercise(
        needs=cell.needs or (),
        seconds=cell.seconds or DEFAULT_SECONDS,
        xp=DEFAULT_XP if cell.xp is None else cell.xp,
        solution=marked.solution,
        task=_render_task(tasks.get("exercise"), render),
        solution_prose=_render_task(tasks.get("solution"), render),
        checks=tuple(
            Check(
                check.name,
                words.get(check.name, check.name),
                check.xp,
                tuple(words.get(hint, hint) for hint in check.hints),
            )
            for check in files.checks.of(cell.name)
        ),
        checks_source=files.checks.source,
        translations=words,
        sentences=tuple(files.checks.sentences),
        wrong_answers=files.wrong_answers.get(cell.name, ()),
        is_reviewed=cell.review is not None,
    )


def _render_task(task: SourceTask | None, render: RenderTokens) -> Markup:
    if task is None:
        return Markup("")
    prose = render(task.prose)
    if task.title is None:
        return prose
    parts = {"name": gettext(TASK_TITLES[task.directive.name]), "text": render([task.title])}
    title = escape(gettext("%(name)s: %(text)s")) % parts
    return Markup('<p class="admonition-title">{}</p>\n{}').format(title, prose)
