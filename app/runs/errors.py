"""What can keep a run from starting, or from being seen."""

from __future__ import annotations

from app.errors import NotAllowed, NotFound, Problem, TooLarge, TooMany, Unavailable, Unreadable
from app.i18n import N_
from runners.protocol import Refusal


class RunUnknown(NotFound):
    """No such run, or it is someone else's."""

    code = "run_unknown"
    message = N_("There is no such run.")


class DisplayUnknown(NotFound):
    """The run has no HTML output of that number."""

    code = "display_unknown"
    message = N_("The run has no such output.")


class CellUnknown(NotFound):
    """The lesson has no cell of this name."""

    code = "cell_unknown"
    message = N_("The lesson has no cell “{cell}”. Reload the page: the lesson may have changed.")


class CodeTooLong(TooLarge):
    """More code than one run may carry."""

    code = "code_too_long"
    message = N_("The code has {size:,} bytes; at most {most_bytes:,} can be run at once.")


class CodeNotText(Unreadable):
    """The code has a character that no Python source may have: NUL, or half of a surrogate pair."""

    code = "code_not_text"
    message = N_("The code contains a character that Python cannot read. Remove it and run again.")


class TooManyRuns(TooMany):
    """The visitor has as many unfinished runs as one may have."""

    code = "too_many_runs"
    message = N_("You have {most} runs waiting or running. Wait for one to finish, or stop one.")


class AllSessionsBusy(TooMany):
    """The visitor has as many sessions as one may have, and none is idle."""

    code = "all_sessions_busy"
    message = N_("All of your sessions are busy. Stop a run, or wait for one to end.")


class SessionFull(TooMany):
    """As many runs wait in the session as may."""

    code = "session_full"
    message = N_("Too many runs wait in this session. Stop one, or wait for one to end.")


class RunnerDown(Unavailable):
    """The supervisor does not answer."""

    code = "runner_down"
    message = N_("The runner is starting or not reachable. Nothing was run; try again in a moment.")


class Unsafe(NotAllowed):
    """Strangers can reach the runner, and a wall around their code is missing. Only its operator can change that."""

    code = "unsafe"
    message = N_(
        "This server runs no code for now: it cannot do so safely. Lessons can be read; please tell whoever runs it."
    )


class RunRefused(Problem):
    """The supervisor declined the run for a reason we have no words for; its own are in English."""

    code = "run_refused"
    message = N_("The runner declined this run: {reason}")

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason=reason)
        self._status = status

    @property
    def http_status(self) -> int:
        return self._status


_OWN_WORDS: dict[str, type[Problem]] = {
    "too-many-sessions": AllSessionsBusy,
    "too-many-runs": SessionFull,
    "unsafe": Unsafe,
}


def declined(status: int, refusal: Refusal) -> Problem:
    """A refusal of the supervisor as the learner is told about it. Pure."""
    known = _OWN_WORDS.get(refusal.code)
    return known() if known else RunRefused(status, refusal.message)
