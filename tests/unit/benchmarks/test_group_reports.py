"""The benchmark of groups fills a database as the application does, and reads what its routes read."""

from __future__ import annotations

from pathlib import Path

from group_reports import PAGES, SMALL, Reader, fill, write_course

from app.db import Database


async def test_every_page_has_content_and_takes_few_statements(tmp_path: Path) -> None:
    catalog = write_course(tmp_path / "lessons", 60)
    db = Database(f"sqlite+aiosqlite:///{tmp_path / 'groups.db'}")
    try:
        await fill(db, SMALL + 5)
        statements = {}
        for group_id in ("a" * 32, "b" * 32):
            reader = Reader(db, group_id, catalog)
            for page in PAGES:
                await reader.read(page)
                statements[group_id, page] = reader.statements
    finally:
        await db.close()
    assert max(statements.values()) <= 10
    for page in PAGES:  # the number does not depend on that of the learners
        assert statements["a" * 32, page] == statements["b" * 32, page]
