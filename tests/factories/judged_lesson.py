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


def with_exercise(lesson: Lesson, copies: int = 1, *, reviewed: bool = False) -> Lesson:
    """The lesson with a prediction for its cell ``hello``, an exercise ``double``, and a quiz.

    ``hello`` also runs on two GPUs. Copies of the three are called ``double-2``, ``double-3``, …
    """
    words = KOREAN if lesson.language == "ko" else {}
    hello, *others = lesson.cells
    exercise = replace(EXERCISE, translations=words, is_reviewed=reviewed)
    made = replace(hello, name="double", title="Double it", exercise=exercise)
    suffixes = ["", *(f"-{number}" for number in range(2, copies + 1))]
    exercises = [replace(made, name=f"double{suffix}") for suffix in suffixes]
    predictions = [replace(PREDICTION, name=f"how-many{suffix}") for suffix in suffixes]
    quizzes = [replace(QUIZ, name=f"which{suffix}") for suffix in suffixes]
    return replace(
        lesson,
        cells=(replace(hello, topologies=("gpu:4", "gpu:2")), *others, *exercises),
        blocks=(*predictions, *lesson.blocks, *exercises, *quizzes),
        digest=f"{lesson.digest} with an exercise",
    )


def add_exercise(app: FastAPI, copies: int = 1, *, reviewed: bool = False) -> None:
    """Put them into the only lesson of the small course whenever it is read."""
    catalog = CATALOG.get(app)

    def add() -> None:
        for view in (catalog, catalog.with_drafts):
            lessons = {
                key: {
                    language: with_exercise(lesson, copies, reviewed=reviewed)
                    for language, lesson in by_language.items()
                }
                for key, by_language in view.snapshot.lessons.items()
            }
            view.snapshot = replace(view.snapshot, lessons=lessons, digest=f"{view.snapshot.digest} with an exercise")

    catalog.after_reload(add)
