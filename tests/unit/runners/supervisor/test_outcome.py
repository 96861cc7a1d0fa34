"""How a run ended, judged from outside."""

from __future__ import annotations

import time
from typing import get_args

import pytest

from runners.config.settings import Limits, MiB
from runners.supervisor.outcome import (
    OUTCOME_BY_LIMIT,
    FreeSpace,
    ReportedError,
    RunEvidence,
    determine_outcome,
    reached_limit,
)
from runners.wire.protocol import LimitName, Outcome

LIMITS = Limits(memory_mb=512)
LOW, HIGH = 100 * MiB, 450 * MiB
NO_SPACE = ReportedError("OSError", "[Errno 28] No space left on device")
KEYBOARD = ReportedError("KeyboardInterrupt", "")
HALF_FULL, FULL, NO_INODES = FreeSpace(10, 10), FreeSpace(0, 10), FreeSpace(10, 0)


@pytest.mark.parametrize(
    ("facts", "outcome", "met"),
    [
        (RunEvidence(), "ok", None),
        (RunEvidence(error=ReportedError("ValueError", "no")), "error", None),
        (RunEvidence(error=ReportedError("SystemExit", "0")), "ok", None),
        (RunEvidence(error=ReportedError("SystemExit", "1")), "error", None),
        (RunEvidence(interrupted=True, exit_status=-9), "interrupted", None),
        (RunEvidence(exit_status=0), "crash", None),
        (RunEvidence(exit_status=-11), "crash", None),
        (RunEvidence(exit_status=1, forks_refused=3), "processes", "processes"),
        (RunEvidence(exit_status=-24), "cpu", "cpu"),
        (RunEvidence(exit_status=-25), "disk", "file_size"),
        (RunEvidence(exit_status=-9, oom_kills=1), "memory", "memory"),
        (RunEvidence(error=ReportedError("ValueError", "no"), oom_kills=1), "memory", "memory"),
        (RunEvidence(oom_kills=1), "ok", None),
        (RunEvidence(met="time"), "timeout", "time"),
        (RunEvidence(met="time", error=KEYBOARD), "timeout", "time"),
        (RunEvidence(met="time", exit_status=-9, oom_kills=2), "memory", "memory"),
        (RunEvidence(met="cpu", error=KEYBOARD), "cpu", "cpu"),
        (RunEvidence(met="output", exit_status=-9), "output", "output"),
        (RunEvidence(met="output_rate", exit_status=-9), "output", "output_rate"),
        (RunEvidence(met="events", exit_status=-9), "output", "events"),
        (RunEvidence(met="memory", exit_status=-9), "memory", "memory"),
    ],
)
def test_what_the_machine_did_outweighs_what_the_program_said(
    facts: RunEvidence, outcome: str, met: str | None
) -> None:
    assert determine_outcome(facts, LIMITS) == (outcome, met)


@pytest.mark.parametrize(
    ("said", "peak", "outcome"),
    [
        (ReportedError("MemoryError", ""), HIGH, "memory"),
        (
            ReportedError("MemoryError", ""),
            LOW,
            "memory",
        ),  # bytearray(400 GiB): it may be so, and nothing outside can tell
        (ReportedError("MemoryError", ""), None, "memory"),
        (ReportedError("MemoryError", "", raised=True), LOW, "error"),
        (ReportedError("MemoryError", "", raised=True), None, "error"),
        (ReportedError("MemoryError", "", raised=True), HIGH, "memory"),
        (ReportedError("MemoryError", "Unable to allocate 72.8 TiB for an array with shape (1,)"), LOW, "memory"),
        (ReportedError("_ArrayMemoryError", "Unable to allocate 420. MiB for an array with shape (1,)"), LOW, "memory"),
        (ReportedError("_ArrayMemoryError", "Unable to allocate 100. MiB for an array with shape (1,)"), LOW, "error"),
        (ReportedError("_ArrayMemoryError", "Unable to allocate 800 B for an array with shape (100,)"), LOW, "error"),
        (ReportedError("_ArrayMemoryError", "Unable to allocate 800 B for an array with shape (100,)"), None, "memory"),
        (ReportedError("_ArrayMemoryError", "Unable to allocate 1.2.3 GiB"), LOW, "memory"),
        (ReportedError("ResourceExhaustedError", "OOM when allocating tensor with shape[1000000]"), LOW, "memory"),
        (ReportedError("ValueError", "Unable to allocate 72.8 TiB"), LOW, "error"),
    ],
)
def test_a_lack_of_memory_is_believed_unless_a_fact_or_a_raise_speaks_against_it(
    said: ReportedError, peak: int | None, outcome: str
) -> None:
    met = "memory" if outcome == "memory" else None
    assert determine_outcome(RunEvidence(error=said, peak_bytes=peak), LIMITS) == (outcome, met)


