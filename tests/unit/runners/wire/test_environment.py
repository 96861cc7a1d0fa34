"""Which variables a supervisor gets from its parent's environment."""

from __future__ import annotations

import pytest

from app.settings import Settings
from runners.config.settings import RunnerSettings
from runners.wire.environment import SETTINGS, runner_environment


def test_every_setting_of_the_runner_is_passed_on_and_none_of_the_web_processes() -> None:
    assert {field.lower() for field in SETTINGS} | {"limits"} == set(RunnerSettings.model_fields)
    web = {f"LOCKSTEP_{field.upper()}": "x" for field in Settings.model_fields}
    assert set(runner_environment(web)) == {"LOCKSTEP_DATA_DIR"}


@pytest.mark.parametrize(
    "name",
    [
        "PATH",
        "HOME",
        "LANG",
        "LC_ALL",
        "TMPDIR",
        "LD_LIBRARY_PATH",
        "PYTHONPATH",
        "CUDA_VISIBLE_DEVICES",
        "NVIDIA_DRIVER_CAPABILITIES",
        "LOCKSTEP_MAX_SESSIONS",
        "lockstep_max_sessions",
        "LOCKSTEP_LIMITS",
        "LOCKSTEP_LIMITS__MEMORY_MB",
    ],
)
def test_what_it_needs_is_passed_on(name: str) -> None:
    assert runner_environment({name: "x"}) == {name: "x"}


@pytest.mark.parametrize(
    "name",
    [
        "LOCKSTEP_DATABASE_URL",
        "lockstep_database_url",
        "LOCKSTEP_DB_PASSWORD",
        "LOCKSTEP_SECRET",
        "PGPASSWORD",
        "JUPYTER_TOKEN",
        "AWS_SECRET_ACCESS_KEY",
        "SSH_AUTH_SOCK",
        "LD_PRELOAD",
        "LOCKSTEP_RUNNER_SOCKET",
    ],
)
def test_a_secret_is_not(name: str) -> None:
    assert runner_environment({name: "x"}) == {}
