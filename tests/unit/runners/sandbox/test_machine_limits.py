"""The limits around the runner, from files like those of cgroups."""

from __future__ import annotations

import os
import resource
from pathlib import Path

import pytest

from runners.config.settings import MiB
from runners.sandbox.machine_limits import AvailableResources, available_resources


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
    monkeypatch.setattr("runners.sandbox.machine_limits.os.geteuid", lambda: 1000)
    assert available_resources(tmp_path, {}).processes == 4096

    monkeypatch.setattr("runners.sandbox.machine_limits.os.geteuid", lambda: 0)
    assert available_resources(tmp_path, {}).processes is None
