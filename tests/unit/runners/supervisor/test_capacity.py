"""How many sessions a node holds if its operator does not set it."""

from __future__ import annotations

import os
import resource
from pathlib import Path
from typing import Any

import pytest

from runners.config.settings import Limits, MiB, RunnerSettings
from runners.supervisor.capacity import AvailableResources, available_resources, session_capacity


def seats(memory_mb: int, processes: int | None = None, **settings: Any) -> int:
    return session_capacity(RunnerSettings(**settings), AvailableResources(memory_mb, processes)).count


def test_seats_follow_memory() -> None:
    assert [seats(gib * 1024) for gib in (4, 8, 16, 32)] == [11, 27, 59, 123]


def test_a_node_of_larger_sessions_has_fewer_and_of_smaller_ones_few_more() -> None:
    counts = {}
    for memory_mb in (8192, 2048, 256):
        settings = RunnerSettings(limits=Limits(memory_mb=memory_mb))
        counts[memory_mb] = session_capacity(settings, AvailableResources(32_768)).count

    assert counts == {8192: 30, 2048: 123, 256: 164}


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


def write(folder: Path, **files: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name.replace("__", ".")).write_text(f"{text}\n")


@pytest.fixture(autouse=True)
def boundless_user(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (resource.RLIM_INFINITY, resource.RLIM_INFINITY))


def test_of_version_2_the_lowest_limit_above_the_runner_counts(tmp_path: Path) -> None:
    write(tmp_path / "a/b", memory__max="max", pids__max="9000")
    write(tmp_path / "a", memory__max=str(512 * MiB), pids__max="max")

    assert available_resources(tmp_path, {"": "/a/b"}) == AvailableResources(512, 9000, memory_is_limited=True)


def test_of_version_1_a_container_shows_its_group_as_the_root(tmp_path: Path) -> None:
    write(tmp_path / "memory", memory__limit_in_bytes=str(300 * MiB))
    write(tmp_path / "pids", pids__max="8192")

    found = available_resources(tmp_path, {"memory": "/docker/1", "pids": "/docker/1"})

    assert found == AvailableResources(300, 8192, memory_is_limited=True)


def test_without_a_limit_three_quarters_of_the_machine_count(tmp_path: Path) -> None:
    write(tmp_path / "memory/x", memory__limit_in_bytes="9223372036854771712")
    total_mb = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // MiB

    found = available_resources(tmp_path, {"memory": "/x"})

    assert found.processes is None
    assert not found.memory_is_limited
    assert abs(found.memory_mb - total_mb * 3 // 4) <= 1


def test_a_plain_users_own_limit_counts_for_all_its_sessions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (4096, 4096))
    monkeypatch.setattr("runners.supervisor.capacity.os.geteuid", lambda: 1000)
    assert available_resources(tmp_path, {}).processes == 4096

    monkeypatch.setattr("runners.supervisor.capacity.os.geteuid", lambda: 0)
    assert available_resources(tmp_path, {}).processes is None
