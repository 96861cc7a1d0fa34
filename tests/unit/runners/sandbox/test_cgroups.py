"""Groups with files that cannot be read or written; tests/long/hostile covers what the kernel does with others."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from runners.config.settings import Limits
from runners.sandbox import cgroups
from runners.sandbox.cgroups import (
    CgroupStats,
    _LeftoverGroups,
    _step_aside,
    _V1Group,
    _V1Groups,
    _V2Group,
    _V2Groups,
    folder_in,
    most_in_sockets,
    mount_points,
)

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


def test_a_hierarchy_of_version_2_without_controllers_is_left_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "cgroup.controllers").write_text("cpu hugetlb\n")
    (tmp_path / "cgroup.procs").write_text(f"{os.getpid()}\n")

    with pytest.raises(OSError, match="has no memory or pids"):
        _V2Groups._base_in(tmp_path, may_step_aside=True, divided=True)

    assert sorted(path.name for path in tmp_path.iterdir()) == ["cgroup.controllers", "cgroup.procs"]


def test_only_our_own_processes_leave_a_group_of_version_2_that_is_to_be_divided(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    (tmp_path / "supervisor").mkdir()
    moved = tmp_path / "supervisor" / "cgroup.procs"
    web = subprocess.Popen(["sleep", "60"])
    try:
        (tmp_path / "cgroup.procs").write_text(f"{os.getppid()}\n{os.getpid()}\n{web.pid}\n")
        _step_aside(tmp_path)
        assert moved.read_text() == str(web.pid)

        moved.unlink()
        for other in {0, 1} - {os.getppid()}:  # one of another PID namespace, and init
            (tmp_path / "cgroup.procs").write_text(f"{os.getpid()}\n{other}\n")
            with pytest.raises(OSError, match="contains other processes"):
                _step_aside(tmp_path)
        assert not moved.exists()
    finally:
        web.kill()
        web.wait()


def test_all_processes_leave_a_group_that_belongs_to_our_unprivileged_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "cgroup.procs").write_text(f"{os.getpid()}\n1\n")  # such as a shell that runs `make serve`
    user = os.geteuid() or 1000
    os.chown(tmp_path, user, -1)
    monkeypatch.setattr(os, "geteuid", lambda: user + 1)
    with pytest.raises(OSError, match="contains other processes"):
        _step_aside(tmp_path)

    monkeypatch.setattr(os, "geteuid", lambda: user)
    _step_aside(tmp_path)

    assert (tmp_path / "supervisor" / "cgroup.procs").read_text() == "1"


def test_processes_that_start_while_a_group_is_emptied_leave_it_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "cgroup.procs").write_text(f"{os.getpid()}\n")

    def start_another(_: int) -> bool:
        (tmp_path / "cgroup.procs").write_text(f"{os.getpid()}\n{os.getppid()}\n")
        return True

    monkeypatch.setattr(cgroups, "_is_ours", start_another)
    _step_aside(tmp_path)

    assert (tmp_path / "supervisor" / "cgroup.procs").read_text() == str(os.getppid())


def test_the_next_supervisor_divides_the_same_group_of_version_2(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "cgroup.controllers").write_text("cpu memory pids\n")
    leaf = tmp_path / "supervisor"
    leaf.mkdir()
    (leaf / "cgroup.procs").write_text("1\n")  # such as a shell
    monkeypatch.setattr(cgroups, "own_folders", lambda _: [leaf, tmp_path / "top"])

    assert _V2Groups._make_base(divided=False) == tmp_path / f"lockstep-{os.getpid()}"
    assert not (leaf / "cgroup.subtree_control").exists()


def test_only_a_peak_that_can_be_reset_is_kept_open(folder: Path) -> None:
    peak = folder / "memory.peak"
    peak.chmod(0o444)  # as before Linux 6.12
    old = _V2Group(folder, _LeftoverGroups())
    assert old._peak is None
    old.reset_peak()
    assert old.facts().peak_bytes == 4096  # what it has now: the peak is from before
    assert peak.read_text() == "8192\n"

    peak.chmod(0o644)
    new = _V2Group(folder, _LeftoverGroups())
    assert new.facts().peak_bytes == 8192
    new.reset_peak()
    assert peak.read_text() == "reset"
    new.remove()

    peak.unlink()  # as before Linux 5.19
    assert _V2Group(folder, _LeftoverGroups()).facts().peak_bytes == 4096


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


@pytest.mark.parametrize(
    ("mounts", "controller", "path", "folder"),
    [
        ("30 20 0:26 / /sys/fs/cgroup rw - cgroup2 none rw", "", "/user.slice/1", "user.slice/1"),
        ("30 20 0:26 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup none rw,cpu,cpuacct", "cpuacct", "/", "cpu,cpuacct"),
        (
            "30 20 0:26 /docker/1 /sys/fs/cgroup/memory ro - cgroup none rw,memory",
            "memory",
            "/docker/1/lockstep",
            "memory/lockstep",
        ),
        (
            "30 20 0:26 / /sys/fs/cgroup/memory rw - cgroup none rw,memory\n"
            "31 30 0:26 /docker/1 /sys/fs/cgroup/memory ro - cgroup none rw,memory",
            "memory",
            "/docker/1",
            "memory",
        ),
        ("30 20 0:26 /docker/1 /sys/fs/cgroup ro - cgroup2 none rw", "", "/2", None),
        ("30 20 0:26 / /sys/fs/cgroup ro - cgroup2 none rw", "", "/../2", None),
        ("30 20 0:26 / /sys/fs/cgroup rw - cgroup2 none rw,memory_recursiveprot", "memory", "/1", None),
    ],
    ids=["version 2", "two in one", "container", "hidden mount", "beside", "outside", "other version"],
)
def test_a_group_is_found_below_what_is_mounted(mounts: str, controller: str, path: str, folder: str | None) -> None:
    assert folder_in(mount_points(mounts, controller), path) == (folder and Path("/sys/fs/cgroup", folder))


def test_sessions_leave_the_machine_most_of_what_tcp_may_have(tmp_path: Path) -> None:
    tcp_mem = tmp_path / "tcp_mem"
    tcp_mem.write_text("100\t200\t4000\n")

    assert most_in_sockets(tcp_mem) == 1000 * os.sysconf("SC_PAGE_SIZE")
    assert 0 < most_in_sockets(tmp_path / "hidden") < os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 24
