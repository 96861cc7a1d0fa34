"""Tests of ``app.silence_watch``. A server that freezes is in ``functional/test_database_restart.py``."""

from __future__ import annotations

import asyncio

import pytest
from sqlalchemy import text

from app.db import Database
from app.silence_watch import SilenceWatch


@pytest.mark.timeout(60)
async def test_a_statement_may_take_long_while_the_server_answers(
    monkeypatch: pytest.MonkeyPatch, migrated_postgresql: str
) -> None:
    monkeypatch.setattr("app.silence_watch.PATIENCE_S", 0.1)
    asked, answered = [], asyncio.Event()
    answers = SilenceWatch._answers

    async def ask(watch: SilenceWatch) -> bool:
        asked.append(await answers(watch))
        answered.set()
        return asked[-1]

    monkeypatch.setattr(SilenceWatch, "_answers", ask)
    db = Database(migrated_postgresql)
    async with db.session() as session:
        await session.execute(text("SELECT pg_sleep(1)"))
        await answered.wait()
    await db.close()

    assert asked == [True]
