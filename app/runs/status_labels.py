"""Labels for the outcome of a run, deleted output, and the state of a session. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from app.i18n import N_, gettext, ngettext, number
from app.runs.queue_position import round_wait_s
from runners.wire.protocol import NoticeEvent, Outcome, SessionInfo, SessionState

_OUTCOME_LABELS = {
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
    Outcome.crash: N_("Python crashed; the next run starts a new session"),
    Outcome.lost: N_("Lost: the runner restarted; run it again"),
}

_SESSION_FAILURES = {
    "no-sandbox": N_("The runner could not create a sandbox."),
    "no-kernel": N_("Python did not start in its sandbox."),
    "sandbox-gone": N_("The sandbox ended."),
    "internal": N_("Lockstep itself failed. The operator's log has the details."),
}
"""By the ``reason`` of a ``session-failed`` notice."""

_SESSION_END_LABELS = {
    "idle": N_("The session ended because nothing ran for a while; the next run starts a new one"),
    "evicted": N_("Your session ended to make room for someone who was waiting; the next run starts a new one"),
    "replaced": N_("The session ended because you started another; the next run starts a new one"),
    "ended": N_("The session ended; the next run starts a new one"),
    "memory": N_("The session ran out of memory; the next run starts a new one"),
    "cpu": N_("The session used more CPU time than allowed; the next run starts a new one"),
    "failed": N_("Lockstep could not keep the session running; the next run starts a new one"),
    "supervisor-stopped": N_("The runner was stopped; the next run starts a new session"),
}

OUTPUT_DELETED_MESSAGES = {  # the page's script has the same sentences (``web/templates/strings.html``)
    "output-expired": N_("The output of this run was deleted after {age} to save space. Run the cell again to see it."),
    "output-over-quota": N_(
        "The output of this run was deleted to make room for newer runs. Run the cell again to see it."
    ),
}
"""By the code of the notice that replaces deleted output (``runs.pruning``)."""


def notice_text(notice: NoticeEvent) -> str:
    """The notice in the current language if it is about deleted output; otherwise its own text."""
    return deletion_text(notice.code, notice.values) if notice.code in OUTPUT_DELETED_MESSAGES else notice.text


def deletion_text(code: str, values: Mapping[str, str | int | float]) -> str:
    """Why output was deleted, in the current language. ``values`` are the notice's."""
    days = int(values.get("days", 0))
    age = ngettext("%(num)s day", "%(num)s days", days) % {"num": number(days)}
    return gettext(OUTPUT_DELETED_MESSAGES[code]).format(age=age)


def outcome_label(outcome: Outcome) -> str:
    """The outcome of a run in the current language."""
    return gettext(_OUTCOME_LABELS[outcome])


def session_failure_text(reason: str) -> str:
    """Why Lockstep could not keep a session running, in the current language."""
    return gettext(_SESSION_FAILURES.get(reason, _SESSION_FAILURES["internal"]))


def _queued_label(session: SessionInfo) -> str:
    position = session.position or 1
    if session.wait_s is None:
        return gettext("Waiting for a free slot: position {n}").format(n=position)
    time = wait_text(round_wait_s(session.wait_s))
    return gettext("Waiting for a free slot: position {n}, {time}").format(n=position, time=time)


def wait_text(seconds: int) -> str:
    """A wait from ``round_wait_s``, in the current language."""
    if not seconds:
        return gettext("less than {time}").format(time="10 s")
    time = f"{number(seconds)} s" if seconds < 60 else f"{number(seconds // 60)} min"
    return gettext("about {time}").format(time=time)


def session_label(session: SessionInfo | None) -> str:
    """The state of a session in the current language."""
    if session is None:
        return gettext("No session yet: the first run starts one")
    match session.state:
        case SessionState.queued:
            return _queued_label(session)
        case SessionState.starting:
            return gettext("Starting")
        case SessionState.idle:
            return gettext("Ready")
        case SessionState.busy:
            return gettext("Running")
        case SessionState.gone:
            return gettext(_SESSION_END_LABELS.get(session.gone_because or "", _SESSION_END_LABELS["ended"]))
