"""Discovering accelerators: with a recorded NVML, and on the machine of the tests."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from runners.devices import discovery as module
from runners.devices.allocation import GpuCard, HardwareListing, MigInstance
from runners.devices.discovery import discover

MiB = 1024 * 1024


class NotSupported(Exception):
    """NVML's error for a card without MIG."""


class NotFound(Exception):
    """NVML's error for an instance that does not exist."""


def nvml(*, cut_up: bool) -> Any:
    """One card as NVML describes it; instances are handles, too."""

    def mig_mode(_: object) -> tuple[int, int]:
        if not cut_up:
            raise NotSupported
        return 1, 1

    def instance(_: object, number: int) -> str:
        if number > 0:
            raise NotFound
        return "part"

    return SimpleNamespace(
        NVML_DEVICE_MIG_ENABLE=1,
        NVMLError_NotSupported=NotSupported,
        NVMLError_NotFound=NotFound,
        NVMLError_InvalidArgument=ValueError,
        nvmlDeviceGetMinorNumber=lambda _: 3,
        nvmlDeviceGetMigMode=mig_mode,
        nvmlDeviceGetUUID=lambda handle: f"{'MIG' if handle == 'part' else 'GPU'}-1".encode(),
        nvmlDeviceGetName=lambda handle: f"NVIDIA H100{' 1g.10gb' if handle == 'part' else ''}",
        nvmlDeviceGetMemoryInfo=lambda handle: SimpleNamespace(total=(10 if handle == "part" else 80) * 1024 * MiB),
        nvmlDeviceGetCudaComputeCapability=lambda _: [9, 0],
        nvmlDeviceGetMaxMigDeviceCount=lambda _: 7,
        nvmlDeviceGetMigDeviceHandleByIndex=instance,
        nvmlDeviceGetGpuInstanceId=lambda _: 9,
        nvmlDeviceGetComputeInstanceId=lambda _: 0,
    )


def test_a_card_is_what_nvml_says_of_it() -> None:
    assert module._card(nvml(cut_up=False), "card") == GpuCard("GPU-1", "NVIDIA H100", 3, 81920, (9, 0))


def test_an_instance_has_the_nodes_that_the_driver_names(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def cap(name: str) -> int:
        asked.append(name)
        return len(asked)

    monkeypatch.setattr(module, "_cap", cap)

    card = module._card(nvml(cut_up=True), "card")

    assert card.instances == (MigInstance("MIG-1", "NVIDIA H100 1g.10gb", 10240, (1, 2)),)
    assert asked == ["gpu3/mig/gi9/access", "gpu3/mig/gi9/ci0/access"]


@pytest.mark.parametrize(
    "text",
    ["ACCELERATOR_TYPE: 'v3-8'\nNODE_ID: 'x'\n", 'ACCELERATOR_TYPE="v3-8"\n', "A=1\nACCELERATOR_TYPE=v3-8\n"],
)
def test_a_tpu_vm_is_recognized_by_the_file_of_its_agent(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "tpu-env"
    file.write_text(text)
    monkeypatch.delenv("TPU_ACCELERATOR_TYPE", raising=False)
    monkeypatch.setattr(module, "_TPU_FILES", (str(tmp_path / "none"), str(file)))

    assert module._tpu() == "v3-8"


def test_libtpu_is_pythons_package_or_the_images_or_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package, of_the_image = tmp_path / "libtpu" / "libtpu.so", tmp_path / "libtpu.so"
    monkeypatch.setattr(module, "_LIBTPU", (str(of_the_image),))

    def nowhere(_: str) -> None:
        raise PackageNotFoundError

    monkeypatch.setattr(module, "distribution", nowhere)
    assert module._tpu_library() == ""
    of_the_image.touch()
    assert module._tpu_library() == str(of_the_image)
    monkeypatch.setattr(module, "distribution", lambda _: SimpleNamespace(locate_file=lambda name: tmp_path / name))
    assert module._tpu_library() == str(of_the_image)
    package.parent.mkdir()
    package.touch()
    assert module._tpu_library() == str(package)


def test_a_node_is_closed_that_others_may_not_read_and_write(monkeypatch: pytest.MonkeyPatch) -> None:
    assert module._closed(("null", "tty")) == ()
    monkeypatch.setattr(Path, "stat", lambda _: SimpleNamespace(st_mode=0o20660))
    assert module._closed(("accel0",)) == ("accel0",)


def test_without_a_node_no_process_is_started(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_nodes", tuple)
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: pytest.fail("it was"))

    assert discover() == HardwareListing()


@pytest.mark.parametrize(
    ("program", "words"),
    [
        ("raise SystemExit('no driver')", "ended with status 1: no driver"),
        ("import time; time.sleep(60)", "within 0.3 s"),
        ("print('{}')", "failed"),
    ],
)
def test_a_look_that_fails_is_a_sentence(program: str, words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    run = subprocess.run
    monkeypatch.setattr(module, "_nodes", lambda: ("nvidia0",))
    monkeypatch.setattr(module, "_PATIENCE_S", 30.0 if words != "within 0.3 s" else 0.3)
    monkeypatch.setattr(subprocess, "run", lambda _, **more: run([sys.executable, "-S", "-c", program], **more))

    found = discover()

    assert words in found.trouble
    assert found.nodes == ("nvidia0",)


def test_the_look_itself_is_a_program_that_needs_nothing_to_be_there() -> None:
    command = [sys.executable, "-m", "runners.devices.discovery"]
    said = subprocess.run(command, capture_output=True, check=True, text=True, timeout=60).stdout

    assert isinstance(HardwareListing.from_json(said), HardwareListing)
