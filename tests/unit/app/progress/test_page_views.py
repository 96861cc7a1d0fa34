"""View models of the pages of progress."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from app.lessons.catalog import Catalog
from app.progress.history import HistoryPage
from app.progress.models import LedgerEntry
from app.progress.page_views import history_rows
from tests.factories.exercises import write_exercise_lesson

NOON = datetime(2026, 11, 23, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("language", "subject", "title"),
    [
        ("en", "course/one#mean/It is the mean", "It is the mean · The lesson"),
        ("ko", "course/one#mean/It is the mean", "평균입니다 · 수업"),
        ("ko", "course/one#mean/It was removed", "It was removed · 수업"),
        ("ko", "course/one#gone/It is the mean", "It is the mean · 수업"),
    ],
)
def test_the_history_names_a_check_in_the_readers_language(
    tmp_path: Path, language: str, subject: str, title: str
) -> None:
    write_exercise_lesson(tmp_path)
    catalog = Catalog(tmp_path, quiet=True)
    catalog.reload()
    entry = LedgerEntry(learner_id="v", kind="check", subject=subject, xp=5, occurred_at=NOON)

    [row] = history_rows(HistoryPage([entry], 1, False), catalog, language, (), ZoneInfo("UTC"))

    assert row.title == title
