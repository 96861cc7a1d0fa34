"""How many sessions a node holds if its operator does not set it."""

from __future__ import annotations

from typing import Any

import pytest

from runners.config.settings import Limits, RunnerSettings
from runners.sandbox.machine_limits import AvailableResources
from runners.supervisor.capacity import session_capacity


def seats(memory_mb: int, processes: int | None = None, **settings: Any) -> int:
    return session_capacity(RunnerSettings(**settings), AvailableResources(memory_mb, processes)).count


def test_seats_follow_memory() -> None:
    assert [seats(gib * 1024) for gib in (4, 8, 16, 32)] == [11, 27, 59, 123]


def test_a_node_of_larger_sessions_has_fewer_and_of_smaller_ones_few_more() -> None:
    counts = {}
    for memory_mb in (8192, 3072, 256):
        settings = RunnerSettings(limits=Limits(memory_mb=memory_mb))
        counts[memory_mb] = session_capacity(settings, AvailableResources(32_768)).count

    assert counts == {8192: 46, 3072: 123, 256: 164}


def test_there_are_a_few_on_the_smallest_machine_and_an_end_on_the_largest() -> None:
    assert seats(1024) == 2
    assert seats(4_000_000) == 200


def test_there_are_only_as_many_as_processes_allow() -> None:
    assert seats(8192, 8192) == 12
    assert seats(8192, 100) == 1
    assert session_capacity(RunnerSettings(), AvailableResources(8192, 8192)).why == "as many as 8,192 processes allow"


def test_what_the_operator_says_holds_but_too_many_for_the_processes_is_said() -> None:
    said = session_capacity(RunnerSettings(max_sessions=40), AvailableResources(8192, 8192))

    assert (said.count, said.why) == (40, "LOCKSTEP_MAX_SESSIONS")
    assert not said.safeguard(3).in_force
    assert "LOCKSTEP_RUNNER_PIDS=22528" in said.safeguard(3).means
    assert session_capacity(RunnerSettings(max_sessions=40), AvailableResources(1024, 22_528)).safeguard(3).in_force


def test_doctor_shows_the_seats_and_where_they_come_from() -> None:
    limited = session_capacity(RunnerSettings(), AvailableResources(8192, memory_is_limited=True)).safeguard(3)
    whole = session_capacity(RunnerSettings(), AvailableResources(8192)).safeguard(3)

    assert limited.detail == "27 at once, 3 for a learner; as many as 8,192 MiB allow, the limit of its cgroup"
    assert whole.detail.endswith("three quarters of the machine's memory")


@pytest.mark.parametrize("empty", ["", "0"])
def test_nothing_and_0_mean_automatic(monkeypatch: pytest.MonkeyPatch, empty: str) -> None:
    monkeypatch.setenv("LOCKSTEP_MAX_SESSIONS", empty)

    assert RunnerSettings().max_sessions == 0
