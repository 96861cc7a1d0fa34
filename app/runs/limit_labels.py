"""Names of the limits, their values in words, and advice when a limit is reached. Pure.

The page's script uses the same sentences (``web/templates/strings.html``); they are translated once.
"""

from __future__ import annotations

from app.i18n import N_, gettext, number
from runners.wire.protocol import LimitName, Outcome, ReachedLimit

_LABELS: dict[LimitName, str] = {
    "time": N_("time limit {value}"),
    "cpu": N_("CPU time limit {value}"),
    "memory": N_("memory limit {value}"),
    "processes": N_("limit of {value} processes"),
    "disk": N_("disk limit {value}"),
    "inodes": N_("limit of {value} files and folders"),
    "file_size": N_("file size limit {value}"),
    "open_files": N_("limit of {value} open files"),
    "sockets": N_("limit of {value} sockets"),
    "output": N_("output limit {value}"),
    "output_rate": N_("output limit {value} per second"),
    "events": N_("limit of {value} pieces of output"),
    "display": N_("display limit {value}"),
    "stored": N_("storage limit {value}"),
    "sessions_per_learner": N_("sessions per learner: {value}"),
    "runs_per_session": N_("runs per session: {value}"),
    "sessions": N_("sessions at a time: {value}"),
}
_ADVICE: dict[LimitName, str] = {
    "time": N_("Train for fewer steps, or make the loop shorter."),
    "cpu": N_("Train for fewer steps, or use fewer processes at once."),
    "memory": N_("Try a smaller batch, a smaller model, or less data."),
    "processes": N_("Start fewer processes or threads."),
    "disk": N_("Write less, or delete files before writing new ones."),
    "inodes": N_("Write fewer, larger files, or delete some before writing new ones."),
    "file_size": N_("Write several smaller files."),
    "open_files": N_("Close files when you are done with them: with open(…) as f closes them automatically."),
    "sockets": N_("Close connections and sockets when you are done with them."),
    "output": N_("Print less: every hundredth step, for example."),
    "output_rate": N_("Print less often: every hundredth step, for example, and not inside the innermost loop."),
    "events": N_("Print whole lines, and show fewer pictures."),
    "display": N_("Show a smaller picture or part of the table."),
    "stored": N_("This server limits how much output it stores per hour. Wait a few minutes, and print less."),
    "sessions_per_learner": N_("Stop a run, or wait for one to finish."),
    "runs_per_session": N_("Stop a run, or wait for one to finish."),
    "sessions": N_("Try again in a few minutes."),
}
_LIMIT_BY_OUTCOME: dict[Outcome, LimitName] = {
    Outcome.timeout: "time",
    Outcome.cpu: "cpu",
    Outcome.memory: "memory",
    Outcome.output: "output",
    Outcome.processes: "processes",
    Outcome.disk: "disk",
    Outcome.files: "open_files",
}
_UNITS = ("bytes", "KiB", "MiB", "GiB", "TiB")


def limit_label(limit: ReachedLimit) -> str:
    """The limit and its value in the current language: ``memory limit 2 GiB``."""
    return gettext(_LABELS[limit.name]).format(value=format_limit(limit))


def format_limit(limit: ReachedLimit) -> str:
    """The value in readable units: ``8 MiB``, ``10 min``, ``512``."""
    match limit.unit:
        case "s":
            return _format_duration(limit.value)
        case "bytes" | "bytes/s":
            return format_bytes(limit.value)
        case _:
            return number(limit.value)


def limit_advice(outcome: Outcome, limit: ReachedLimit | None) -> str:
    """What to try after a run with this outcome; empty if it did not reach a limit."""
    name = limit.name if limit is not None else _LIMIT_BY_OUTCOME.get(outcome)
    return gettext(_ADVICE[name]) if name is not None else ""


def format_bytes(value: float) -> str:
    """A size in readable units: ``8 MiB``."""
    unit = 0
    while value >= 1024 and unit < len(_UNITS) - 1:
        value, unit = value / 1024, unit + 1
    return f"{number(round(value, 1 if unit else 0))} {_UNITS[unit]}"


def _format_duration(seconds: float) -> str:
    if seconds < 60:
        return f"{number(round(seconds, 1))} s"
    whole = round(seconds)
    parts = ((whole // 3600, "h"), (whole % 3600 // 60, "min"), (whole % 60, "s"))
    return " ".join(f"{number(n)} {unit}" for n, unit in parts if n)
