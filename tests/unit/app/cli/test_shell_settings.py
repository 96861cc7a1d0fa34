"""A shell's settings for a runner, and how they differ from those of a running one."""

from __future__ import annotations

import pytest

from app.cli.shell_settings import has_runner_settings, settings_differences, shell_settings


@pytest.mark.parametrize(
    ("environment", "anything"),
    [
        ({}, False),
        ({"PATH": "/bin", "HOME": "/root"}, False),
        ({"LOCKSTEP_DATA_DIR": "/data", "LOCKSTEP_LOG_FORMAT": "json"}, False),
        ({"LOCKSTEP_DEVICES": "gpu"}, True),
        ({"lockstep_limits__memory_mb": "512"}, True),
    ],
)
def test_only_what_a_runner_reads_counts(environment: dict[str, str], anything: bool) -> None:
    assert has_runner_settings(environment) is anything


def test_differences_are_shown_with_both_values_unless_one_side_does_not_know_them() -> None:
    there = {"LOCKSTEP_DEVICES": "gpu", "LOCKSTEP_IDLE_S": "5", "LOCKSTEP_NEW": "1", "LOCKSTEP_UNSAFE_RUNNER": ""}
    here = {"LOCKSTEP_DEVICES": "auto", "LOCKSTEP_IDLE_S": "5", "LOCKSTEP_OLD": "1", "LOCKSTEP_UNSAFE_RUNNER": "x"}

    assert settings_differences(there, here) == (
        "LOCKSTEP_DEVICES=gpu (here auto)",
        "LOCKSTEP_UNSAFE_RUNNER=empty (here x)",
    )
    assert settings_differences(there, {}) == ()


def test_they_are_read_as_a_runner_reads_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCKSTEP_WARM_KERAS", "2, 3")
    assert shell_settings().values["LOCKSTEP_WARM_KERAS"] == "2,3"
    monkeypatch.setenv("LOCKSTEP_MAX_SESSIONS", "abc")
    assert shell_settings().values == {}
    assert shell_settings().refused == ("LOCKSTEP_MAX_SESSIONS: must be a whole number from 0 to 10,000 (sessions)",)
