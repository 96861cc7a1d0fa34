"""How a run ended, judged from facts that were seen outside the sandbox. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from runners.protocol import Limit, Outcome
from runners.settings import Limits, MiB


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known at the end of a run."""

    stopped_for: Outcome | None = None
    """Why the supervisor stopped it (timeout, output, memory, interrupted), if it did."""
    exit_status: int | None = None
    """Of the kernel's process, if it ended; negative for a signal."""
    error: tuple[str, str] | None = None
    """Name and value of the exception that left the cell."""
    oom_kills: int = 0
    """Processes the kernel killed for memory during the run."""
    forks_refused: int = 0
    """Processes or threads the process limit refused during the run."""


def judge(facts: Facts) -> Outcome:
    """Name the outcome. What the machine did outweighs what the program said."""
    if facts.oom_kills and (facts.exit_status is not None or facts.error):
        return Outcome.memory
    if facts.stopped_for:
        return facts.stopped_for
    if facts.exit_status is not None:
        return Outcome.processes if facts.forks_refused else Outcome.crash
    if facts.error:
        return _of_error(*facts.error, facts.forks_refused)
    return Outcome.ok


def _of_error(name: str, value: str, forks_refused: int) -> Outcome:
    if name == "SystemExit" and value in ("", "0", "None"):
        return Outcome.ok  # a script that ends itself, well
    if name in ("MemoryError", "_ArrayMemoryError", "ResourceExhaustedError"):  # Python's, NumPy's, TensorFlow's
        return Outcome.memory
    if name == "OSError" and ("[Errno 28]" in value or "[Errno 27]" in value):  # no space left, file too large
        return Outcome.disk
    if name == "BlockingIOError" and "[Errno 11]" in value and (forks_refused or "temporarily" in value):
        return Outcome.processes
    if name == "RuntimeError" and "can't start new thread" in value:
        return Outcome.processes
    return Outcome.error


def met_limit(outcome: Outcome, limits: Limits, run_s: float) -> Limit | None:
    """The limit behind an outcome, with its value and unit; ``run_s`` is the run's own wall-clock limit."""
    match outcome:
        case Outcome.timeout:
            return Limit(name="time", value=run_s, unit="s")
        case Outcome.memory:
            return Limit(name="memory", value=limits.memory_mb * MiB, unit="bytes")
        case Outcome.output:
            return Limit(name="output", value=limits.output_mb * MiB, unit="bytes")
        case Outcome.processes:
            return Limit(name="processes", value=limits.processes, unit="count")
        case Outcome.disk:
            return Limit(name="disk", value=limits.disk_mb * MiB, unit="bytes")
        case _:
            return None
