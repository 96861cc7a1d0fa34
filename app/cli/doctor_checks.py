"""The checks of ``lockstep doctor``: the machine, the database, the lessons, and a runner, running or started."""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

import typer
from pydantic import ValidationError

from app.cli.connect_runner import NoRunnerAvailable, connect_runner, wait_until_started
from app.cli.database_check import check_configured_database
from app.cli.device_check import check_devices
from app.cli.doctor_report import NOT_WORKING, DoctorReport
from app.cli.operating_checks import check_operation
from app.cli.shell_settings import ShellSettings, settings_differences
from app.health.checks import HealthCheck, check_lessons, check_runner
from app.lessons.catalog import Catalog
from app.settings import Settings
from app.version import described_version
from runners.wire.client import RunnerError
from runners.wire.protocol import POSSIBLE_TOPOLOGIES, Health, HostSurvey, LibraryPatches

_SURVEY_TIMEOUT_S = 30


async def print_device_check(settings: Settings, wants_json: bool) -> int:
    """Print whether real devices work in sessions; return the exit status."""
    try:
        async with connect_runner(settings) as client:
            result = await check_devices(client)
    except (NoRunnerAvailable, RunnerError) as e:
        typer.echo(str(e), err=True)
        return NOT_WORKING
    typer.echo(
        json.dumps(asdict(result) | {"passed": result.passed}, indent=2) if wants_json else "\n".join(result.to_text())
    )
    return 0 if result.passed else NOT_WORKING


async def run_checks(settings: Settings, shell: ShellSettings) -> DoctorReport:
    """Check every part. A runner that is already running is compared with the settings in ``shell``."""
    catalog = Catalog(settings.lessons_dir)
    catalog.reload()
    asked = await _check_runner(settings)
    shown = {
        "version": described_version(),
        "data": str(settings.data_dir),
        "database": settings.shown_database,
        "lessons": str(settings.lessons_dir),
        "socket": str(settings.socket),
        "machines": POSSIBLE_TOPOLOGIES,
    }
    checks = [await check_configured_database(settings), check_lessons(catalog), asked.check]
    there = asked.health.settings if asked.health and asked.running else {}
    machine = asked.machine or _survey_host()
    return DoctorReport(
        shown,
        checks,
        machine.capabilities,
        asked.health,
        asked.running,
        differing=settings_differences(there, shell.values),
        patches=asked.patches,
        operation=tuple(await check_operation(settings, asked.health)),
    )


@dataclass(frozen=True, slots=True)
class _RunnerResult:
    """The answers of a runner, or why there is none."""

    check: HealthCheck
    health: Health | None = None
    running: Path | None = None
    machine: HostSurvey | None = None
    patches: LibraryPatches = LibraryPatches()  # noqa: RUF009 - it never changes


async def _check_runner(settings: Settings) -> _RunnerResult:
    try:
        async with connect_runner(settings) as client:
            health = await wait_until_started(client)
            check = await check_runner(client)
            running = client.socket if client.socket == settings.socket else None
            with suppress(RunnerError):
                return _RunnerResult(check, health, running, await client.machine(), await client.patches())
            return _RunnerResult(check, health, running)
    except (NoRunnerAvailable, RunnerError) as e:
        return _RunnerResult(HealthCheck("runner", False, str(e)))


def _survey_host() -> HostSurvey:
    """Survey the machine if no runner does; empty if that part of Lockstep is not installed here."""
    command = [sys.executable, "-m", "runners.diagnostics.host_survey"]
    try:
        said = subprocess.run(command, capture_output=True, check=True, timeout=_SURVEY_TIMEOUT_S).stdout
        return HostSurvey.model_validate_json(said)
    except (OSError, subprocess.SubprocessError, ValidationError):
        return HostSurvey(capabilities=[])
