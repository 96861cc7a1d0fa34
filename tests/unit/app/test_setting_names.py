"""Variables that look like settings: misspelled ones are refused by name, and those of other programs are not."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from app.cli.operating_checks import judge_variables
from app.cli.shell_settings import unknown_variables
from app.setting_names import COMPOSE_VARIABLES, find_unknown_variables
from app.settings import InvalidSettings, Settings
from runners.config.settings import Limits, RunnerSettings

ROOT = Path(__file__).parents[3]


def sentences(*names: str) -> list[str]:
    return [str(one) for one in find_unknown_variables(dict.fromkeys(names, "x"), Settings.model_fields)]


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("LOCKSTEP_DATABSE_URL", "LOCKSTEP_DATABASE_URL"),
        ("lockstep_databse_url", "LOCKSTEP_DATABASE_URL"),
        ("LOCKSTEP_DATABSE_URL_FILE", "LOCKSTEP_DATABASE_URL_FILE"),
        ("LOCKSTEP_DATABASE__URL", "LOCKSTEP_DATABASE_URL"),
        ("LOCKSTEP_PUBLICURL", "LOCKSTEP_PUBLIC_URL"),
        ("LOCKSTEP_MAX_SESSION", "LOCKSTEP_MAX_SESSIONS"),
        ("LOCKSTEP_LIMITS_MEMORY_MB", "LOCKSTEP_LIMITS__MEMORY_MB"),
        ("LOCKSTEP_LIMIT__MEMORY_MB", "LOCKSTEP_LIMITS__MEMORY_MB"),
        ("LOCKSTEP_OIDC_GOOGLE_CLIENT_ID", "LOCKSTEP_OIDC__GOOGLE__CLIENT_ID"),
        ("LOCKSTEP_OIDC_CAMPUS__CLIENT_SECRET_FILE", "LOCKSTEP_OIDC__CAMPUS__CLIENT_SECRET_FILE"),
    ],
)
def test_a_misspelled_setting_is_refused_and_the_meant_one_is_named(
    name: str, meant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, "hunter2")
    with pytest.raises(InvalidSettings) as refusal:
        Settings.read()

    assert str(refusal.value) == f"{name} is not a setting. Did you mean {meant}?"


def test_misspelled_names_are_listed_with_all_other_mistakes(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("LOCKSTEP_DATABSE_URL", "LOCKSTEP_SING_UP", "LOCKSTEP_LOG_FORMAT"):
        monkeypatch.setenv(name, "x")
    with pytest.raises(InvalidSettings) as refusal:
        Settings.read()

    first_words = [line.partition(" ")[0] for line in str(refusal.value).splitlines()]
    assert first_words == ["LOCKSTEP_DATABSE_URL", "LOCKSTEP_SING_UP", "LOCKSTEP_LOG_FORMAT"]


def test_a_setting_that_is_no_secret_cannot_come_from_a_file() -> None:
    assert sentences("LOCKSTEP_PUBLIC_URL_FILE") == [
        "LOCKSTEP_PUBLIC_URL_FILE is not a setting. Only a secret can come from a file: set LOCKSTEP_PUBLIC_URL."
    ]


@pytest.mark.parametrize("service", ["LOCKSTEP", "LOCKSTEP_DATABASE", "LOCKSTEP_RUNNER", "LOCKSTEP_WEB"])
def test_variables_of_kubernetes_are_pointed_out_and_keep_nothing_from_starting(
    service: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ends = ("SERVICE_HOST", "SERVICE_PORT", "PORT", "PORT_8000_TCP", "PORT_8000_TCP_ADDR", "PORT_8000_TCP_PORT")
    environment = {f"{service}_{end}": "tcp://10.0.0.1" for end in ends}
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    Settings.read()
    RunnerSettings.read()

    assert {line.partition(" ")[0] for line in unknown_variables(environment)} == environment.keys() - {"LOCKSTEP_PORT"}
    check = judge_variables(environment)
    assert not check.ok
    assert f"{service}_SERVICE_HOST is not a setting." in check.detail


def test_a_name_that_may_be_a_setting_is_pointed_out_with_it() -> None:
    assert unknown_variables(dict.fromkeys(("LOCKSTEP_DATABASE", "LOCKSTEP_SERVICE_HOST", "PATH"), "x")) == [
        "LOCKSTEP_DATABASE is not a setting. Did you mean LOCKSTEP_DATABASE_URL?",
        "LOCKSTEP_SERVICE_HOST is not a setting.",
    ]


def test_every_setting_is_known_in_any_case_and_with_its_file() -> None:
    web, runner = set(Settings.model_fields), set(RunnerSettings.model_fields)
    limits = {f"limits__{name}" for name in Limits.model_fields}
    names = {f"LOCKSTEP_{name.upper()}" for name in web | runner | limits}
    names |= {name.lower() for name in names} | {"LOCKSTEP_DATABASE_URL_FILE", "LOCKSTEP_OIDC__X__CLIENT_SECRET_FILE"}

    assert sentences(*names) == []


def test_the_runner_takes_no_setting_of_the_web_application_or_compose_for_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """An operator may give one file of variables to all containers."""
    for name in {*Settings.model_fields, *COMPOSE_VARIABLES} - {"data_dir"}:
        monkeypatch.setenv(f"LOCKSTEP_{name.upper()}", "x")
    assert RunnerSettings.read() == RunnerSettings()


def test_every_variable_that_our_own_files_set_is_known() -> None:
    """In Compose, images, workflows, scripts and the pages on operation."""
    places = ["docker-compose.yml", "docker", ".ci", ".github", ".devcontainer", "Makefile", "docs", "README.md"]
    named = subprocess.run(
        ["git", "grep", "-hoE", "\\bLOCKSTEP_[A-Z0-9_]*[A-Z0-9]\\b", "--", *places],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    examples = {"LOCKSTEP_DATABSE_URL", "LOCKSTEP_SERVICE_HOST"}  # in docs/operate/settings.md
    assert len(set(named)) > 50
    assert sentences(*(set(named) - examples)) == []

    compose = (ROOT / "docker-compose.yml").read_text()
    substituted = set(re.findall(r"\$\{LOCKSTEP_([A-Z_]+)", compose))
    settings = {name.upper() for name in {*Settings.model_fields, *RunnerSettings.model_fields}}
    assert substituted - settings == COMPOSE_VARIABLES
