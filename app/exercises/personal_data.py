"""A learner's answers to exercises: moved to an account, exported, or deleted.

A submission belongs to its run and is moved and deleted with it (``app.runs.personal_data``). Only accounts have
reviews: they are deleted with the account's row. What an account wrote in reviews of others stays, without its name.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any

from sqlalchemy import delete, select
from sqlalchemy.ext.asyncio import AsyncSession

from app.accounts.models import Account
from app.accounts.visitor_retention import RetentionRule
from app.db import stream_scalars
from app.exercises.models import PredictionAnswer, QuizAnswer, Review, ReviewComment, Submission
from app.progress.ledger import lock_learner
from app.runs.models import Run

_QUIZ_COLUMNS = ("lesson", "quiz", "first_choices", "first_right", "choices", "answered_at", "tries")
_REVIEW_COLUMNS = (
    *("id", "lesson", "exercise", "run_id", "code", "output", "results"),
    *("state", "requested_at", "decided_at", "remark"),
)
_PREDICTION_COLUMNS = ("lesson", "prediction", "guess", "informed", "answered_at", "result", "right")


async def export_exercises(session: AsyncSession, account: Account) -> AsyncIterator[Mapping[str, Any]]:
    """All verdicts, quiz answers and predictions. A submission's code is in the run with its ``run_id``."""
    mine = select(Submission).join(Run, Run.id == Submission.run_id).where(Run.learner_id == account.learner_id)
    async for row in stream_scalars(session, mine.order_by(Submission.run_id)):
        yield {"kind": "submission", "run_id": row.run_id, "verdict": row.verdict, "results": row.results}
    async for answer in stream_scalars(session, select(QuizAnswer).where(QuizAnswer.learner_id == account.learner_id)):
        yield {"kind": "quiz_answer", **{name: getattr(answer, name) for name in _QUIZ_COLUMNS}}
    guesses = select(PredictionAnswer).where(PredictionAnswer.learner_id == account.learner_id)
    async for guess in stream_scalars(session, guesses):
        yield {"kind": "prediction", **{name: getattr(guess, name) for name in _PREDICTION_COLUMNS}}


async def export_reviews(session: AsyncSession, account: Account) -> AsyncIterator[Mapping[str, Any]]:
    """The code that an account submitted with the comments on it, and what it wrote about the code of others."""
    async for review in stream_scalars(session, select(Review).where(Review.account_id == account.id)):
        yield {"kind": "review", **{name: getattr(review, name) for name in _REVIEW_COLUMNS}}
    received = select(ReviewComment).join(Review, Review.id == ReviewComment.review_id)
    async for comment in stream_scalars(session, received.where(Review.account_id == account.id)):
        yield {"kind": "received_comment", "review": comment.review_id, **_comment_fields(comment)}
    async for comment in stream_scalars(session, select(ReviewComment).where(ReviewComment.author_id == account.id)):
        yield {"kind": "written_comment", **_comment_fields(comment)}
    async for review in stream_scalars(session, select(Review).where(Review.reviewer_id == account.id)):
        yield {"kind": "decision", **{name: getattr(review, name) for name in ("state", "decided_at", "remark")}}


def _comment_fields(comment: ReviewComment) -> dict[str, Any]:
    return {name: getattr(comment, name) for name in ("line", "source", "created_at")}


async def erase_exercises(session: AsyncSession, account: Account) -> None:
    """Delete an account's submissions and answers."""
    mine = select(Run.id).where(Run.learner_id == account.learner_id)
    await session.execute(delete(Submission).where(Submission.run_id.in_(mine)))
    for table in (QuizAnswer, PredictionAnswer):
        await session.execute(delete(table).where(table.learner_id == account.learner_id))


async def move_answers(session: AsyncSession, from_learner: str, to_learner: str) -> Mapping[str, int]:
    """Move one learner's answers to another. If both answered, the earlier answer is kept, as the first one.

    Answers are stored under the same locks (``lock_current_learner``), so none arrives after this and stays behind.
    """
    for learner in sorted((from_learner, to_learner)):
        await lock_learner(session, learner)
    moved = await _move_quiz_answers(session, from_learner, to_learner)
    moved += await _move_predictions(session, from_learner, to_learner)
    await session.flush()
    return {"answers": moved}


async def _move_quiz_answers(session: AsyncSession, from_learner: str, to_learner: str) -> int:
    coming = (await session.scalars(select(QuizAnswer).where(QuizAnswer.learner_id == from_learner))).all()
    for answer in coming:
        there = await session.get(QuizAnswer, (to_learner, answer.lesson, answer.quiz))
        if there is None:
            answer.learner_id = to_learner
            continue
        if answer.answered_at < there.answered_at:
            there.first_choices, there.first_right = answer.first_choices, answer.first_right
            there.answered_at = answer.answered_at
        there.tries += answer.tries
        await session.delete(answer)
    return len(coming)


async def _move_predictions(session: AsyncSession, from_learner: str, to_learner: str) -> int:
    coming = (await session.scalars(select(PredictionAnswer).where(PredictionAnswer.learner_id == from_learner))).all()
    for guess in coming:
        there = await session.get(PredictionAnswer, (to_learner, guess.lesson, guess.prediction))
        if there is not None and there.answered_at <= guess.answered_at:
            await session.delete(guess)
            continue
        if there is not None:
            await session.delete(there)
            await session.flush()
        guess.learner_id = to_learner
    return len(coming)


RETENTION_RULES = (
    RetentionRule(QuizAnswer.learner_id, QuizAnswer.answered_at),
    RetentionRule(PredictionAnswer.learner_id, PredictionAnswer.answered_at),
)
