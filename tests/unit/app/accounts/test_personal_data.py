"""The export of an account: all of its data, however much, and nothing of another."""

from __future__ import annotations

import json
import tracemalloc
from pathlib import Path

from sqlalchemy import insert

from app.accounts.models import Account
from app.accounts.personal_data import export_personal_data
from app.db import Database, now, sortable_id
from app.main import FEATURES
from app.progress.models import LedgerEntry
from tests.factories.accounts import store_account
from tests.factories.comments import make_comment
from tests.factories.databases import mainly_on

MANY, TEXT = 3_000, "x" * 2_000
MIB = 1024 * 1024


async def write(db: Database, account: Account, count: int, word: str) -> None:
    """This many awards, and as many long comments."""
    awards = [
        {"learner_id": account.learner_id, "kind": "cell", "subject": f"{word}#{number}", "xp": 5, "occurred_at": now()}
        for number in range(count)
    ]
    async with db.writing() as session:
        await session.execute(insert(LedgerEntry), awards)
        for number in range(count):
            comment = make_comment(account, number)
            comment.id, comment.source = sortable_id(), f"{word} {number} {TEXT}"
            session.add(comment)


@mainly_on("sqlite")
async def test_much_is_taken_along_with_little_in_memory_and_nothing_of_another(
    database: Database, tmp_path: Path
) -> None:
    mine, theirs = await store_account(database), await store_account(database)
    await write(database, mine, MANY, "mine")
    await write(database, theirs, 100, "theirs")

    exporters = {name: exporter for feature in FEATURES for name, exporter in feature.exporters.items()}
    with (tmp_path / "taken.json").open("wb") as taken:
        tracemalloc.start()
        async for piece in export_personal_data(database, mine, exporters, tmp_path):
            taken.write(piece)
        _now, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()

    text = (tmp_path / "taken.json").read_text()
    document = json.loads(text)
    assert len(document["progress"]) == MANY
    assert len(document["comments"]) == MANY
    assert "theirs" not in text
    assert len(text) > 5 * MIB
    assert peak < 3 * MIB, f"{peak / MIB:.1f} MiB at once"
    assert names(tmp_path) <= {"taken.json", "database"}, "a file is left behind"


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}
