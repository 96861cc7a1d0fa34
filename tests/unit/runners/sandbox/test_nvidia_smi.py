"""``nvidia-smi`` with simulated GPUs."""

from __future__ import annotations

from pathlib import Path

import pytest

from runners.sandbox.nvidia_smi import SessionResources, respond, used_mib

MACHINE = SessionResources(gpus=2, memory_mib=2048, used_mib=300)


def test_the_table_names_each_device_and_says_that_nothing_of_it_is_real() -> None:
    said = respond([], MACHINE)
    lines = said.out.splitlines()

    assert said.status == 0
    assert "simulated by Lockstep: there is no NVIDIA driver here, no CUDA" in said.out
    assert [line for line in lines if "Lockstep simulated GPU" in line] == [lines[5], lines[6]]
    assert "300 MiB of 2048 MiB in use" in said.out
    assert {len(line) for line in lines} == {78}


def test_the_list_has_a_line_for_each() -> None:
    assert respond(["-L"], MACHINE).out == (
        "GPU 0: Lockstep simulated GPU (UUID: GPU-simulated-0)\nGPU 1: Lockstep simulated GPU (UUID: GPU-simulated-1)\n"
    )


def test_memory_that_cannot_be_read_is_not_made_up() -> None:
    assert "not known of 2048 MiB" in respond([], SessionResources(gpus=1, memory_mib=2048)).out


@pytest.mark.parametrize("arguments", [[], ["-L"]])
def test_without_gpus_none_are_found(arguments: list[str]) -> None:
    assert respond(arguments, SessionResources(gpus=0, memory_mib=2048)) == ("No devices were found\n", "", 6)


@pytest.mark.parametrize("arguments", [["--reset"], ["-L", "1"], ["--query-gpu=name", "--format=csv"]])
def test_what_it_does_not_know_it_says(arguments: list[str]) -> None:
    said = respond(arguments, MACHINE)
    assert said.status == 2
    assert "or with -L for a list" in said.err


def test_the_memory_in_use_is_added_up_over_the_processes_that_can_be_read(tmp_path: Path) -> None:
    for number, kib in (("1", None), ("7", 2048), ("9", 1024)):
        folder = tmp_path / number
        folder.mkdir()
        if kib:
            (folder / "smaps_rollup").write_text(f"0-f ---p 0 00:00 0 [rollup]\nRss: 9999 kB\nPss: {kib} kB\n")
    (tmp_path / "meminfo").write_text("")

    assert used_mib(tmp_path) == 3
    assert used_mib(tmp_path / "1") is None
