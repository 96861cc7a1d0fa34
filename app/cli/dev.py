"""``lockstep dev``: what those need who work on Lockstep itself."""

from __future__ import annotations

import asyncio
import os
import time
from collections import Counter, defaultdict
from itertools import islice
from pathlib import Path
from typing import Annotated, cast

import typer
from sqlalchemy import Table, func, insert, select, text
from sqlalchemy.exc import SQLAlchemyError

from app.accounts.models import Account
from app.cli import made_up
from app.cli.db import no_database, upgrade_now
from app.cli.made_up import Made, Plan, Row
from app.cli.speech import USAGE, give_up, read_settings, say
from app.comments.models import Comment, Place
from app.db import Base, Database, now
from app.lessons.catalog import Catalog
from app.lessons.model import Tag
from app.progress.models import Entry, LessonProgress

_BATCH = 10_000
"""Rows of one transaction."""
_MOST = 10_000_000
_COUNTED = text(
    "INSERT INTO comment_places (lesson, cell, shown) VALUES (:lesson, :cell, :shown) "
    "ON CONFLICT (lesson, cell) DO UPDATE SET shown = comment_places.shown + excluded.shown"
)
_UNUSED = {Tag.remove_cell, Tag.skip_execution, Tag.raises_exception}

app = typer.Typer(no_args_is_help=True, help="For work on Lockstep itself; nothing for a database that people use.")


@app.callback()
def _about() -> None:
    """For work on Lockstep itself; nothing for a database that people use."""


class _Refused(Exception):
    """Why nothing was made."""


@app.command()
def seed(
    users: Annotated[int, typer.Option(min=1, max=_MOST, help="Learners with progress.")] = 1_000,
    comments: Annotated[int, typer.Option(min=0, max=_MOST, help="Comments of theirs.")] = 10_000,
    lessons: Annotated[
        int, typer.Option(min=1, max=5_000, help="Lessons it is about: those there are, the rest made up.")
    ] = 800,
    lessons_to: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Write the made-up lessons there too, as a course.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, max=10**9, help="The same number makes the same.")] = 1,
    force: Annotated[bool, typer.Option("--force", help="Even where there are accounts.")] = False,
) -> None:
    """Fill the database with made-up learners, progress and comments, to try it under load."""
    settings = read_settings()
    catalog = Catalog(settings.lessons_dir, quiet=True)
    catalog.reload()
    there = _cells(catalog)
    missing = max(0, lessons - len(there))
    known = dict(islice((there | made_up.made_up_lessons(missing)).items(), lessons))
    plan = Plan(seed, users, comments, known, now())
    written = 0
    if lessons_to is not None:
        try:
            written = _write(lessons_to, missing)
        except OSError as e:
            give_up(f"The lessons cannot be written: {e}.", USAGE)
    os.umask(0o077)  # a database made here is as private as one that `serve` makes
    upgrade_now(settings)
    begun = time.perf_counter()
    try:
        made = asyncio.run(_fill(settings.database, plan, force=force))
    except _Refused as e:
        give_up(str(e))
    except (SQLAlchemyError, OSError) as e:
        no_database(e)
    say(
        f"Made {made[Account]:,} learners, {made[LessonProgress]:,} lessons begun, {made[Entry]:,} entries of the "
        f"ledger and {made[Comment]:,} comments about {len(known):,} lessons in {time.perf_counter() - begun:.0f} s."
    )
    if written:
        say(f"{written:,} made-up lessons are in {lessons_to}.")
    say("This is for trying things out, never for production: nobody is behind these learners, and none can sign in.")


def _cells(catalog: Catalog) -> dict[str, tuple[str, ...]]:
    """The lessons there are, and their cells that can be run."""
    found = {}
    for course in catalog.courses("en"):
        for lesson in (entry.lesson for entry in catalog.outline(course.slug, "en").lessons if entry.lesson):
            if course.slug != made_up.COURSE:
                found[lesson.key] = tuple(cell.name for cell in lesson.cells if not cell.tags & _UNUSED)
    return found


def _write(folder: Path, lessons: int) -> int:
    """Write the course of made-up lessons; returns how many. What is there already stays."""
    if lessons and (folder / made_up.COURSE).exists():
        give_up(f"{folder / made_up.COURSE} is there already: name another folder.", USAGE)
    for path, words in made_up.files(lessons) if lessons else ():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(words, encoding="utf-8")
    return lessons


async def _fill(url: str, plan: Plan, *, force: bool) -> Counter[type[Base]]:
    """Store all of it, in transactions of one batch each; returns how many rows of each table."""
    db = Database(url)
    made: Counter[type[Base]] = Counter()
    try:
        await _must_be_free(db, plan, force=force)
        parts = (
            ("Learners", made_up.accounts(plan), Account, plan.users),
            ("Progress", made_up.progress(plan), LessonProgress, 0),
            ("Comments", made_up.comments(plan), Comment, plan.comments),
        )
        for name, rows, counted, goal in parts:
            while batch := list(islice(rows, _BATCH)):
                before = made[counted]
                made.update(table for table, _row in batch)
                await _store(db, batch)
                if made[counted] > before:
                    say(f"{name}: {made[counted]:,}" + (f" of {goal:,}" if goal else " lessons begun"))
        if db.engine.dialect.name == "postgresql":  # which would look by itself, but not at once
            async with db.writing() as session:
                await session.execute(text("ANALYZE"))
    finally:
        await db.close()
    return made


async def _must_be_free(db: Database, plan: Plan, *, force: bool) -> None:
    async with db.session() as session:
        accounts = await session.scalar(select(func.count()).select_from(Account)) or 0
        again = await session.get(Account, plan.account(0)) is not None
    if accounts and not force:
        raise _Refused(f"This database has accounts already ({accounts:,}): nothing was made. --force adds to it.")
    if again:
        raise _Refused("This database has what this seed makes: choose another with --seed.")


async def _store(db: Database, batch: list[Made]) -> None:
    """Store a batch in one transaction: a row comes behind those of its own table that it points to."""
    by_table: defaultdict[type[Base], list[Row]] = defaultdict(list)
    for table, row in batch:
        by_table[table].append(row)
    async with db.writing() as session:
        for table, rows in by_table.items():
            await session.execute(_COUNTED if table is Place else insert(cast(Table, table.__table__)), rows)
