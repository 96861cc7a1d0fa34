"""What the cleanup deletes, and what it keeps; and descriptions of browsers."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest
import structlog
from sqlalchemy import select, update
from sqlalchemy.ext.asyncio import AsyncSession

from app.accounts.auth_sessions import create_auth_session
from app.accounts.cleanup import clean_up
from app.accounts.email_links import LinkPurpose, create_link
from app.accounts.models import Account, AuthSession, EmailLink
from app.accounts.service import create_account
from app.accounts.user_agent import describe_browser
from app.db import Database, now

LONG_AGO = timedelta(days=40)


async def test_only_what_is_over_is_swept_away(database: Database) -> None:
    async with database.writing() as session:
        for email, confirmed in (("open@example.org", True), ("shut@example.org", False), ("used@example.org", False)):
            account = await create_account(session, email=email, name="Ada", confirmed=confirmed)
            account.created_at = now() - LONG_AGO
            await create_link(session, account, LinkPurpose.confirm, email)
            if email != "shut@example.org":
                await create_auth_session(session, account, method="oidc")
        await create_account(session, email="new@example.org", name="Ada")
    await clean_up(database)
    async with database.writing() as session:
        kept = set(await session.scalars(select(Account.email)))
        assert kept == {"open@example.org", "used@example.org", "new@example.org"}
        assert len((await session.scalars(select(AuthSession))).all()) == 2
        assert len((await session.scalars(select(EmailLink))).all()) == 2
        await session.execute(update(AuthSession).values(expires_at=now() - LONG_AGO))
        await session.execute(update(EmailLink).values(expires_at=now() - LONG_AGO))
    await clean_up(database)
    async with database.session() as session:
        assert (await session.scalars(select(AuthSession))).all() == []
        assert (await session.scalars(select(EmailLink))).all() == []


async def test_of_two_processes_one_at_a_time_cleans_up(migrated_postgresql: str) -> None:
    here, elsewhere = Database(migrated_postgresql, connections=1), Database(migrated_postgresql, connections=1)
    cleaning, over = asyncio.Event(), asyncio.Event()
    cleaned: list[str] = []

    async def slow(_session: AsyncSession) -> bool:
        cleaning.set()
        await over.wait()
        return False

    async def quick(_session: AsyncSession) -> bool:
        cleaned.append("here")
        return False

    other = asyncio.create_task(clean_up(elsewhere, [slow]))
    await cleaning.wait()
    await clean_up(here, [quick])
    assert cleaned == []
    over.set()
    await other
    await clean_up(here, [quick])
    assert cleaned == ["here"]
    for db in (here, elsewhere):
        await db.close()


async def test_a_sweeper_with_a_mistake_keeps_no_other_from_its_work(database: Database) -> None:
    swept: list[str] = []

    async def mistaken(_session: AsyncSession) -> bool:
        raise IndexError("list index out of range")

    async def sound(_session: AsyncSession) -> bool:
        swept.append("sound")
        return False

    with structlog.testing.capture_logs() as logs:
        await clean_up(database, [mistaken, sound])

    assert swept == ["sound"]
    assert [line["event"] for line in logs] == ["cleanup failed"]


@pytest.mark.parametrize(
    ("agent", "words"),
    [
        ("Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0", "Firefox on Linux"),
        ("Mozilla/5.0 (Windows NT 10.0) AppleWebKit/537.36 Chrome/140 Safari/537.36 Edg/140", "Edge on Windows"),
        ("Mozilla/5.0 (Linux; Android 15) AppleWebKit/537.36 Chrome/140 Mobile Safari/537.36", "Chrome on Android"),
        ("Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) Version/18 Safari/604.1", "Safari on iPhone"),
        ("curl/8.0", "curl/8.0"),
        ("", "Unknown browser"),
    ],
)
def test_a_browser_is_named_as_people_know_it(agent: str, words: str) -> None:
    assert describe_browser(agent) == words
