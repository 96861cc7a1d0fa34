"""Reading what the operating system reports: this very process, and lines as in proc(5)."""

from __future__ import annotations

import os

import pytest

from runners.diagnostics import inspection
from runners.diagnostics.inspection import (
    InspectedProcess,
    InspectionFailed,
    MountEntry,
    inspect_process,
    inspect_sandbox,
    parse_mount,
)


def test_a_process_is_read() -> None:
    seen = inspect_process(os.getpid())

    assert seen.status["Uid"].split()[1] == str(os.geteuid())
    assert seen.status["PPid"] == str(os.getppid())
    assert seen.namespaces["pid"].startswith("pid:[")
    assert "lo" in seen.interfaces
    assert seen.rlimits["Max open files"].isdigit()
    assert any(mount.point == "/proc" and mount.kind == "proc" for mount in seen.mounts)
    assert not seen.hidden


def test_of_a_process_that_is_gone_nothing_is_known() -> None:
    assert inspect_process(2**22 + 1) == InspectedProcess()


async def test_a_sandbox_that_is_gone_is_no_sandbox_without_walls(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inspection, "_PATIENCE_S", 0.05)

    with pytest.raises(InspectionFailed):
        await inspect_sandbox(2**22 + 1)


def test_a_mount_with_and_without_optional_fields() -> None:
    line = "36 35 98:0 /mnt1 /home rw,noatime {}- tmpfs none rw,size=524288k,nr_inodes=4096"
    expected = MountEntry(
        point="/home",
        root="/mnt1",
        kind="tmpfs",
        options=frozenset({"rw", "noatime"}),
        size="size=524288k,nr_inodes=4096",
    )

    assert parse_mount(line.format("")) == parse_mount(line.format("shared:1 master:2 ")) == expected
