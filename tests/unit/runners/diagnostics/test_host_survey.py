"""Surveying the machine that runs the tests."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import pytest

from runners.devices.allocation import HardwareListing
from runners.diagnostics import host_survey
from runners.diagnostics.host_survey import accelerators, confinement
from runners.sandbox.machine_limits import AvailableResources
from runners.wire.protocol import HostSurvey


def test_the_survey_needs_no_settings_and_says_what_to_do_about_each_gap() -> None:
    command = [sys.executable, "-m", "runners.diagnostics.host_survey"]
    environment = os.environ | {"LOCKSTEP_MAX_SESSIONS": "nonsense"}
    said = subprocess.run(command, capture_output=True, check=True, timeout=60, env=environment).stdout
    capabilities = {capability.name: capability for capability in HostSurvey.model_validate_json(said).capabilities}

    assert capabilities["kernel"].good
    assert "tensorflow 2" in capabilities["Python"].detail
    assert {
        "user namespaces",
        "seccomp",
        "Landlock",
        "cgroups",
        "bubblewrap",
        "CPUs",
        "memory",
        "accelerators",
    } <= capabilities.keys()
    assert all(capability.good or capability.means for capability in capabilities.values())


@pytest.mark.parametrize("build", ["tensorflow", "tensorflow-cpu", "tensorflow-tpu", None])
def test_every_build_of_tensorflow_can_run_code(build: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    def version(package: str) -> str:
        if package in (build, "keras"):
            return "2.21.0"
        raise PackageNotFoundError

    monkeypatch.setattr(host_survey, "version", version)

    capability = host_survey.python_packages()

    assert capability.good is (build is not None)
    assert f"{build} 2.21.0" in capability.detail or build is None


def test_the_memory_of_a_container_is_what_its_cgroup_allows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_survey, "available_resources", lambda: AvailableResources(2048, memory_is_limited=True))

    detail = host_survey.memory().detail

    assert detail.startswith("2,048 MiB, the limit of a cgroup; the machine has ")


@pytest.mark.parametrize(
    ("controllers", "detail"),
    [
        (["cpu io memory pids", "cpu memory pids"], "version 2, writable"),
        (["memory pids", "cpuset cpu memory pids"], "version 2, writable"),
        (["memory pids"], "version 2, writable, but without cpu"),
        (["", "memory"], "version 2, writable, but without cpu, memory, pids"),
        (["", "cpu hugetlb"], None),
    ],
    ids=["own", "root", "no cpu", "nothing of its own", "beside version 1"],
)
def test_a_group_of_version_2_needs_every_controller(
    controllers: list[str], detail: str | None, tmp_path: Path
) -> None:
    folders = [tmp_path / str(number) for number in range(len(controllers))]
    for folder, names in zip(folders, controllers, strict=True):
        folder.mkdir()
        (folder / "cgroup.controllers").write_text(f"{names}\n")

    found = host_survey.cgroups_of_version_2(folders)

    assert (found and found.detail) == detail
    assert found is None or found.good is (detail == "version 2, writable")


@pytest.mark.parametrize(
    ("user", "sign", "good"), [(1000, "/.dockerenv", True), (0, "/.dockerenv", False), (1000, "", False)]
)
def test_only_a_user_in_a_container_needs_no_bubblewrap(
    user: int, sign: str, good: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(os, "geteuid", lambda: user)
    monkeypatch.setattr(host_survey, "container_evidence", lambda: sign)

    assert host_survey.bubblewrap().good is good


LISTINGS = Path(__file__).parents[1] / "devices" / "listings"


@pytest.mark.parametrize(
    ("name", "mode", "good", "detail"),
    [
        ("two-small-cards", "auto", True, "sessions get them while they are free"),
        ("two-small-cards", "tpu", False, "sessions that ask for a TPU are refused"),
        (
            "one-a100",
            "simulate",
            True,
            "1 x NVIDIA A100-SXM4-40GB; LOCKSTEP_DEVICES=simulate: sessions use simulated devices",
        ),
        ("laptop-with-an-old-card", "auto", False, "none found; LOCKSTEP_DEVICES=auto: sessions use simulated devices"),
        ("laptop-with-an-old-card", "gpu", False, "sessions that ask for a GPU are refused"),
        ("tpu-v3-8", "tpu", True, "TPU v3-8, a tpu:8; LOCKSTEP_DEVICES=tpu: sessions get them while they are free"),
    ],
)
def test_what_was_found_is_said_with_the_mode_and_what_follows(name: str, mode: str, good: bool, detail: str) -> None:
    capability = accelerators(HardwareListing.from_json((LISTINGS / f"{name}.json").read_text()), mode)

    assert capability.good is good
    assert capability.detail.endswith(detail)
    assert good or capability.means


def test_a_machine_without_any_is_well_as_long_as_nobody_asked_for_real_ones() -> None:
    assert accelerators(HardwareListing(), "auto").good
    assert (
        accelerators(HardwareListing(), "gpu").means
        == "No real device was found; LOCKSTEP_DEVICES=auto simulates instead."
    )


@pytest.mark.parametrize(
    ("label", "option"),
    [
        ("system_u:system_r:container_t:s0:c57,c912\0", "label=disable"),
        ("docker-default (enforce)\n", "apparmor=unconfined"),
        ("unconfined_u:unconfined_r:unconfined_t:s0-s0:c0.c1023\0", ""),
        ("docker-default (complain)\n", ""),
        ("unconfined\n", ""),
        ("", ""),
    ],
)
def test_a_security_module_that_confines_the_runner_is_named_with_what_ends_it(label: str, option: str) -> None:
    sentence = confinement(label)
    assert bool(sentence) == bool(option)
    if option:
        assert f"as {label.strip(chr(0) + chr(10))};" in sentence
        assert f"security_opt {option}" in sentence


def test_what_was_refused_is_explained_by_the_module_that_confines_the_runner(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_survey, "_tried", lambda work: "Permission denied")
    monkeypatch.setattr(host_survey, "_read", lambda file: "system_u:system_r:container_t:s0:c57,c912\0")
    for look in (host_survey._user_namespaces, host_survey._fresh_proc):
        assert "SELinux" in look().means
