"""``lockstep doctor``: checks the machine and which isolation layers and limits are in force, and says what is missing.

The exit status is 0 if all is well, 1 if something that Lockstep needs is missing, 2 for invalid settings, and 3 if it
works but untrusted code would not be safe to run.
"""

from __future__ import annotations

import asyncio
import os
from typing import Annotated

import typer

from app.cli.console import read_settings
from app.cli.doctor_report import DoctorReport, to_json, to_text
from app.cli.shell_settings import ShellSettings, invalid_settings, shell_settings


def doctor(
    wants_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    devices: Annotated[
        bool,
        typer.Option("--devices", help="Check that real GPUs or a TPU work in sessions. Exit status 0 if they do."),
    ] = False,
) -> None:
    """Check machine, isolation, limits, patches, components and operation; or check real devices in sessions.

    Exit status: 0 all is well, 1 not working, 2 invalid settings, 3 not safe for untrusted code.
    """
    if errors := invalid_settings(os.environ):
        _print_and_exit(DoctorReport({}, [], [], None, unusable=tuple(errors)), wants_json)
    settings = read_settings()
    # If somebody else starts the runner, this shell's settings do not matter.
    shell = shell_settings() if settings.runner_socket is None else ShellSettings()

    from app.cli import doctor_checks  # imports a database and an HTTP client, which the errors above do not need

    if devices:
        raise typer.Exit(asyncio.run(doctor_checks.print_device_check(settings, wants_json)))
    _print_and_exit(asyncio.run(doctor_checks.run_checks(settings, shell)), wants_json)


def _print_and_exit(findings: DoctorReport, wants_json: bool) -> None:
    typer.echo(to_json(findings) if wants_json else "\n".join(to_text(findings)))
    raise typer.Exit(findings.status)
