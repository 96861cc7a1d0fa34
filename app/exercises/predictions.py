"""Predictions: guesses before a run, which are compared with its result."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from markupsafe import Markup, escape
from sqlalchemy import func, select
from sqlalchemy.ext.asyncio import AsyncSession

from app.db import dialect_insert, now
from app.exercises.errors import PredictionNotFound
from app.exercises.guesses import read_guess
from app.exercises.models import PredictionAnswer
from app.exercises.quizzes import ANSWERS_PER_LEARNER, count_visitor_answer
from app.i18n import gettext
from app.lessons.expectations import meets_any
from app.lessons.machine_labels import topology_label
from app.lessons.model import Cell, CellTag, Lesson, Prediction
from app.progress.events import PREDICTION_XP, LearningEvent
from app.progress.ledger import lock_current_learner
from app.progress.service import ProgressService
from app.rate_limit import count_attempt
from app.runs.machines import Machine, cell_machines
from app.runs.models import Run, RunState
from runners.wire.protocol import Outcome

MAX_LISTED_GUESSES = 8
"""The number of other learners' guesses that are shown, most frequent first."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A learner's answer to a prediction. Without a guess, it was skipped."""

    guess: str | None
    informed: bool
    """Whether the learner had run the cell before."""
    at: datetime


@dataclass(frozen=True, slots=True)
class OtherGuesses:
    """Other learners' guesses: the most frequent with their numbers, and the number of all."""

    counts: tuple[tuple[str, int], ...] = ()
    total: int = 0


NO_OTHER_GUESSES = OtherGuesses()


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
    missed: str = ""
    """Why the last run did not give the result, if it is still waited for."""


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
    visitor_address: str | None,
) -> str:
    """Record a guess, or that it was skipped. Only the first answer counts. The caller commits.

    ``visitor_address`` is the network or private address of a visitor; None for an account.

    Returns whose answer it is: the account's learner if the visitor was merged into an account during this request.

    Raises:
        InvalidGuess, ChoiceMissing, OrderIncomplete: the form has no valid guess.
        TooManyAttempts: this learner, or visitors from this address, have sent too many answers lately.
    """
    guess = None if skip else read_guess(prediction, fields)
    learner = await lock_current_learner(session, learner)
    await count_attempt(session, f"answer learner {learner}", ANSWERS_PER_LEARNER)
    key = {"learner_id": learner, "lesson": lesson.key, "prediction": prediction.name}
    if guess is not None and await session.scalar(select(PredictionAnswer.prediction).filter_by(**key)) is None:
        await count_visitor_answer(session, f"{lesson.key}#prediction-{prediction.name}", visitor_address)
    informed = await _has_run(session, learner, lesson.key, prediction.cell)
    await record_answer(session, progress, learner, lesson, prediction, Answer(guess, informed, now()))
    return learner


async def record_answer(
    session: AsyncSession,
    progress: ProgressService,
    learner: str,
    lesson: Lesson,
    prediction: Prediction,
    answer: Answer,
) -> None:
    """Store the answer of a learner that this transaction has locked, unless there is one.

    A guess earns XP if it was made before the first run.
    """
    row = dialect_insert(session, PredictionAnswer).values(
        learner_id=learner,
        lesson=lesson.key,
        prediction=prediction.name,
        guess=answer.guess,
        informed=answer.informed,
        answered_at=answer.at,
    )
    stored = await session.execute(row.on_conflict_do_nothing().returning(PredictionAnswer.prediction))
    if stored.scalar_one_or_none() is not None and progress.counts(lesson.key):
        xp = 0 if answer.guess is None or answer.informed else PREDICTION_XP
        fact = LearningEvent("prediction", f"{lesson.key}#{prediction.name}", xp)
        await progress.task_done(session, learner, lesson.key, f"prediction-{prediction.name}", [fact])


async def load_predictions(
    session: AsyncSession, learner: str | None, lesson: Lesson, predictions: Sequence[Prediction]
) -> list[PredictionView]:
    """Predictions of a lesson as a learner sees them, in at most three queries.

    Other learners' guesses are shown once there is a result.
    """
    if learner is None:
        return [PredictionView(prediction, "open") for prediction in predictions]
    mine = select(PredictionAnswer).where(PredictionAnswer.learner_id == learner, PredictionAnswer.lesson == lesson.key)
    answers = {row.prediction: row for row in await session.scalars(mine)}
    settled = [name for name, answer in answers.items() if answer.result is not None]
    others = await _count_guesses(session, learner, lesson.key, settled)
    waiting = {one.cell for one in predictions if one.name in answers and one.name not in settled}
    runs = await _last_runs(session, learner, lesson.key, waiting)
    return [
        _prediction_view(lesson, one, answers.get(one.name), others.get(one.name, NO_OTHER_GUESSES), runs.get(one.cell))
        for one in predictions
    ]


