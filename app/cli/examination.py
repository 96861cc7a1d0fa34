"""What ``lockstep doctor`` looks at: the machine, the database, the lessons, and a runner, there already or started."""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

import typer
from pydantic import ValidationError

from app.cli.findings import NOT_WORKING, Findings
from app.cli.proof import prove
from app.cli.runner_at_hand import NoRunner, runner_at_hand, settled
from app.cli.shell_settings import ShellSettings, differing
from app.db import Database
from app.health.checks import Check, check_database, check_lessons, check_runner, in_time
from app.lessons.catalog import Catalog
from app.settings import Settings
from runners.client import RunnerError
from runners.protocol import POSSIBLE, Health, Machine

_SURVEY_S = 30


async def prove_devices(settings: Settings, wants_json: bool) -> int:
    """Print whether real devices work in sessions; return the exit status."""
    try:
        async with runner_at_hand(settings) as client:
            proof = await prove(client)
    except (NoRunner, RunnerError) as e:
        typer.echo(str(e), err=True)
        return NOT_WORKING
    typer.echo(json.dumps(asdict(proof) | {"holds": proof.holds}, indent=2) if wants_json else "\n".join(proof.lines()))
    return 0 if proof.holds else NOT_WORKING


async def look(settings: Settings, shell: ShellSettings) -> Findings:
    """Ask every part how it is. ``shell`` is what a runner that runs already is compared with."""
    catalog = Catalog(settings.lessons_dir)
    catalog.reload()
    asked = await _ask_runner(settings)
    shown = {
        "data": str(settings.data_dir),
        "database": settings.shown_database,
        "lessons": str(settings.lessons_dir),
        "socket": str(settings.socket),
        "machines": POSSIBLE,
    }
    checks = [await _ask_database(settings), check_lessons(catalog), asked.check]
    there = asked.health.settings if asked.health and asked.running else {}
    machine = asked.machine or _survey()
    return Findings(
        shown, checks, machine.offers, asked.health, asked.running, differing=differing(there, shell.values)
    )


async def _ask_database(settings: Settings) -> Check:
    db = Database(settings.database)
    if (file := db.file()) is not None and not file.exists():
        return Check("database", True, "none yet: 'lockstep serve' makes it")
    try:
        return await in_time("database", check_database(db))
    finally:
        await db.close()


@dataclass(frozen=True, slots=True)
class _Asked:
    """What a runner said, or why there is none."""

    check: Check
    health: Health | None = None
    machine: Machine | None = None
    running: Path | None = None


async def _ask_runner(settings: Settings) -> _Asked:
    try:
        async with runner_at_hand(settings) as client:
            health = await settled(client)
            check = await check_runner(client)
            running = client.socket if client.socket == settings.socket else None
            with suppress(RunnerError):
                return _Asked(check, health, await client.machine(), running)
            return _Asked(check, health, None, running)
    except (NoRunner, RunnerError) as e:
        return _Asked(Check("runner", False, str(e)))


def _survey() -> Machine:
    """What the machine offers where no runner says so; nothing if that part of Lockstep is not installed here."""
    command = [sys.executable, "-m", "runners.machine"]
    try:
        said = subprocess.run(command, capture_output=True, check=True, timeout=_SURVEY_S).stdout
        return Machine.model_validate_json(said)
    except (OSError, subprocess.SubprocessError, ValidationError):
        return Machine(offers=[])
