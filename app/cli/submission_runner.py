"""Judging a submission on a runner, as the application does for a learner."""

from __future__ import annotations

import secrets
from dataclasses import dataclass

from app.cli.connect_runner import run_events
from app.lessons.judgements import judgement_of
from app.lessons.model import Cell, Lesson
from runners.wire.check_messages import fill
from runners.wire.client import RunnerClient
from runners.wire.protocol import (
    CheckEvent,
    ErrorEvent,
    FinishedEvent,
    Outcome,
    RunRequest,
    SessionSpec,
    SubmissionVerdict,
    submission_verdict,
)


@dataclass(frozen=True, slots=True)
class JudgedSubmission:
    """How a submission was judged."""

    outcome: Outcome
    checks: tuple[CheckEvent, ...]
    errors: tuple[ErrorEvent, ...]
    """What it raised, in the submitted cell or in calls of it."""

    @property
    def verdict(self) -> SubmissionVerdict:
        """What that means."""
        return submission_verdict(self.outcome, [check.outcome for check in self.checks])

    @property
    def messages(self) -> tuple[str, ...]:
        """What the checks said, in English, one text for each."""
        return tuple(fill(check.message, check.values) for check in self.checks)


async def judge_submission(client: RunnerClient, lesson: Lesson, cell: Cell, code: str) -> JudgedSubmission:
    """Judge ``code`` as a submission for the exercise ``cell``.

    Raises:
        RunnerError: the runner declined, or does not answer.
        pydantic.ValidationError: the code is too long.
    """
    name = secrets.token_hex(16)
    spec = SessionSpec(owner=name, topology=cell.topology, keras=2 if cell.keras == 2 else 3)
    request = RunRequest(id=name, session=name, spec=spec, code=code, judgement=judgement_of(lesson, cell))
    await client.submit(request)
    events = [event async for event in run_events(client, name)]
    end = next((event for event in events if isinstance(event, FinishedEvent)), None)
    return JudgedSubmission(
        Outcome.lost if end is None else end.outcome,
        tuple(event for event in events if isinstance(event, CheckEvent)),
        tuple(event for event in events if isinstance(event, ErrorEvent)),
    )
