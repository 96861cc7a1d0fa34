"""The doctor's report and exit status."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from app.cli.doctor_report import DoctorReport, to_json, to_text
from app.health.checks import HealthCheck
from app.settings import is_public_url
from runners.wire.protocol import Capability, Health, LibraryPatch, LibraryPatches, Safeguard

OUTER = Safeguard(name="outer sandbox", in_force=True, detail="bubblewrap", essential=True, means="Install it. " * 20)
CPU = Safeguard(kind="limit", name="CPU share", in_force=False, detail="no cgroup", means="Delegate one.")
MEMORY = Safeguard(
    kind="limit", name="memory", in_force=False, detail="only watched", essential=True, means="Delegate one."
)
WELL = HealthCheck("runner", True, "0 of 40 sessions")


def findings(*safeguards: Safeguard, check: HealthCheck = WELL, refuses: str = "") -> DoctorReport:
    health = Health(status="ready", safeguards=list(safeguards), untrusted_users=bool(refuses), refuses=refuses)
    capability = Capability(
        name="cgroups", good=False, detail="version 1, not writable here", means="Memory is watched."
    )
    return DoctorReport({"data": "/data"}, [check], [capability], health)


@pytest.mark.parametrize(
    ("found", "status", "verdict"),
    [
        (
            findings(OUTER, CPU),
            0,
            "All is well. Every isolation layer and limit that untrusted code needs is in force.",
        ),
        (findings(OUTER.model_copy(update={"in_force": False})), 3, "Missing: outer sandbox."),
        (
            findings(OUTER, check=HealthCheck("runner", False, "away")),
            1,
            "Lockstep does not work in this state. Missing: runner.",
        ),
        (
            findings(OUTER.model_copy(update={"in_force": False}), check=HealthCheck("database", False, "")),
            1,
            "database.",
        ),
    ],
)
def test_the_status_and_the_last_line_say_how_it_is(found: DoctorReport, status: int, verdict: str) -> None:
    assert found.status == status
    assert " ".join(to_text(found)).endswith(verdict)
    assert json.loads(to_json(found))["status"] == status


def test_memory_that_is_only_watched_is_off_and_a_gap() -> None:
    found = findings(OUTER, MEMORY)
    text = " ".join(to_text(found))

    assert found.status == 3
    assert json.loads(to_json(found))["safe"] is False
    assert "  off     memory              only watched" in text
    assert text.endswith(
        "Code from untrusted users is not safe here, and this runner is only for people you trust. Missing: memory."
    )


def test_a_runner_that_refuses_says_so() -> None:
    text = " ".join(to_text(findings(OUTER.model_copy(update={"in_force": False}), refuses="Missing: outer sandbox.")))

    assert "this runner refuses to run it" in text


def test_what_is_off_is_explained_and_what_is_on_is_not() -> None:
    on = "\n".join(to_text(findings(OUTER, CPU)))
    off = "\n".join(to_text(findings(OUTER.model_copy(update={"in_force": False}), CPU)))

    assert "Install it." not in on
    assert "\n  on      outer sandbox" in on
    assert "\n  missing outer sandbox" in off
    assert "Install it." in off
    assert "\n  off     CPU share" in on
    assert "Delegate one." in on
    assert "Memory is watched." in on


def test_it_fits_80_columns_and_has_no_colour() -> None:
    lines = list(to_text(findings(OUTER.model_copy(update={"in_force": False}), CPU)))

    assert max(map(len, lines)) <= 80
    assert "\x1b" not in "".join(lines)


PATCH = LibraryPatch(
    subject="gpu_names",
    when="gpu",
    target="tensorflow.python.framework.device:merge_device",
    changes=True,
    because="each simulated GPU is a logical CPU device",
    since="TensorFlow 2.21",
    test="tests/…::test_it",
    state="found",
)
OTHER = PATCH.model_copy(update={"target": "tensorflow:device"})
GONE = {"state": "moved", "problem": "tensorflow:device: it does not exist."}


def test_patches_are_listed_by_subject_and_one_that_has_moved_is_named_and_is_1() -> None:
    long = PATCH.model_copy(update={"subject": "long", "target": f"library:{'Owner' * 10}.attribute"})
    well = replace(findings(OUTER), patches=LibraryPatches(patches=[PATCH, OTHER, long]))
    moved = replace(well, patches=LibraryPatches(patches=[PATCH, OTHER.model_copy(update=GONE)]))

    assert well.status == 0
    assert "\n  ok      long                gpu: attribute\n" in "\n".join(to_text(well))
    assert "\n  ok      gpu_names           gpu: merge_device, device\n" in "\n".join(to_text(well))
    assert moved.status == 1
    assert "\n  moved   gpu_names" in "\n".join(to_text(moved))
    assert "tensorflow:device: it does not exist." in " ".join(to_text(moved))
    assert "Missing: patches." in " ".join(to_text(moved))
    assert [patch["state"] for patch in json.loads(to_json(moved))["patches"]] == ["found", "moved"]


def test_each_zygote_knows_the_patches_of_the_libraries_it_has_imported() -> None:
    waiting, gone = PATCH.model_copy(update={"state": "not loaded"}), PATCH.model_copy(update=GONE)

    assert LibraryPatches.merged([[waiting], [PATCH, OTHER]]).patches == [PATCH, OTHER]
    assert LibraryPatches.merged([[gone], [PATCH]]).moved == [gone]
    assert LibraryPatches.merged([]).patches == []


def test_without_a_runner_the_machine_is_told_all_the_same() -> None:
    found = DoctorReport({}, [HealthCheck("runner", False, "no socket")], findings().capabilities, None)
    text = "\n".join(to_text(found))

    assert "version 1, not writable here" in text
    assert "Unknown: no sandbox was created." in text
    assert "missing runner              no socket" in text
    assert json.loads(to_json(found))["safe"] is False


def test_a_setting_that_cannot_be_used_is_named_and_is_2() -> None:
    sentence = "LOCKSTEP_LIMITS__MEMORY_MB: must be a whole number from 256 to 1,048,576 (MiB)"
    found = DoctorReport({}, [], [], None, unusable=(sentence,))

    assert found.status == 2
    assert list(to_text(found)) == ["Invalid settings:", sentence]
    assert json.loads(to_json(found))["unusable_settings"] == [sentence]


def test_a_runner_that_was_there_already_keeps_its_settings() -> None:
    there = replace(findings(OUTER), running=Path("/data/run/supervisor.sock"))
    words = "the runner that is already running at /data/run/supervisor.sock. Settings of this shell take effect"

    assert words in " ".join(to_text(there))
    assert "already running" not in " ".join(to_text(findings(OUTER)))
    assert "It has" not in " ".join(to_text(there))
    assert json.loads(to_json(there))["runner_already_running"] is True


def test_settings_of_the_running_runner_that_differ_from_this_shells_are_named() -> None:
    there = replace(findings(OUTER), running=Path("/s"), differing=("LOCKSTEP_IDLE_S=5 (here 1200)",))

    assert "It has LOCKSTEP_IDLE_S=5 (here 1200)." in " ".join(to_text(there))
    assert max(map(len, to_text(there))) <= 80


@pytest.mark.parametrize(
    ("url", "untrusted_users"),
    [
        ("", False),
        ("http://localhost:8000", False),
        ("http://127.0.0.1", False),
        ("http://[::1]:8000", False),
        ("https://learn.example.org", True),
        ("http://192.168.1.5:8000", True),
        ("http://0.0.0.0", True),
    ],
)
def test_a_public_address_tells_of_untrusted_users(url: str, untrusted_users: bool) -> None:
    assert is_public_url(url) == untrusted_users
