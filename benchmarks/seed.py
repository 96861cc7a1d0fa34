"""Fills an empty database with made-up learners, progress and comments, to try Lockstep under load.

    LOCKSTEP_DATA_DIR=… python benchmarks/seed.py --users 1000 --comments 10000 [--lessons 800] [--lessons-to FOLDER]

The database is the one that the settings name. It is for trying things out, never for production: there is nobody
behind these learners, and none of them can sign in.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from collections import Counter, defaultdict
from itertools import islice
from pathlib import Path
from typing import cast

import seed_data
from seed_data import Made, Plan, Row
from sqlalchemy import Table, func, insert, select, text

from app import migrate
from app.accounts.models import Account
from app.db import Base, Database, now
from app.lessons.catalog import Catalog
from app.lessons.model import CellTag
from app.settings import Settings

_BATCH = 10_000
"""Rows of one transaction."""
_UNUSED = {CellTag.remove_cell, CellTag.skip_execution, CellTag.raises_exception}


class NotEmpty(Exception):
    """The database has accounts already."""


def plan_for(lessons_dir: Path, *, users: int, comments: int, lessons: int, seed: int = 1) -> Plan:
    """What to make: about the lessons there are, and about made-up ones where they are fewer than ``lessons``."""
    catalog = Catalog(lessons_dir, quiet=True)
    catalog.reload()
    there = {}
    for course in catalog.courses("en"):
        for lesson in (entry.lesson for entry in catalog.outline(course.slug, "en").lessons if entry.lesson):
            there[lesson.key] = tuple(cell.name for cell in lesson.cells if not cell.tags & _UNUSED)
    known = there | seed_data.made_up_lessons(max(0, lessons - len(there)))
    return Plan(seed, users, comments, dict(islice(known.items(), lessons)), now())


def write_lessons(folder: Path, plan: Plan) -> None:
    """Write the plan's made-up lessons, as a course."""
    for path, words in seed_data.files(sum(lesson.startswith(seed_data.COURSE) for lesson in plan.lessons)):
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(words, encoding="utf-8")


async def fill(url: str, plan: Plan) -> Counter[type[Base]]:
    """Store all of it, in transactions of one batch each; returns how many rows of each table.

    Raises:
        NotEmpty: there are accounts; nothing was stored.
    """
    db = Database(url)
    made: Counter[type[Base]] = Counter()
    try:
        await migrate.upgrade(db)
        async with db.session() as session:
            if await session.scalar(select(func.count()).select_from(Account)):
                raise NotEmpty("This database has accounts already: nothing was made.")
        for rows in (seed_data.accounts(plan), seed_data.progress(plan), seed_data.comments(plan)):
            while batch := list(islice(rows, _BATCH)):
                made.update(table for table, _row in batch)
                await _store(db, batch)
        if db.engine.dialect.name == "postgresql":  # which would look by itself, but not at once
            async with db.writing() as session:
                await session.execute(text("ANALYZE"))
    finally:
        await db.close()
    return made


async def _store(db: Database, batch: list[Made]) -> None:
    """Store a batch in one transaction: a row comes behind those of its own table that it points to."""
    by_table: defaultdict[type[Base], list[Row]] = defaultdict(list)
    for table, row in batch:
        by_table[table].append(row)
    async with db.writing() as session:
        for table, rows in by_table.items():
            await session.execute(insert(cast(Table, table.__table__)), rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--users", type=int, default=1_000)
    parser.add_argument("--comments", type=int, default=10_000)
    parser.add_argument(
        "--lessons", type=int, default=800, help="lessons it is about: those there are, and made-up ones"
    )
    parser.add_argument("--lessons-to", type=Path, help="write the made-up lessons to this folder too, as a course")
    parser.add_argument("--seed", type=int, default=1, help="the same number makes the same")
    chosen = parser.parse_args()
    settings = Settings.read()
    os.umask(0o077)  # a database made here is as private as one that `serve` makes
    wanted = {"users": chosen.users, "comments": chosen.comments, "lessons": chosen.lessons, "seed": chosen.seed}
    plan = plan_for(settings.lessons_dir, **wanted)
    if chosen.lessons_to:
        write_lessons(chosen.lessons_to, plan)
    try:
        made = asyncio.run(fill(settings.database, plan))
    except NotEmpty as e:
        sys.exit(str(e))
    print(", ".join(f"{count:,} rows of {table.__tablename__}" for table, count in made.items()))


if __name__ == "__main__":
    main()
