"""Running one check to a result, whatever happens in it."""

from __future__ import annotations

import traceback
from dataclasses import dataclass, field
from typing import Literal

from runners.checks.compare import CheckFailed
from runners.checks.declare import DeclaredCheck
from runners.checks.work import SubmissionFailed, Work
from runners.wire import check_messages as messages

_LONGEST_DETAIL = 8000


@dataclass(frozen=True, slots=True)
class JudgedCheck:
    """The fields of ``runners.wire.protocol.CheckEvent``."""

    name: str
    outcome: Literal["passed", "failed", "error", "not-reached", "too-slow", "fault"]
    message: str = ""
    values: dict[str, str] = field(default_factory=dict)
    got: str | None = None
    wanted: str | None = None
    detail: str = ""


def run_check(check: DeclaredCheck, work: Work) -> JudgedCheck:
    """Judge ``work``. An exception that is not about the submission is a fault of the check, with its traceback."""
    try:
        check(work)
    except CheckFailed as e:
        return JudgedCheck(check.name, "failed", e.message, e.values, e.got, e.wanted)
    except SubmissionFailed as e:
        return JudgedCheck(check.name, e.outcome, e.message, e.values)
    except Exception:
        return JudgedCheck(check.name, "fault", messages.FAULT, detail=traceback.format_exc()[-_LONGEST_DETAIL:])
    return JudgedCheck(check.name, "passed")
