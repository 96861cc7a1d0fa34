"""Reasons why a run cannot be started or shown."""

from __future__ import annotations

from app.errors import (
    InvalidInput,
    LockstepError,
    NotFound,
    PermissionDenied,
    RequestTooLarge,
    ServiceUnavailable,
    TooManyRequests,
)
from app.i18n import N_
from app.runs.limit_labels import format_limit
from runners.wire.protocol import LimitName, Refusal


class RunNotFound(NotFound):
    """The run does not exist, or it is someone else's."""

    message = N_("This run does not exist.")


class DisplayNotFound(NotFound):
    """The run has no HTML output with this number."""

    message = N_("The run has no such output.")


class OutputDeleted(NotFound):
    """The run's output was deleted to save space."""

    status = 410
    message = N_("The output of this run was deleted to save space. Run the cell again to see it.")


class NoNewSessions(ServiceUnavailable):
    """An admin has drained the runner."""

    message = N_("No new sessions start at the moment, because the server is about to be maintained. Try again later.")
    retry_after_s = 300


class CellNotFound(NotFound):
    """The lesson has no cell with this name."""

    message = N_("The lesson has no cell “{cell}”. Reload the page: the lesson may have changed.")


class ScratchCellNotFound(NotFound):
    """The learner has no such cell."""

    message = N_("This cell no longer exists. You may have deleted it in another window. Copy what you want to keep.")


class TooManyScratchCells(InvalidInput):
    """The page or the learner has the maximum number of scratch cells."""

    message = N_("You cannot have more than {most} cells of your own here. Delete some that you no longer need.")


class ScratchCellsTooLarge(RequestTooLarge):
    """The scratch cells of a page are too large together."""

    message = N_("Your own cells on this page would have more than {most_bytes:,} bytes. Shorten or delete some.")


class MachineUnavailable(InvalidInput):
    """The lesson does not offer this machine or this version of Keras."""

    message = N_("This cannot run on {asked}, only on {possible}. Reload the page: the lesson may have changed.")


class InvalidFailureAction(InvalidInput):
    """The requested action or step is not valid."""

    message = N_("You can kill, pause, resume, slow down, or restart a process, either now or at a given step.")


class CodeTooLong(RequestTooLarge):
    """The code is longer than one run may have."""

    message = N_("The code has {size:,} bytes, and the limit is {most_bytes:,}. Shorten it, or split it across cells.")


class InvalidCode(InvalidInput):
    """The code contains a character that Python source may not contain: NUL, or half of a surrogate pair."""

    message = N_("The code contains a character that Python cannot read. Remove it and run the cell again.")


class TooManyRuns(TooManyRequests):
    """The learner has the maximum number of unfinished runs."""

    message = N_("You have {most} runs waiting or running. Wait for one to finish, or stop one.")


class TooManyQuestions(TooManyRequests):
    """The editor asks for completions or documentation too often."""

    message = N_("Your editor asks for completions too often. Wait a few seconds, and try again.")


class AllSessionsBusy(TooManyRequests):
    """The learner has the maximum number of sessions, and none is idle."""

    message = N_("All of your sessions are busy, and {most} is the limit. Stop a run, or wait for one to finish.")


class SessionQueueFull(TooManyRequests):
    message = N_("This session's queue is full ({most} runs). Stop one, or wait for one to finish.")


class ServerFull(TooManyRequests):
    """All sessions of the runner are in use, and its queue is full."""

    message = N_("This server is full ({most} sessions), and so is its queue. Try again in a few minutes.")


class AddressLimitReached(TooManyRequests):
    """The maximum number of learners at one network address is reached."""

    message = N_(
        "Too many people on your network are running code right now (limit: {most}). Try again in a few minutes."
    )


class QuotaReached(TooManyRequests):
    """The learner has stored the hourly maximum of output."""

    message = N_(
        "Your runs have reached this server's hourly output limit ({most}). Nothing ran. Wait a few "
        "minutes, and print less."
    )


class AddressQuotaReached(TooManyRequests):
    """Visitors at one network address have stored their hourly maximum of output."""

    message = N_(
        "Visitors from your network have reached this server's hourly output limit ({most}). Nothing "
        "ran. Sign in, or wait a few minutes."
    )


class RunnerOffline(ServiceUnavailable):
    """The supervisor does not respond."""

    message = N_("The runner is starting or cannot be reached. Nothing ran. Try again in a moment.")


class ExecutionDisabled(PermissionDenied):
    """Untrusted users can reach the runner, and a layer of isolation is missing. Only the operator can change that."""

    message = N_(
        "This server is not running code right now because it cannot do so safely. You can still "
        "read the lessons. Please tell the operator of this site."
    )


class RunRefused(LockstepError):
    """The supervisor rejected the run for a reason that has no translation; its own message is in English."""

    message = N_("The runner rejected this run: {reason}")

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason=reason)
        self.status = status


_ERRORS_BY_LIMIT: dict[LimitName, type[LockstepError]] = {
    "sessions_per_learner": AllSessionsBusy,
    "runs_per_session": SessionQueueFull,
    "sessions": ServerFull,
}


def refusal_error(status: int, refusal: Refusal) -> LockstepError:
    """The error that tells the learner about a refusal: which limit was reached, its value, and what to do. Pure."""
    if refusal.code == "unsafe":
        return ExecutionDisabled()
    known = _ERRORS_BY_LIMIT.get(refusal.limit.name) if refusal.limit is not None else None
    if known is None or refusal.limit is None:
        return RunRefused(status, refusal.message)
    return known(most=format_limit(refusal.limit))
