"""How a run ended, judged from outside."""

from __future__ import annotations

import pytest

from runners.outcome import Facts, judge, met_limit
from runners.protocol import Outcome
from runners.settings import Limits, MiB

ERROR = ("ValueError", "no")


@pytest.mark.parametrize(
    ("facts", "outcome"),
    [
        (Facts(), Outcome.ok),
        (Facts(error=ERROR), Outcome.error),
        (Facts(error=("SystemExit", "0")), Outcome.ok),
        (Facts(error=("SystemExit", "1")), Outcome.error),
        (Facts(error=("MemoryError", "")), Outcome.memory),
        (Facts(error=("_ArrayMemoryError", "Unable to allocate")), Outcome.memory),
        (Facts(error=("ResourceExhaustedError", "OOM when allocating tensor")), Outcome.memory),
        (Facts(error=("OSError", "[Errno 28] No space left on device")), Outcome.disk),
        (Facts(error=("OSError", "[Errno 27] File too large")), Outcome.disk),
        (Facts(error=("ValueError", "[Errno 28]")), Outcome.error),
        (Facts(error=("RuntimeError", "can't start new thread")), Outcome.processes),
        (Facts(error=("BlockingIOError", "[Errno 11] Resource temporarily unavailable")), Outcome.processes),
        (Facts(error=("BlockingIOError", "[Errno 11]"), forks_refused=1), Outcome.processes),
        (Facts(exit_status=0), Outcome.crash),
        (Facts(exit_status=-11), Outcome.crash),
        (Facts(exit_status=1, forks_refused=3), Outcome.processes),
        (Facts(exit_status=-9, oom_kills=1), Outcome.memory),
        (Facts(error=ERROR, oom_kills=1), Outcome.memory),
        (Facts(oom_kills=1), Outcome.ok),
        (Facts(stopped_for=Outcome.timeout), Outcome.timeout),
        (Facts(stopped_for=Outcome.timeout, error=("KeyboardInterrupt", "")), Outcome.timeout),
        (Facts(stopped_for=Outcome.output, exit_status=-9), Outcome.output),
        (Facts(stopped_for=Outcome.interrupted, exit_status=-9), Outcome.interrupted),
        (Facts(stopped_for=Outcome.timeout, exit_status=-9, oom_kills=2), Outcome.memory),
    ],
)
def test_what_the_machine_did_outweighs_what_the_program_said(facts: Facts, outcome: Outcome) -> None:
    assert judge(facts) == outcome


@pytest.mark.parametrize("outcome", list(Outcome))
def test_only_a_limit_has_a_limit_and_it_says_how_much(outcome: Outcome) -> None:
    limit = met_limit(outcome, Limits(memory_mb=512, output_mb=0.5, disk_mb=64, processes=128), 3.5)
    expected = {
        Outcome.timeout: ("time", 3.5, "s"),
        Outcome.memory: ("memory", 512 * MiB, "bytes"),
        Outcome.output: ("output", MiB / 2, "bytes"),
        Outcome.processes: ("processes", 128, "count"),
        Outcome.disk: ("disk", 64 * MiB, "bytes"),
    }
    assert (limit and (limit.name, limit.value, limit.unit)) == expected.get(outcome)
