"""Completion and documentation for a learner's code, from the kernel of the session on its machine.

The editor also knows some names by itself, so a kernel that is busy, or that does not exist yet, is no error.
"""

from __future__ import annotations

from collections import OrderedDict

from app.lessons.model import Lesson
from app.runs.errors import TooManyQuestions
from app.runs.machines import Machine
from app.runs.service import session_id
from runners.wire.client import RequestRefused, RunnerClient, RunnerUnavailable
from runners.wire.protocol import Introspection, IntrospectionRequest

_AT_ONCE = 40
_PER_SECOND = 5.0
_MOST_LEARNERS = 10_000

BUSY = Introspection(state="busy")


class QuestionLimiter:
    """How often a learner may ask: many times at once, then a few times a second. Each web process counts by itself."""

    def __init__(self) -> None:
        self._seen: OrderedDict[str, tuple[float, float]] = OrderedDict()
        """By learner: how many questions are left, and when that was (seconds of the caller's clock)."""

    def admit(self, learner: str, now: float) -> None:
        """Count a question. Raises TooManyQuestions."""
        left, at = self._seen.pop(learner, (float(_AT_ONCE), now))
        left = min(_AT_ONCE, left + (now - at) * _PER_SECOND)
        self._seen[learner] = left - 1 if left >= 1 else left, now
        if len(self._seen) > _MOST_LEARNERS:
            self._seen.popitem(last=False)
        if left < 1:
            raise TooManyQuestions


async def introspect(
    runner: RunnerClient, learner: str | None, lesson: Lesson, machine: Machine, request: IntrospectionRequest
) -> Introspection:
    """Ask the kernel of the learner's session on that machine, if there is one."""
    if learner is None:
        return BUSY
    try:
        return await runner.introspect(session_id(learner, lesson.key, machine), request)
    except (RequestRefused, RunnerUnavailable):
        return BUSY
