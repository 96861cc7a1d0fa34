"""How a run ended, judged from outside."""

from __future__ import annotations

import time
from typing import get_args

import pytest

from runners.outcome import OUTCOMES, Facts, Said, Space, judge, limit_of
from runners.protocol import LimitName, Outcome
from runners.settings import Limits, MiB

LIMITS = Limits(memory_mb=512)
LOW, HIGH = 100 * MiB, 450 * MiB
NO_SPACE = Said("OSError", "[Errno 28] No space left on device")
KEYBOARD = Said("KeyboardInterrupt", "")
HALF_FULL, FULL, NO_INODES = Space(10, 10), Space(0, 10), Space(10, 0)


@pytest.mark.parametrize(
    ("facts", "outcome", "met"),
    [
        (Facts(), "ok", None),
        (Facts(error=Said("ValueError", "no")), "error", None),
        (Facts(error=Said("SystemExit", "0")), "ok", None),
        (Facts(error=Said("SystemExit", "1")), "error", None),
        (Facts(interrupted=True, exit_status=-9), "interrupted", None),
        (Facts(exit_status=0), "crash", None),
        (Facts(exit_status=-11), "crash", None),
        (Facts(exit_status=1, forks_refused=3), "processes", "processes"),
        (Facts(exit_status=-24), "cpu", "cpu"),
        (Facts(exit_status=-25), "disk", "file_size"),
        (Facts(exit_status=-9, oom_kills=1), "memory", "memory"),
        (Facts(error=Said("ValueError", "no"), oom_kills=1), "memory", "memory"),
        (Facts(oom_kills=1), "ok", None),
        (Facts(met="time"), "timeout", "time"),
        (Facts(met="time", error=KEYBOARD), "timeout", "time"),
        (Facts(met="time", exit_status=-9, oom_kills=2), "memory", "memory"),
        (Facts(met="cpu", error=KEYBOARD), "cpu", "cpu"),
        (Facts(met="output", exit_status=-9), "output", "output"),
        (Facts(met="output_rate", exit_status=-9), "output", "output_rate"),
        (Facts(met="events", exit_status=-9), "output", "events"),
        (Facts(met="memory", exit_status=-9), "memory", "memory"),
    ],
)
def test_what_the_machine_did_outweighs_what_the_program_said(facts: Facts, outcome: str, met: str | None) -> None:
    assert judge(facts, LIMITS) == (outcome, met)


@pytest.mark.parametrize(
    ("said", "peak", "outcome"),
    [
        (Said("MemoryError", ""), HIGH, "memory"),
        (Said("MemoryError", ""), LOW, "memory"),  # bytearray(400 GiB): it may be so, and nothing outside can tell
        (Said("MemoryError", ""), None, "memory"),
        (Said("MemoryError", "", raised=True), LOW, "error"),
        (Said("MemoryError", "", raised=True), None, "error"),
        (Said("MemoryError", "", raised=True), HIGH, "memory"),
        (Said("MemoryError", "Unable to allocate 72.8 TiB for an array with shape (1,)"), LOW, "memory"),
        (Said("_ArrayMemoryError", "Unable to allocate 420. MiB for an array with shape (1,)"), LOW, "memory"),
        (Said("_ArrayMemoryError", "Unable to allocate 100. MiB for an array with shape (1,)"), LOW, "error"),
        (Said("_ArrayMemoryError", "Unable to allocate 800 B for an array with shape (100,)"), LOW, "error"),
        (Said("_ArrayMemoryError", "Unable to allocate 800 B for an array with shape (100,)"), None, "memory"),
        (Said("_ArrayMemoryError", "Unable to allocate 1.2.3 GiB"), LOW, "memory"),
        (Said("ResourceExhaustedError", "OOM when allocating tensor with shape[1000000]"), LOW, "memory"),
        (Said("ValueError", "Unable to allocate 72.8 TiB"), LOW, "error"),
    ],
)
def test_a_lack_of_memory_is_believed_unless_a_fact_or_a_raise_speaks_against_it(
    said: Said, peak: int | None, outcome: str
) -> None:
    met = "memory" if outcome == "memory" else None
    assert judge(Facts(error=said, peak_bytes=peak), LIMITS) == (outcome, met)


