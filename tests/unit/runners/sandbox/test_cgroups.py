"""Groups with files that cannot be read or written; tests/long/hostile covers what the kernel does with others."""

from __future__ import annotations

from pathlib import Path

import pytest
from structlog.testing import capture_logs

from runners.config.settings import Limits
from runners.sandbox.cgroups import CgroupStats, _LeftoverGroups, _V1Group, _V1Groups, _V2Group, _V2Groups

FILES = {
    "memory.events": "oom 9\noom_kill 2\n",
    "pids.events": "max 3\n",
    "memory.current": "4096\n",
    "memory.peak": "8192\n",
    "cpu.stat": "usage_usec 1500000\n",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "group"
    folder.mkdir()
    for name, text in FILES.items():
        (folder / name).write_text(text)
    return folder


def test_a_cgroup_that_disappears_keeps_its_limits_met_and_is_logged_once(folder: Path) -> None:
    group = _V2Group(folder, _LeftoverGroups())
    assert group.facts() == CgroupStats(oom_kills=2, forks_refused=3, peak_bytes=8192, cpu_s=1.5)

    for name in FILES:
        (folder / name).unlink()
    with capture_logs() as logs:
        assert [group.facts(), group.facts()] == [CgroupStats(oom_kills=2, forks_refused=3)] * 2
    assert len(logs) == 1


def test_one_counter_that_cannot_be_read_leaves_the_others(folder: Path) -> None:
    (folder / "cpu.stat").unlink()

    assert _V2Group(folder, _LeftoverGroups()).facts() == CgroupStats(oom_kills=2, forks_refused=3, peak_bytes=8192)


@pytest.mark.parametrize("version", [1, 2])
def test_a_group_whose_limits_cannot_be_set_is_not_left_behind(
    version: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError("read-only")

    groups = _V1Groups({"memory": tmp_path, "pids": tmp_path}) if version == 1 else _V2Groups(tmp_path)
    monkeypatch.setattr(type(groups), "_limit", staticmethod(refuse))

    with pytest.raises(PermissionError):
        groups.create("one", Limits())
    assert not list(tmp_path.iterdir())


def test_a_group_that_was_not_empty_is_removed_by_a_later_sweep(tmp_path: Path) -> None:
    folder, left = tmp_path / "group", _LeftoverGroups()
    folder.mkdir()
    (folder / "process").touch()
    group = _V1Group({"memory": folder}, left)
    assert not group.remove()

    left.sweep()
    assert folder.exists()

    (folder / "process").unlink()
    left.sweep()
    assert not folder.exists()
