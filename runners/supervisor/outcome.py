"""Determines how a run ended, from facts observed outside the sandbox. Pure.

An exception is the program's own claim. It is believed if no fact can tell, because a refused request (a file, a
descriptor, a large allocation) leaves no trace outside. Three things contradict it: a counter that has not moved, a
folder that is not full, and a traceback that ends in the learner's own ``raise``.
"""

from __future__ import annotations

import re
import signal
from dataclasses import dataclass
from typing import NamedTuple

from runners.config.settings import Limits, MiB
from runners.wire.exit_status import is_clean_exit
from runners.wire.protocol import LimitName, Outcome, ReachedLimit

OUTCOME_BY_LIMIT: dict[LimitName, Outcome] = {
    "time": Outcome.timeout,
    "cpu": Outcome.cpu,
    "memory": Outcome.memory,
    "processes": Outcome.processes,
    "disk": Outcome.disk,
    "inodes": Outcome.disk,
    "file_size": Outcome.disk,
    "open_files": Outcome.files,
    "sockets": Outcome.files,
    "output": Outcome.output,
    "output_rate": Outcome.output,
    "events": Outcome.output,
}
"""The outcome of a run that reached a limit."""

_NEARLY = 0.8
"""The fraction of the memory limit above which an out-of-memory error is believed without a size."""
_ENDED_BY: dict[int, LimitName] = {-signal.SIGXCPU: "cpu", -signal.SIGXFSZ: "file_size"}
_MEMORY_ERRORS = ("MemoryError", "_ArrayMemoryError", "ResourceExhaustedError")  # Python's, NumPy's, TensorFlow's
_SYSTEM_ERRORS = ("OSError", "ResourceExhaustedError", "OutOfRangeError", "UnknownError", "ZMQError")
_WORDS: tuple[tuple[str, LimitName], ...] = (
    (r"\[Errno 28\]|errno = 28\b|No space left on device|Not enough free space to write", "disk"),
    (r"\[Errno 27\]|errno = 27\b|File too large", "file_size"),
    (r"\[Errno 24\]|errno = 24\b|Too many open files", "open_files"),
    (r"(?<!\d)\d+ requested and \d+ written", "disk"),  # match a number only from its first digit
)
"""Messages of Python, HDF5, TensorFlow and NumPy; the last one may also be about the size of a file. The program
controls the text, so every expression has to take linear time."""
_AMOUNT = re.compile(r"Unable to allocate (\d+(?:\.\d*)?) ([KMGTPE]i|bytes)?B?\b")
_POWERS = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")


class ReportedError(NamedTuple):
    """The exception that left the cell."""

    name: str
    value: str
    raised: bool = False
    """Whether its traceback ends in a ``raise`` in the learner's own code."""


class FreeSpace(NamedTuple):
    """The free space in one of the session's folders."""

    bytes: int
    inodes: int


@dataclass(frozen=True, slots=True)
class RunEvidence:
    """The facts known at the end of a run; None for those that nothing counts."""

    interrupted: bool = False
    """Whether the supervisor stopped it on request."""
    met: LimitName | None = None
    """The limit because of which the supervisor stopped it."""
    exit_status: int | None = None
    """The exit status of the kernel's process if it ended, negative for a signal."""
    error: ReportedError | None = None
    oom_kills: int = 0
    """Processes that the operating system killed for memory during the run."""
    forks_refused: int = 0
    """Processes or threads the process limit refused during the run."""
    peak_bytes: int | None = None
    """The most memory the session held during the run."""
    folders: tuple[FreeSpace, ...] = ()
    """The free space in the session's folders at the end of the run."""


class RunEnding(NamedTuple):
    """An outcome, and the limit behind it if there is one."""

    outcome: Outcome
    met: LimitName | None = None


def determine_outcome(facts: RunEvidence, limits: Limits) -> RunEnding:
    """Determine the outcome. Facts outweigh the program's own errors."""
    if facts.oom_kills and (facts.exit_status is not None or facts.error):
        return _met("memory")
    if facts.met:
        return _met(facts.met)
    if facts.interrupted:
        return RunEnding(Outcome.interrupted)
    if facts.exit_status is not None:
        met = _ENDED_BY.get(facts.exit_status, "processes" if facts.forks_refused else None)
        return _met(met) if met else RunEnding(Outcome.crash)
    if facts.error:
        return _of_error(facts.error, facts, limits)
    return RunEnding(Outcome.ok)


def _met(name: LimitName) -> RunEnding:
    return RunEnding(OUTCOME_BY_LIMIT[name], name)


def _of_error(said: ReportedError, facts: RunEvidence, limits: Limits) -> RunEnding:
    if is_clean_exit(said.name, said.value):
        return RunEnding(Outcome.ok)
    met = _of_system(said, facts) or _of_processes(said, facts)
    if met is None and said.name in _MEMORY_ERRORS and _lacked_memory(said, facts, limits):
        met = "memory"
    return _met(met) if met else RunEnding(Outcome.error)


def _of_system(said: ReportedError, facts: RunEvidence) -> LimitName | None:
    """Find the file limit that an error message names; if it is ambiguous, the folders decide."""
    if said.name not in _SYSTEM_ERRORS or said.raised:
        return None
    met = next((limit for words, limit in _WORDS if re.search(words, said.value)), None)
    if met == "disk" and any(not left.inodes and left.bytes for left in facts.folders):
        return "inodes"
    if met == "disk" and "requested" in said.value and facts.folders and all(left.bytes for left in facts.folders):
        return "file_size"
    return met


def _of_processes(said: ReportedError, facts: RunEvidence) -> LimitName | None:
    """Find out whether processes ran out: a counted refusal is certain, but refusals by rlimits are not counted."""
    refused = said.name == "BlockingIOError" and "[Errno 11]" in said.value
    refused |= said.name == "RuntimeError" and "can't start new thread" in said.value
    return "processes" if refused and (facts.forks_refused or not said.raised) else None


def _lacked_memory(said: ReportedError, facts: RunEvidence, limits: Limits) -> bool:
    """Whether memory ran out: it was nearly full, or the program asked for more than was left at once."""
    most = limits.memory_mb * MiB
    if facts.peak_bytes is not None and facts.peak_bytes >= _NEARLY * most:
        return True
    if said.raised:
        return False
    amount = _AMOUNT.search(said.value)
    if not amount or facts.peak_bytes is None:
        return True
    wanted = float(amount[1]) * 1024.0 ** _POWERS.index(amount[2] or "")
    return wanted + facts.peak_bytes > most


def reached_limit(name: LimitName, limits: Limits, run_s: float) -> ReachedLimit:
    """A limit of a run with its value and unit; ``run_s`` is the run's own wall-clock limit."""
    match name:
        case "time":
            return ReachedLimit(name=name, value=run_s, unit="s")
        case "cpu":
            return ReachedLimit(name=name, value=limits.cpu_s, unit="s")
        case "output_rate":
            return ReachedLimit(name=name, value=limits.output_mb_per_s * MiB, unit="bytes/s")
        case "processes" | "inodes" | "open_files" | "sockets" | "events":
            return ReachedLimit(name=name, value=getattr(limits, name), unit="count")
        case "memory" | "disk" | "output" | "display":
            return ReachedLimit(name=name, value=getattr(limits, f"{name}_mb") * MiB, unit="bytes")
        case "file_size":
            return ReachedLimit(name=name, value=limits.file_mb * MiB, unit="bytes")
        case _:
            raise ValueError(f"{name} is not a limit of a run")
