"""Predictions: guesses before a run, which are compared with its result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup, escape
from sqlalchemy import func, select
from sqlalchemy.ext.asyncio import AsyncSession

from app.db import dialect_insert, now
from app.exercises.errors import PredictionNotFound
from app.exercises.guesses import read_guess
from app.exercises.models import PredictionAnswer
from app.exercises.quizzes import ANSWERS_PER_LEARNER
from app.lessons.model import Lesson, Prediction
from app.progress.events import PREDICTION_XP, LearningEvent
from app.progress.service import ProgressService
from app.rate_limit import count_attempt
from app.runs.models import Run

MAX_LISTED_GUESSES = 8
"""The number of other learners' guesses that are shown, most frequent first."""


@dataclass(frozen=True, slots=True)
class GuessCount:
    """A guess, and the number of other learners who made it."""

    guess: str
    count: int


@dataclass(frozen=True, slots=True)
class OtherGuess:
    """A guess of other learners, as shown."""

    label: Markup
    count: int
    mine: bool


@dataclass(frozen=True, slots=True)
class PredictionView:
    """A prediction, and the learner's answer to it."""

    prediction: Prediction
    state: str
    """``open``, ``waiting`` for a run, or ``done``."""
    guess: Markup | None = None
    """None if it was skipped."""
    result: Markup | None = None
    right: bool | None = None
    feedback: tuple[Markup, ...] = ()
    others: tuple[OtherGuess, ...] = ()
    others_total: int = 0


def find_prediction(lesson: Lesson, name: str) -> Prediction:
    """The prediction with this name. Raises PredictionNotFound."""
    prediction = next((one for one in lesson.predictions if one.name == name), None)
    if prediction is None:
        raise PredictionNotFound(prediction=name[:100])
    return prediction


async def answer_prediction(
    session: AsyncSession,
    progress: ProgressService,
    learner: str,
    lesson: Lesson,
    prediction: Prediction,
    fields: Mapping[str, str],
    *,
    skip: bool,
) -> None:
    """Record a guess, or that it was skipped. Only the first answer counts. The caller commits.

    Raises:
        InvalidGuess, ChoiceMissing, OrderIncomplete: the form has no valid guess.
        TooManyAttempts: this learner has sent too many answers lately.
    """
    guess = None if skip else read_guess(prediction, fields)
    await count_attempt(session, f"answer learner {learner}", ANSWERS_PER_LEARNER)
    row = dialect_insert(session, PredictionAnswer).values(
        learner_id=learner,
        lesson=lesson.key,
        prediction=prediction.name,
        guess=guess,
        informed=await _has_run(session, learner, lesson.key, prediction.cell),
        answered_at=now(),
    )
    stored = await session.execute(row.on_conflict_do_nothing().returning(PredictionAnswer.prediction))
    if stored.scalar_one_or_none() is not None and progress.counts(lesson.key):
        fact = LearningEvent("prediction", f"{lesson.key}#{prediction.name}", 0 if skip else PREDICTION_XP)
        await progress.task_done(session, learner, lesson.key, f"prediction-{prediction.name}", [fact])


async def find_guesses(session: AsyncSession, learner: str | None, lesson: str) -> dict[str, PredictionAnswer]:
    """A learner's guesses in a lesson, by the prediction's name."""
    if learner is None:
        return {}
    mine = select(PredictionAnswer).where(PredictionAnswer.learner_id == learner, PredictionAnswer.lesson == lesson)
    return {row.prediction: row for row in await session.scalars(mine)}


async def count_guesses(
    session: AsyncSession, learner: str, lesson: str, prediction: str
) -> tuple[Sequence[GuessCount], int]:
    """The most frequent guesses of other learners, and how many of them have guessed."""
    others = (
        PredictionAnswer.lesson == lesson,
        PredictionAnswer.prediction == prediction,
        PredictionAnswer.informed.is_(False),
        PredictionAnswer.guess.is_not(None),
        PredictionAnswer.learner_id != learner,
    )
    times = func.count()
    grouped = select(PredictionAnswer.guess, times).where(*others).group_by(PredictionAnswer.guess)
    counts = await session.execute(grouped.order_by(times.desc(), PredictionAnswer.guess).limit(MAX_LISTED_GUESSES))
    total = await session.scalar(select(func.count()).where(*others))
    return [GuessCount(str(guess), count) for guess, count in counts], int(total or 0)


async def load_prediction(
    session: AsyncSession, learner: str | None, lesson: Lesson, prediction: Prediction, answer: PredictionAnswer | None
) -> PredictionView:
    """A prediction as a learner sees it. Other learners' guesses are shown once there is a result."""
    if answer is None or learner is None:
        return PredictionView(prediction, "open")
    guess = None if answer.guess is None else label_of(prediction, answer.guess)
    if answer.result is None:
        return PredictionView(prediction, "waiting", guess)
    counts, total = await count_guesses(session, learner, lesson.key, prediction.name)
    others = tuple(OtherGuess(label_of(prediction, one.guess), one.count, one.guess == answer.guess) for one in counts)
    return PredictionView(
        prediction,
        "done",
        guess,
        label_of(prediction, answer.result),
        answer.right,
        tuple(feedback_of(prediction, answer.guess, answer.result)),
        others,
        total,
    )


def label_of(prediction: Prediction, value: str) -> Markup:
    """A guess or result as shown; as stored if the prediction has changed since. Pure."""
    if prediction.kind == "number":
        return escape(f"{value} {prediction.unit or ''}".strip())
    numbers = value.split(",")
    if not all(number.isascii() and number.isdigit() and int(number) < len(prediction.choices) for number in numbers):
        return escape(value)
    return Markup(" → ").join(prediction.choices[int(number)].html for number in numbers)


def feedback_of(prediction: Prediction, guess: str | None, result: str) -> list[Markup]:
    """The author's feedback on the guessed choice and on the correct one. Pure."""
    if prediction.kind != "choice":
        return []
    shown = [number for number in dict.fromkeys((guess, result)) if number is not None and number.isdigit()]
    found = [prediction.choices[int(number)].feedback for number in shown if int(number) < len(prediction.choices)]
    return [feedback for feedback in found if feedback]


async def _has_run(session: AsyncSession, learner: str, lesson: str, cell: str) -> bool:
    began = (Run.learner_id == learner, Run.lesson == lesson, Run.cell == cell, Run.started_at.is_not(None))
    query = select(Run.id).where(*began, Run.judgement.is_(False)).limit(1)
    return (await session.scalar(query)) is not None
