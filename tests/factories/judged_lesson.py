"""An exercise, a prediction and a quiz in the small course, for tests that judge and answer."""

from __future__ import annotations

from dataclasses import replace

from fastapi import FastAPI
from markupsafe import Markup

from app.lessons.dependencies import CATALOG
from app.lessons.model import Check, Choice, Exercise, Lesson, Prediction, Quiz

FACTOR, SHAPE = "The factor is right", "The shape is right"
SOLUTION = "def double(x):\n    return 2 * x  # the secret"
CHECKS_SOURCE = "# the secret checks"
DIAGNOSIS = "It was {verb}, not doubled."
EXERCISE = Exercise(
    needs=("alone",),
    seconds=30,
    xp=20,
    solution=SOLUTION,
    task=Markup("<p>Double it.</p>"),
    solution_prose=Markup("<p>Because two.</p>"),
    checks=(Check(FACTOR, FACTOR, 15, ("What is twice?", "Multiply.")), Check(SHAPE, SHAPE, 5, ())),
    checks_source=CHECKS_SOURCE,
    translations={},
)
KOREAN = {DIAGNOSIS: "{verb} 되었습니다."}
QUIZ = Quiz(
    name="which",
    question=Markup("Which?"),
    prose=Markup(""),
    choices=(
        Choice(Markup("One"), "One", True, Markup("<p>Feedback of one.</p>")),
        Choice(Markup("Two"), "Two", False, Markup("<p>Feedback of two.</p>")),
    ),
    line=1,
)
PREDICTION = Prediction(
    name="how-many",
    cell="hello",
    kind="number",
    question=Markup("How many?"),
    prose=Markup(""),
    unit="",
    answer=None,
    tolerance="",
    source="sees {number} of them",
    choices=(),
    line=1,
)


def with_exercise(lesson: Lesson) -> Lesson:
    """The lesson with its cell ``hello`` gated by a prediction, its cell ``exercise`` to be completed, and a quiz."""
    words = KOREAN if lesson.language == "ko" else {}
    made = replace(lesson.cells[0], name="double", title="Double it", exercise=replace(EXERCISE, translations=words))
    return replace(
        lesson,
        cells=(*lesson.cells, made),
        blocks=(PREDICTION, *lesson.blocks, made, QUIZ),
        digest=f"{lesson.digest} with an exercise",
    )


def add_exercise(app: FastAPI) -> None:
    """Put them into the only lesson of the small course whenever it is read."""
    catalog = CATALOG.get(app)

    def add() -> None:
        for view in (catalog, catalog.with_drafts):
            lessons = {
                key: {language: with_exercise(lesson) for language, lesson in by_language.items()}
                for key, by_language in view.snapshot.lessons.items()
            }
            view.snapshot = replace(view.snapshot, lessons=lessons, digest=f"{view.snapshot.digest} with an exercise")

    catalog.after_reload(add)
