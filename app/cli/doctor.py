"""``lockstep doctor``: what the machine offers, which walls and limits are in force, and what is missing.

The exit status is 0 if all is well, 1 if something is missing without which Lockstep does not work, 2 for settings it
cannot use, and 3 if it works but strangers' code would not be safe to run.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

import typer
from pydantic import ValidationError

from app.cli.proof import prove
from app.cli.runner_at_hand import NoRunner, RefusesItsSettings, runner_at_hand, settled
from app.cli.speech import USAGE, read_settings
from app.db import Database
from app.health.checks import Check, check_database, check_lessons, check_runner, in_time
from app.lessons.catalog import Catalog
from app.settings import Settings
from runners.client import RunnerError
from runners.environment import runner_environment
from runners.protocol import POSSIBLE, Health, Machine, Offer, Wall

NOT_WORKING, NOT_SAFE = 1, 3
_WIDTH = 80
_INDENT = 30
_SURVEY_S = 30
_RUNNING = (
    "Limits are those of the runner already running at {}; "
    "settings of this shell take effect when it is next started from here."
)


@dataclass(frozen=True, slots=True)
class Findings:
    """All that was found out."""

    settings: dict[str, str]
    checks: list[Check]
    offers: list[Offer]
    health: Health | None
    running: Path | None = None
    """The socket of the runner that was asked, if it was running already."""
    unusable: tuple[str, ...] = ()
    """Settings that a runner of this shell refuses, each as ``VARIABLE: what it must be``."""

    @property
    def walls(self) -> list[Wall]:
        """Walls and limits; none where no sandbox was made."""
        return self.health.walls if self.health else []

    @property
    def missing(self) -> list[str]:
        """Parts without which Lockstep does not work."""
        return [check.name for check in self.checks if not check.ok]

    @property
    def gaps(self) -> list[str]:
        """Walls without which strangers' code is not safe to run."""
        return [wall.name for wall in self.walls if wall.essential and not wall.in_force]

    @property
    def status(self) -> int:
        """The exit status."""
        if self.unusable:
            return USAGE
        if self.missing:
            return NOT_WORKING
        return NOT_SAFE if self.gaps else 0


def doctor(
    wants_json: Annotated[bool, typer.Option("--json", help="For programs: one JSON object.")] = False,
    devices: Annotated[bool, typer.Option("--devices", help="Prove real GPUs or a TPU: 0 if it holds.")] = False,
) -> None:
    """Look at machine, walls, limits, database and lessons; or prove that real devices work in sessions.

    Exit status: 0 well, 1 not working, 2 a setting cannot be used, 3 not safe for strangers' code.
    """
    settings = read_settings()
    if devices:
        raise typer.Exit(asyncio.run(_prove(settings, wants_json)))
    findings = asyncio.run(_look(settings))
    typer.echo(as_json(findings) if wants_json else "\n".join(as_text(findings)))
    raise typer.Exit(findings.status)


async def _prove(settings: Settings, wants_json: bool) -> int:
    try:
        async with runner_at_hand(settings) as client:
            proof = await prove(client)
    except RefusesItsSettings as e:
        typer.echo("\n".join((str(e), *_unusable())), err=True)
        return USAGE
    except (NoRunner, RunnerError) as e:
        typer.echo(str(e), err=True)
        return NOT_WORKING
    typer.echo(json.dumps(asdict(proof) | {"holds": proof.holds}, indent=2) if wants_json else "\n".join(proof.lines()))
    return 0 if proof.holds else NOT_WORKING


# --- looking ----------------------------------------------------------------------------------------------------


async def _look(settings: Settings) -> Findings:
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
    return Findings(shown, checks, (asked.machine or _survey()).offers, asked.health, asked.running, asked.unusable)


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
    unusable: tuple[str, ...] = ()


async def _ask_runner(settings: Settings) -> _Asked:
    try:
        async with runner_at_hand(settings) as client:
            health = await settled(client)
            check = await check_runner(client)
            running = client.socket if client.socket == settings.socket else None
            with suppress(RunnerError):
                return _Asked(check, health, await client.machine(), running)
            return _Asked(check, health, None, running)
    except RefusesItsSettings as e:
        return _Asked(Check("runner", False, str(e)), unusable=_unusable())
    except (NoRunner, RunnerError) as e:
        return _Asked(Check("runner", False, str(e)))


