"""Checks this shell's settings for a runner without starting one: they may be invalid, or differ from a running one's.

The application cannot read these settings itself; ``python -m runners.config.settings`` does.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field

from app.cli.console import USAGE_ERROR
from app.setting_names import find_unknown_variables
from app.settings import InvalidSettings, Settings
from runners.wire.environment import runner_environment

_TIMEOUT_S = 30
_SHARED_SETTING = "LOCKSTEP_DATA_DIR"
"""A setting that the web application also reads: where the runner is."""


@dataclass(frozen=True, slots=True)
class ShellSettings:
    """The settings of a runner that would be started from here."""

    values: Mapping[str, str] = field(default_factory=dict)
    """Every variable and its value; empty if one is invalid, or if the runner is not installed."""
    refused: tuple[str, ...] = ()
    """Each invalid one, as ``VARIABLE: what it must be``."""


def has_runner_settings(environment: Mapping[str, str]) -> bool:
    """Whether the environment sets anything for a runner. Pure."""
    said = {name.upper() for name in runner_environment(environment)}
    return any(name.startswith("LOCKSTEP_") for name in said - {_SHARED_SETTING})


def shell_settings() -> ShellSettings:
    """Read the settings. Takes a quarter of a second."""
    command = [sys.executable, "-m", "runners.config.settings"]
    ours = runner_environment(os.environ)
    try:
        said = subprocess.run(command, capture_output=True, text=True, timeout=_TIMEOUT_S, env=ours)
    except (OSError, subprocess.SubprocessError):
        return ShellSettings()
    if said.returncode == USAGE_ERROR:
        return ShellSettings(refused=tuple(said.stdout.splitlines()))
    return ShellSettings(values=json.loads(said.stdout) if said.returncode == 0 else {})


def invalid_settings(environment: Mapping[str, str]) -> list[str]:
    """A sentence about each invalid or misspelled setting of the web application, and of a runner that would be started
    from here."""
    errors: list[str] = []
    try:
        Settings.read()
    except InvalidSettings as e:
        errors += str(e).splitlines()
    if not environment.get("LOCKSTEP_RUNNER_SOCKET") and has_runner_settings(environment):
        errors += shell_settings().refused
    return errors


def unknown_variables(environment: Mapping[str, str]) -> list[str]:
    """A sentence about each variable that begins as settings do and is not similar enough to one to be an error."""
    unknown = [one for one in find_unknown_variables(environment, Settings.model_fields) if not one.meant]
    return [str(one) for one in unknown]


def settings_differences(there: Mapping[str, str], here: Mapping[str, str]) -> tuple[str, ...]:
    """The settings of a runner that differ from this shell's, each with both values. Pure."""
    return tuple(
        f"{name}={value or 'empty'} (here {here[name] or 'empty'})"
        for name, value in there.items()
        if name in here and here[name] != value
    )
