"""Words for how a run ended and where a session stands. Pure."""

from __future__ import annotations

from app.i18n import N_, gettext
from runners.protocol import Outcome, SessionInfo, SessionState

_OUTCOMES = {
    Outcome.ok: N_("Finished"),
    Outcome.error: N_("Ended with an error"),
    Outcome.interrupted: N_("Stopped"),
    Outcome.timeout: N_("Stopped: it ran longer than allowed"),
    Outcome.cpu: N_("Stopped: it used more CPU time than allowed"),
    Outcome.memory: N_("Stopped: it needed more memory than allowed"),
    Outcome.output: N_("Stopped: it printed more than allowed"),
    Outcome.processes: N_("Stopped: it started more processes than allowed"),
    Outcome.disk: N_("Stopped: it wrote more to the disk than allowed"),
    Outcome.files: N_("Stopped: it opened more files than allowed"),
    Outcome.crash: N_("Python crashed: the session starts anew with the next run"),
    Outcome.lost: N_("Lost: the runner restarted; run it again"),
}

_GONE = {
    "idle": N_("The session ended after a while without a run; the next run starts a new one"),
    "ended": N_("The session was ended; the next run starts a new one"),
    "crash": N_("Python crashed; the next run starts a new session"),
    "memory": N_("The session ran out of memory; the next run starts a new one"),
}


def outcome_words(outcome: Outcome) -> str:
    """How a run ended, in the language in use."""
    return gettext(_OUTCOMES[outcome])


def session_words(session: SessionInfo | None) -> str:
    """Where a session stands, in the language in use."""
    if session is None:
        return gettext("No session yet: the first run starts one")
    match session.state:
        case SessionState.queued:
            return gettext("Waiting for a free place: position {n}").format(n=session.position or 1)
        case SessionState.starting:
            return gettext("Starting")
        case SessionState.idle:
            return gettext("Ready")
        case SessionState.busy:
            return gettext("Running")
        case SessionState.gone:
            return gettext(_GONE.get(session.gone_because or "", _GONE["ended"]))