@pytest.mark.parametrize(
    ("said", "folders", "outcome", "met"),
    [
        (NO_SPACE, (), "disk", "disk"),
        (NO_SPACE, (HALF_FULL, FULL), "disk", "disk"),
        (NO_SPACE, (HALF_FULL, NO_INODES), "disk", "inodes"),
        (NO_SPACE, (HALF_FULL,), "disk", "disk"),  # a temporary file that is gone by now
        (NO_SPACE._replace(raised=True), (), "error", None),
        (ReportedError("OSError", "25000000 requested and 13106556 written"), (FULL,), "disk", "disk"),
        (ReportedError("OSError", "25000000 requested and 13106556 written"), (), "disk", "disk"),
        (ReportedError("OSError", "25000000 requested and 13106556 written"), (HALF_FULL,), "disk", "file_size"),
        (
            ReportedError("OSError", "Not enough free space to write 20000000 bytes after offset 128"),
            (FULL,),
            "disk",
            "disk",
        ),
        (ReportedError("ResourceExhaustedError", "/tmp/x; No space left on device"), (FULL,), "disk", "disk"),
        (
            ReportedError("OSError", "Can't write data (… errno = 28, error message = 'No space left …'"),
            (),
            "disk",
            "disk",
        ),
        (ReportedError("OSError", "[Errno 27] File too large"), (), "disk", "file_size"),
        (ReportedError("OutOfRangeError", "/tmp/x; File too large"), (), "disk", "file_size"),
        (ReportedError("OSError", "[Errno 24] Too many open files: 'x'"), (), "files", "open_files"),
        (ReportedError("ResourceExhaustedError", "/tmp/x; Too many open files"), (), "files", "open_files"),
        (ReportedError("ValueError", "[Errno 28]"), (FULL,), "error", None),
        (ReportedError("OSError", "[Errno 5] Input/output error"), (FULL,), "error", None),
    ],
)
def test_of_limits_on_files_the_message_names_one_and_the_folders_tell_which(
    said: ReportedError, folders: tuple[FreeSpace, ...], outcome: str, met: str | None
) -> None:
    assert determine_outcome(RunEvidence(error=said, folders=folders, peak_bytes=LOW), LIMITS) == (outcome, met)


@pytest.mark.parametrize(
    "said",
    [
        ReportedError("RuntimeError", "can't start new thread"),
        ReportedError("BlockingIOError", "[Errno 11] Resource temporarily unavailable"),
    ],
)
@pytest.mark.parametrize(
    ("refused", "raised", "met"),
    [(1, False, True), (0, False, True), (1, True, True), (0, True, False)],
)
def test_one_process_too_many_is_believed_if_counted_or_not_raised_by_the_learner(
    said: ReportedError, refused: int, raised: bool, met: bool
) -> None:
    verdict = determine_outcome(RunEvidence(error=said._replace(raised=raised), forks_refused=refused), LIMITS)
    assert verdict == (("processes", "processes") if met else ("error", None))


@pytest.mark.parametrize("value", ["1" * 20_000, "1 requested and " * 1_250 + "2" * 2_000, "\\[Errno" * 2_500])
def test_a_long_text_is_judged_in_steps_that_grow_with_its_length_only(value: str) -> None:
    """The program controls the text, and all sessions wait: trying each digit as the first takes 10**8 steps."""
    began = time.process_time()
    assert determine_outcome(RunEvidence(error=ReportedError("OSError", value)), LIMITS).outcome == "error"
    short_s = time.process_time() - began
    began = time.process_time()
    determine_outcome(RunEvidence(error=ReportedError("OSError", value * 50)), LIMITS)
    assert time.process_time() - began < max(short_s, 0.01) * 500, "fifty times the text took 500 times as long"


def test_every_limit_of_a_run_has_an_outcome_of_its_kind_a_value_and_a_unit() -> None:
    limits = Limits(memory_mb=512, disk_mb=64, file_mb=32, output_mb=0.5, output_mb_per_s=0.25, display_mb=0.125)
    told = {name: reached_limit(name, limits, 3.5) for name in (*OUTCOME_BY_LIMIT, "display")}
    assert {name: (limit.value, limit.unit) for name, limit in told.items()} == {
        "time": (3.5, "s"),
        "cpu": (1200, "s"),
        "memory": (512 * MiB, "bytes"),
        "processes": (512, "count"),
        "disk": (64 * MiB, "bytes"),
        "inodes": (32768, "count"),
        "file_size": (32 * MiB, "bytes"),
        "open_files": (1024, "count"),
        "sockets": (512, "count"),
        "output": (MiB / 2, "bytes"),
        "output_rate": (MiB / 4, "bytes/s"),
        "events": (20000, "count"),
        "display": (MiB / 8, "bytes"),
    }
    assert all(limit.name == name for name, limit in told.items())
    elsewhere: set[LimitName] = {"sessions_per_learner", "runs_per_session", "sessions", "stored"}
    assert set(get_args(LimitName)) == set(told) | elsewhere
    for name in elsewhere:
        with pytest.raises(ValueError, match="is not a limit of a run"):
            reached_limit(name, limits, 1)


def test_every_outcome_but_those_without_a_limit_is_that_of_a_limit() -> None:
    without = {Outcome.ok, Outcome.error, Outcome.interrupted, Outcome.crash, Outcome.lost}
    assert set(Outcome) - without == set(OUTCOME_BY_LIMIT.values())
