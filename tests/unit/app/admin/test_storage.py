"""What the database holds, by kind and by learner, on both databases."""

from __future__ import annotations

import pytest

from app.admin import storage
from app.admin.storage import StoredKind, by_kind, load_storage
from app.db import Database
from app.runs.models import Run
from tests.factories.accounts import store_account
from tests.factories.filled_database import add_runs


def test_tables_are_added_up_by_feature_and_unknown_ones_are_other() -> None:
    sizes = {"runs": 1, "run_events": 2, "comments": 9, "alembic_version": 3, "site_switches": 1}
    assert by_kind(sizes) == [StoredKind("comments", 9), StoredKind("other", 4), StoredKind("runs", 3)]


async def test_a_report_has_the_size_of_every_feature(database: Database) -> None:
    await add_runs(database, 0, 50, events=20)
    async with database.session() as session:
        report = await load_storage(session)

    kinds = {one.kind: one.stored_bytes for one in report.kinds}
    assert {"runs", "comments", "accounts", "progress", "mail", "admin"} <= kinds.keys()
    assert all(size > 0 for size in kinds.values())
    assert kinds["runs"] < report.total_bytes
    assert [one.kind for one in report.kinds] == sorted(kinds, key=lambda kind: -kinds[kind])


async def test_the_learners_who_store_most_come_first_with_their_accounts(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(storage, "MAX_LEARNERS", 2)
    ada = await store_account(database)
    await add_runs(database, 0, 6)
    async with database.writing() as session:
        sizes = [("v", 10), ("v", 20), ("w", 5), (ada.learner_id, 7), ("x", 1), ("x", 1)]
        for number, (learner, size) in enumerate(sizes):
            run = await session.get_one(Run, f"run-{number}")
            run.learner_id, run.stored_bytes = learner, size

    async with database.session() as session:
        learners = (await load_storage(session)).learners
    assert [(one.learner, one.stored_bytes, one.handle) for one in learners] == [
        ("v", 30, None),
        (ada.learner_id, 7, ada.handle),
    ]


async def test_a_large_sqlite_file_is_not_read_for_a_page(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(storage, "_MAX_COUNTED_BYTES", 0)
    async with database.session() as session:
        report = await load_storage(session)
    assert bool(report.kinds) is (database.file() is None)
    assert report.total_bytes > 0