def _unusable() -> tuple[str, ...]:
    """The settings that a runner started here refuses; the application cannot read them itself."""
    command = [sys.executable, "-m", "runners.settings"]
    ours = runner_environment(os.environ)
    try:
        said = subprocess.run(command, capture_output=True, text=True, timeout=_SURVEY_S, env=ours)
    except (OSError, subprocess.SubprocessError):
        return ()
    return tuple(said.stdout.splitlines()) if said.returncode == USAGE else ()


def _survey() -> Machine:
    """What the machine offers where no runner says so; nothing if that part of Lockstep is not installed here."""
    command = [sys.executable, "-m", "runners.machine"]
    try:
        said = subprocess.run(command, capture_output=True, check=True, timeout=_SURVEY_S).stdout
        return Machine.model_validate_json(said)
    except (OSError, subprocess.SubprocessError, ValidationError):
        return Machine(offers=[])


# --- telling ----------------------------------------------------------------------------------------------------


def as_json(findings: Findings) -> str:
    """Everything as one JSON object."""
    health = findings.health
    told = {
        "status": findings.status,
        "safe": bool(health and health.safe),
        "strangers": bool(health and health.strangers),
        "refuses": health.refuses if health else "",
        "settings": findings.settings,
        "unusable_settings": findings.unusable,
        "runner_already_running": findings.running is not None,
        "checks": [asdict(check) for check in findings.checks],
        "machine": [offer.model_dump() for offer in findings.offers],
        "walls": [wall.model_dump() for wall in findings.walls],
    }
    return json.dumps(told, indent=2)


def as_text(findings: Findings) -> Iterator[str]:
    """Everything as lines of at most 80 characters, but for long paths."""
    yield "This installation"
    for name, value in findings.settings.items():
        yield from _row("", name, value)
    yield from ("", "The machine")
    for offer in findings.offers:
        yield from _row("ok" if offer.good else "no", offer.name, offer.detail, "" if offer.good else offer.means)
    if not findings.offers:
        yield "  It could not be looked at: this part of Lockstep is not installed here."
    for kind, title in (("wall", "Walls around learners' code"), ("limit", "Limits on learners' code")):
        yield from ("", title)
        for wall in (wall for wall in findings.walls if wall.kind == kind):
            mark = "on" if wall.in_force else "missing" if wall.essential else "off"
            yield from _row(mark, wall.name, wall.detail, "" if wall.in_force else wall.means)
        if not findings.walls:
            yield "  Not known: no sandbox was made."
    if findings.running is not None:
        yield from ("", *textwrap.wrap(_RUNNING.format(findings.running), _WIDTH, break_long_words=False))
    yield from ("", "The parts")
    for check in findings.checks:
        yield from _row("ok" if check.ok else "missing", check.name, check.detail)
    yield ""
    if findings.unusable:
        yield from ("A setting cannot be used:", *findings.unusable)
    else:
        yield from textwrap.wrap(_verdict(findings), _WIDTH)


def _verdict(findings: Findings) -> str:
    if findings.missing:
        return f"Lockstep does not work like this. Missing: {', '.join(findings.missing)}."
    if findings.gaps:
        refused = "refuses to run it" if findings.health and findings.health.refuses else "is for people you trust"
        return (
            f"Strangers' code would not be safe here, and this runner {refused}. Missing: {', '.join(findings.gaps)}."
        )
    return "All is well. Every wall that strangers' code needs is in force."


def _row(mark: str, name: str, detail: str, means: str = "") -> Iterator[str]:
    """A line of three columns; what is too long goes on below the third."""
    room = {"width": _WIDTH - _INDENT, "break_long_words": False, "break_on_hyphens": False}
    lines = [*textwrap.wrap(detail, **room), *textwrap.wrap(means, **room)] or [""]  # type: ignore[arg-type]
    yield f"  {mark:<8}{name:<{_INDENT - 10}}{lines[0]}".rstrip()
    yield from (" " * _INDENT + line for line in lines[1:])