def _prediction_view(
    lesson: Lesson, prediction: Prediction, answer: PredictionAnswer | None, others: OtherGuesses, run: Run | None
) -> PredictionView:
    """``run``: the latest run of its cell that has ended. Pure."""
    if answer is None:
        return PredictionView(prediction, "open")
    guess = None if answer.guess is None else label_of(prediction, answer.guess)
    if answer.result is None:
        cell = lesson.cell(prediction.cell)
        ran = run if run is not None and run.created_at >= answer.answered_at else None
        missed = missing_result_sentence(prediction, cell, ran) if cell is not None and ran is not None else ""
        return PredictionView(prediction, "waiting", guess, missed=missed)
    return PredictionView(
        prediction,
        "done",
        guess,
        label_of(prediction, answer.result),
        answer.right,
        tuple(feedback_of(prediction, answer.guess, answer.result)),
        tuple(
            OtherGuess(label_of(prediction, theirs), count, theirs == answer.guess) for theirs, count in others.counts
        ),
        others.total,
    )


def settles_predictions(cell: Cell, run: Run) -> bool:
    """Whether a run was on the machine that the cell names: other machines may have other results. Pure."""
    return Machine.of(run.topology, run.keras) == cell_machines(cell)[0]


def can_show_result(prediction: Prediction, cell: Cell, outcome: Outcome, errors: Sequence[str]) -> bool:
    """Whether the result of a prediction may be shown after a run that ended like this. Pure.

    A result that the lesson states is shown only if the cell ran as its author intended: it ended without an error or,
    if it is to raise one, with an error that its ``expect`` names.

    Args:
        prediction: what was guessed.
        cell: the cell that it is about.
        outcome: how the run ended.
        errors: the lines of its errors.
    """
    if prediction.source is not None:
        return outcome in (Outcome.ok, Outcome.error)
    if CellTag.raises_exception in cell.tags:
        return outcome == Outcome.error and meets_any(cell.expect, errors)
    return outcome == Outcome.ok


def missing_result_sentence(prediction: Prediction, cell: Cell, run: Run) -> str:
    """Why a run after the guess did not give the prediction's result, in the current language. Pure."""
    if run.outcome not in (Outcome.ok, Outcome.error):
        return gettext("The last run did not finish, so there is no result yet.")
    if not settles_predictions(cell, run):
        own = cell_machines(cell)[0]
        words = gettext("The last run was on another machine. The result comes from a run on {machine}, Keras {keras}.")
        return words.format(machine=topology_label(own.topology), keras=own.keras)
    if prediction.source is None and CellTag.raises_exception in cell.tags:
        return gettext("The last run did not end with the error that the lesson expects, so there is no result yet.")
    if run.outcome == Outcome.error:
        return gettext("The last run ended with an error before it showed the result.")
    if run.code.strip() != cell.code.strip():
        return gettext("The last run did not show the result, perhaps because the code of the cell was changed.")
    return gettext("The last run did not show the result.")


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


async def _count_guesses(
    session: AsyncSession, learner: str, lesson: str, predictions: Collection[str]
) -> dict[str, OtherGuesses]:
    if not predictions:
        return {}
    name, guess, times = PredictionAnswer.prediction, PredictionAnswer.guess, func.count()
    columns = (
        name,
        guess,
        times.label("times"),
        func.sum(times).over(partition_by=name).label("total"),
        func.row_number().over(partition_by=name, order_by=(times.desc(), guess)).label("place"),
    )
    others = (
        PredictionAnswer.lesson == lesson,
        name.in_(predictions),
        PredictionAnswer.informed.is_(False),
        guess.is_not(None),
        PredictionAnswer.learner_id != learner,
    )
    ranked = select(*columns).where(*others).group_by(name, guess).subquery().c
    listed = select(ranked.prediction, ranked.guess, ranked.times, ranked.total).where(
        ranked.place <= MAX_LISTED_GUESSES
    )
    found: dict[str, OtherGuesses] = {}
    for prediction, their_guess, count, total in await session.execute(listed.order_by(ranked.place)):
        counts = found.get(prediction, NO_OTHER_GUESSES).counts
        found[prediction] = OtherGuesses((*counts, (their_guess, count)), int(total))
    return found


async def _last_runs(session: AsyncSession, learner: str, lesson: str, cells: Collection[str]) -> dict[str, Run]:
    """The latest run of each of the cells that was started and has ended."""
    if not cells:
        return {}
    place = func.row_number().over(partition_by=Run.cell, order_by=(Run.created_at.desc(), Run.id.desc()))
    mine = (Run.learner_id == learner, Run.lesson == lesson, Run.cell.in_(cells), Run.judgement.is_(False))
    ended = (Run.started_at.is_not(None), Run.state == RunState.finished)
    ranked = select(Run.id, place.label("place")).where(*mine, *ended).subquery().c
    last = select(Run).where(Run.id.in_(select(ranked.id).where(ranked.place == 1)))
    return {run.cell: run for run in await session.scalars(last)}


async def _has_run(session: AsyncSession, learner: str, lesson: str, cell: str) -> bool:
    began = (Run.learner_id == learner, Run.lesson == lesson, Run.cell == cell, Run.started_at.is_not(None))
    query = select(Run.id).where(*began, Run.judgement.is_(False)).limit(1)
    return (await session.scalar(query)) is not None