@pytest.mark.parametrize(
    ("said", "folders", "outcome", "met"),
    [
        (NO_SPACE, (), "disk", "disk"),
        (NO_SPACE, (HALF_FULL, FULL), "disk", "disk"),
        (NO_SPACE, (HALF_FULL, NO_INODES), "disk", "inodes"),
        (NO_SPACE, (HALF_FULL,), "disk", "disk"),  # a temporary file that is gone by now
        (NO_SPACE._replace(raised=True), (), "error", None),
        (Said("OSError", "25000000 requested and 13106556 written"), (FULL,), "disk", "disk"),
        (Said("OSError", "25000000 requested and 13106556 written"), (), "disk", "disk"),
        (Said("OSError", "25000000 requested and 13106556 written"), (HALF_FULL,), "disk", "file_size"),
        (Said("OSError", "Not enough free space to write 20000000 bytes after offset 128"), (FULL,), "disk", "disk"),
        (Said("ResourceExhaustedError", "/tmp/x; No space left on device"), (FULL,), "disk", "disk"),
        (Said("OSError", "Can't write data (… errno = 28, error message = 'No space left …'"), (), "disk", "disk"),
        (Said("OSError", "[Errno 27] File too large"), (), "disk", "file_size"),
        (Said("OutOfRangeError", "/tmp/x; File too large"), (), "disk", "file_size"),
        (Said("OSError", "[Errno 24] Too many open files: 'x'"), (), "files", "open_files"),
        (Said("ResourceExhaustedError", "/tmp/x; Too many open files"), (), "files", "open_files"),
        (Said("ValueError", "[Errno 28]"), (FULL,), "error", None),
        (Said("OSError", "[Errno 5] Input/output error"), (FULL,), "error", None),
    ],
)
def test_of_limits_on_files_the_message_names_one_and_the_folders_tell_which(
    said: Said, folders: tuple[Space, ...], outcome: str, met: str | None
) -> None:
    assert judge(Facts(error=said, folders=folders, peak_bytes=LOW), LIMITS) == (outcome, met)


@pytest.mark.parametrize(
    "said",
    [
        Said("RuntimeError", "can't start new thread"),
        Said("BlockingIOError", "[Errno 11] Resource temporarily unavailable"),
    ],
)
@pytest.mark.parametrize(
    ("refused", "raised", "met"),
    [(1, False, True), (0, False, True), (1, True, True), (0, True, False)],
)
def test_one_process_too_many_is_believed_if_counted_or_not_raised_by_the_learner(
    said: Said, refused: int, raised: bool, met: bool
) -> None:
    verdict = judge(Facts(error=said._replace(raised=raised), forks_refused=refused), LIMITS)
    assert verdict == (("processes", "processes") if met else ("error", None))


@pytest.mark.parametrize("value", ["1" * 20_000, "1 requested and " * 1_250 + "2" * 2_000, "\\[Errno" * 2_500])
def test_a_long_text_is_judged_in_steps_that_grow_with_its_length_only(value: str) -> None:
    """The text is the program's, and all sessions wait meanwhile: to try each digit as the first is 10**8 steps."""
    began = time.process_time()
    assert judge(Facts(error=Said("OSError", value)), LIMITS).outcome == "error"
    short_s = time.process_time() - began
    began = time.process_time()
    judge(Facts(error=Said("OSError", value * 50)), LIMITS)
    assert time.process_time() - began < max(short_s, 0.01) * 500, "fifty times the text took 500 times as long"


def test_every_limit_of_a_run_has_an_outcome_of_its_kind_a_value_and_a_unit() -> None:
    limits = Limits(memory_mb=512, disk_mb=64, file_mb=32, output_mb=0.5, output_mb_per_s=0.25, display_mb=0.125)
    told = {name: limit_of(name, limits, 3.5) for name in (*OUTCOMES, "display")}
    assert {name: (limit.value, limit.unit) for name, limit in told.items()} == {
        "time": (3.5, "s"),
        "cpu": (1200, "s"),
        "memory": (512 * MiB, "bytes"),
        "processes": (512, "count"),
        "disk": (64 * MiB, "bytes"),
        "inodes": (32768, "count"),
        "file_size": (32 * MiB, "bytes"),
        "open_files": (1024, "count"),
        "output": (MiB / 2, "bytes"),
        "output_rate": (MiB / 4, "bytes/s"),
        "events": (20000, "count"),
        "display": (MiB / 8, "bytes"),
    }
    assert all(limit.name == name for name, limit in told.items())
    elsewhere: set[LimitName] = {"sessions_per_learner", "runs_per_session", "sessions", "stored"}
    assert set(get_args(LimitName)) == set(told) | elsewhere
    for name in elsewhere:
        with pytest.raises(ValueError, match="no limit of a run"):
            limit_of(name, limits, 1)


def test_every_outcome_but_those_without_a_limit_is_that_of_a_limit() -> None:
    without = {Outcome.ok, Outcome.error, Outcome.interrupted, Outcome.crash, Outcome.lost}
    assert set(Outcome) - without == set(OUTCOMES.values())
