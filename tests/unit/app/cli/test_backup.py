"""How ``lockstep backup`` describes a backup."""

from __future__ import annotations

import pytest

from app.backup.service import BackupSummary
from app.cli.backup import describe_backup
from app.lessons.added_courses import AddedCourse


@pytest.mark.parametrize(("secrets", "words"), [(1, "1 secret and 1 file of"), (2, "2 secrets and 1 file of")])
def test_one_of_a_kind_is_no_plural(secrets: int, words: str) -> None:
    summary = BackupSummary(version="1", created_at="", revision="", rows=1, tables=1, secrets=secrets, lessons=1)

    assert describe_backup(summary) == f"1 row of 1 table, {words} lessons"


def test_added_courses_are_counted() -> None:
    course = AddedCourse("course", "https://git.example.org/it", "", ".", "0" * 40)
    summary = BackupSummary("1", "", "", 1, 1, 2, 3, (course,))

    assert describe_backup(summary) == "1 row of 1 table, 2 secrets, 3 files of lessons and 1 added course"
