"""Quizzes: learners can answer as often as they like, with feedback each time. The first answer is recorded."""

from __future__ import annotations

import hashlib
from collections.abc import Collection
from dataclasses import dataclass

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncSession

from app.db import dialect_insert, now
from app.exercises.errors import ChoiceMissing, QuizNotFound
from app.exercises.models import QuizAnswer
from app.lessons.model import Lesson, Quiz
from app.progress.events import QUIZ_XP, LearningEvent
from app.progress.ledger import lock_current_learner
from app.progress.service import ProgressService
from app.rate_limit import RateLimitPolicy, count_attempt, network_limit_key

ANSWERS_PER_LEARNER = RateLimitPolicy(free_attempts=300, max_delay_s=30.0)
"""For quizzes and predictions together."""
VISITOR_ANSWERS_PER_ADDRESS = RateLimitPolicy(free_attempts=200, initial_delay_s=5.0, max_delay_s=60.0)
"""First answers to one question by visitors without an account: a new cookie costs nothing. A lecture hall may share an
address. Who skips a prediction is not counted, so that nobody has to wait to run a cell."""


@dataclass(frozen=True, slots=True)
class GivenAnswer:
    """A learner's answer: numbers of choices from 0."""

    choices: frozenset[int]
    right: bool
    tries: int


def find_quiz(lesson: Lesson, name: str) -> Quiz:
    """The quiz with this name. Raises QuizNotFound."""
    quiz = next((quiz for quiz in lesson.quizzes if quiz.name == name), None)
    if quiz is None:
        raise QuizNotFound(quiz=name[:100])
    return quiz


def parse_choices(quiz: Quiz, ticked: Collection[str]) -> frozenset[int]:
    """The choices selected in a form. Raises ChoiceMissing if there are none, or some that the quiz does not have."""
    possible = {str(number): number for number in range(len(quiz.choices))}
    if not ticked or not set(ticked) <= possible.keys() or (len(ticked) > 1 and not quiz.several):
        raise ChoiceMissing(reason="")
    return frozenset(possible[each] for each in ticked)


def is_right(quiz: Quiz, choices: Collection[int]) -> bool:
    """Whether exactly the correct choices were selected. Pure."""
    return set(choices) == {number for number, choice in enumerate(quiz.choices) if choice.correct}


async def answer_quiz(
    session: AsyncSession,
    progress: ProgressService,
    learner: str,
    lesson: Lesson,
    quiz: Quiz,
    choices: Collection[int],
    *,
    visitor_address: str | None,
) -> str:
    """Record an answer. The caller commits.

    Args:
        session: a transaction that writes.
        progress: where the answer counts.
        learner: who answers.
        lesson: the lesson with the quiz.
        quiz: the question.
        choices: the numbers of the selected choices.
        visitor_address: the network or private address of a visitor; None for an account.

    Returns whose answer it is: the account's learner if the visitor was merged into an account during this request.

    Raises:
        TooManyAttempts: this learner, or visitors from this address, have sent too many answers lately.
    """
    learner = await lock_current_learner(session, learner)
    await count_attempt(session, f"answer learner {learner}", ANSWERS_PER_LEARNER)
    right, written = is_right(quiz, choices), ",".join(map(str, sorted(choices)))
    key = {"learner_id": learner, "lesson": lesson.key, "quiz": quiz.name}
    if await session.scalar(select(QuizAnswer.quiz).filter_by(**key)) is None:
        await count_visitor_answer(session, f"{lesson.key}#quiz-{quiz.name}", visitor_address)
    values = {"first_choices": written, "first_right": right, "choices": written, "answered_at": now(), "tries": 0}
    await session.execute(dialect_insert(session, QuizAnswer).values(key | values).on_conflict_do_nothing())
    answer = (await session.scalars(select(QuizAnswer).filter_by(**key).with_for_update())).one()
    answer.choices, answer.tries = written, answer.tries + 1
    await session.flush()
    if progress.counts(lesson.key):
        subject = f"{lesson.key}#{quiz.name}"
        facts = [LearningEvent("quiz", subject, QUIZ_XP)]
        if answer.first_right:
            facts.append(LearningEvent("knew", subject))
        await progress.task_done(session, learner, lesson.key, f"quiz-{quiz.name}", facts)
    return learner


async def count_visitor_answer(session: AsyncSession, question: str, visitor_address: str | None) -> None:
    """Count the first answer of a visitor to a question. Raises TooManyAttempts. Accounts are not counted."""
    action = f"answer {hashlib.sha256(question.encode()).hexdigest()[:16]}"
    await count_attempt(session, network_limit_key(action, visitor_address), VISITOR_ANSWERS_PER_ADDRESS)


async def find_answers(session: AsyncSession, learner: str | None, lesson: Lesson) -> dict[str, GivenAnswer]:
    """A learner's answers in a lesson, by the quiz's name. Choices that no longer exist are left out."""
    if learner is None:
        return {}
    mine = select(QuizAnswer).where(QuizAnswer.learner_id == learner, QuizAnswer.lesson == lesson.key)
    rows = {row.quiz: row for row in await session.scalars(mine)}
    found = {}
    for quiz in lesson.quizzes:
        row = rows.get(quiz.name)
        if row is not None:
            choices = frozenset(int(number) for number in row.choices.split(","))
            if max(choices) < len(quiz.choices):
                found[quiz.name] = GivenAnswer(choices, is_right(quiz, choices), row.tries)
    return found
