"""``lockstep doctor``: what is there, what is missing, and which walls around learner code are in force."""

from __future__ import annotations

import asyncio
import platform

import typer

from app.cli.runner_at_hand import NoRunner, runner_at_hand, settled
from app.cli.speech import read_settings
from app.db import Database
from app.health.checks import Check, check_database, check_lessons, check_runner, in_time
from app.lessons.catalog import Catalog
from app.settings import Settings
from runners.client import RunnerError
from runners.protocol import Wall


def doctor() -> None:
    """Look at settings, database, lessons and runner. The exit status is 1 if something essential is missing."""
    settings = read_settings()
    _tell_settings(settings)
    checks, walls = asyncio.run(_look(settings))
    for check in checks:
        _line("ok" if check.ok else "missing", check.name, check.detail)
    for wall in walls:
        _line("on" if wall.in_force else "off", wall.name, wall.detail)
    if not all(check.ok for check in checks):
        raise typer.Exit(1)


async def _look(settings: Settings) -> tuple[list[Check], list[Wall]]:
    catalog = Catalog(settings.lessons_dir)
    catalog.reload()
    runner, walls = await _ask_runner(settings)
    return [await _ask_database(settings), check_lessons(catalog), runner], walls


async def _ask_database(settings: Settings) -> Check:
    db = Database(settings.database)
    try:
        return await in_time("database", check_database(db))
    finally:
        await db.close()


async def _ask_runner(settings: Settings) -> tuple[Check, list[Wall]]:
    try:
        async with runner_at_hand(settings) as client:
            health = await settled(client)
            return await check_runner(client), health.walls
    except (NoRunner, RunnerError) as e:
        return Check("runner", False, str(e)), []


def _tell_settings(settings: Settings) -> None:
    typer.echo(f"Lockstep on Python {platform.python_version()}, {platform.system()} {platform.release()}")
    _line("", "data", str(settings.data_dir))
    _line("", "database", settings.shown_database)
    _line("", "lessons", str(settings.lessons_dir))
    _line("", "socket", str(settings.socket))
    typer.echo()


def _line(mark: str, name: str, detail: str) -> None:
    typer.echo(f"{mark:8} {name:14} {detail}".rstrip())
