"""The pages and fragments of progress: one's own in words, and profiles only of people who want to be seen."""

from __future__ import annotations

import asyncio
import re
from datetime import UTC, datetime, timedelta

import httpx
import pytest
from fastapi import FastAPI

from app.accounts.models import Account
from app.progress.history import ENTRIES_PER_PAGE
from app.progress.models import LedgerEntry
from app.runs.models import Run
from app.settings import Settings
from tests.factories.accounts import signed_in_browser, store_account
from tests.factories.browser_client import browser_client, press_run
from tests.factories.course import FIRST_RUN, LESSON
from tests.factories.scripted_supervisor import ScriptedSupervisor

_RULES = (
    FIRST_RUN
    + """
[[achievements]]
id = "both"
badge = "ten-runs"
xp = 30
title.en = "Both of them"
description.en = "Two cells ran."
needs = { kind = "cell", count = 2 }

[[achievements]]
id = "secret"
badge = "long-night"
xp = 50
hidden = true
title.en = "Through and through"
description.en = "The whole course."
needs = { course = "small" }
"""
)


@pytest.fixture
def settings(settings: Settings) -> Settings:
    (settings.lessons_dir / "achievements.toml").write_text(_RULES)
    return settings


async def _run(app: FastAPI, client: httpx.AsyncClient, supervisor: ScriptedSupervisor, cell: str = "hello") -> None:
    supervisor.answer = ["1"]
    run = await press_run(client, "print(1)", cell)
    async with asyncio.timeout(10):
        while True:
            async with app.state.db.session() as session:
                if (await session.get_one(Run, run["id"])).finished:
                    return
            await asyncio.sleep(0.02)


async def _text(client: httpx.AsyncClient, path: str) -> str:
    answer = await client.get(path)
    assert answer.status_code == 200, answer.text
    assert answer.headers["cache-control"] == "no-store"
    return " ".join(answer.text.split())


async def _seen(app: FastAPI, *, public: bool = True, disabled: bool = False) -> Account:
    account = await store_account(app.state.db, name="Ada <b>Byron</b>")
    async with app.state.db.writing() as session:
        there = await session.get_one(Account, account.id)
        there.public_profile, there.disabled_at = public, datetime.now(UTC) if disabled else None
    return account


async def test_a_stranger_sees_what_there_is_to_reach_and_stays_a_stranger(app: FastAPI) -> None:
    async with browser_client(app) as client:
        header = await _text(client, "/en/progress?course=small")
        page = await _text(client, "/en/achievements")

        assert 'data-who=""' in header
        assert "0 of 100 XP" in header
        assert "Local only: sign in to sync across devices." in header
        assert "First step" in page
        assert "Through and through" not in page
        assert "1 secret achievement appears once you earn it." in page
        assert "noindex" not in page
        assert not client.cookies


async def test_search_engines_are_kept_from_the_achievements_of_an_account(app: FastAPI) -> None:
    async with await signed_in_browser(app) as client:
        assert '<meta name="robots" content="noindex">' in await _text(client, "/en/achievements")


async def test_the_awards_of_a_run_are_in_header_cards_page_and_history(
    app: FastAPI, supervisor: ScriptedSupervisor
) -> None:
    async with browser_client(app) as client:
        await _run(app, client, supervisor)

        header, cards = await _text(client, "/en/progress"), await _text(client, "/ko/progress/awards?since=0")
        page = await _text(client, "/en/achievements")

    assert 'data-who=""' not in header
    assert cards.count('class="award"') == 1
    assert "첫걸음" in cards
    assert re.findall(r'data-other-xp="(\d+)"|<b>\D*(\d+)\D*</b>', cards) == [("4", ""), ("", "20")], "none twice"
    assert "Say hello · The first lesson" in page
    assert "1 of 2" in page, "the way to the next one"


async def test_cards_are_handed_out_once(app: FastAPI, supervisor: ScriptedSupervisor) -> None:
    async with browser_client(app) as client:
        await _run(app, client, supervisor)
        cursor = (await _text(client, "/en/progress/awards?since=0")).partition('data-cursor="')[2].partition('"')[0]

        assert 'class="award"' not in await _text(client, f"/en/progress/awards?since={cursor}")


async def test_the_end_of_a_lesson_says_what_is_missing(app: FastAPI, supervisor: ScriptedSupervisor) -> None:
    async with browser_client(app) as client:
        path = f"/en/courses/{LESSON}/end"
        before = await _text(client, path)
        await _run(app, client, supervisor)
        within = await _text(client, path)
        moment = {"opened_at": 1, "last_seen_at": 2, "end_reached_at": 2}
        await client.post("/progress/reading", json={"lessons": [{"lesson": LESSON, **moment}]})
        await _run(app, client, supervisor, "alone")
        after = await _text(client, path)

    assert 'href="#cell-hello"' in before
    assert "1 of 2 cells run" in within
    assert 'href="#cell-hello"' not in within
    assert 'href="#cell-alone"' in within
    assert "You completed this lesson" in after


async def test_the_history_has_pages(app: FastAPI) -> None:
    async with await signed_in_browser(app, account := await store_account(app.state.db)) as client:
        start = datetime(2026, 11, 1, tzinfo=UTC)
        async with app.state.db.writing() as session:
            for i in range(ENTRIES_PER_PAGE + 1):
                entry = LedgerEntry(learner_id=account.learner_id, kind="strategy", subject=f"S{i:02}", xp=1)
                entry.occurred_at = start + timedelta(hours=i)
                session.add(entry)

        first, second = [await _text(client, f"/en/achievements?page={number}") for number in (1, 2)]

    assert (f"S{ENTRIES_PER_PAGE:02}" in first, "S00" in first) == (True, False)
    assert (f"S{ENTRIES_PER_PAGE:02}" in second, "S00" in second) == (False, True)
    assert "?page=2#history" in first
    assert "?page=1#history" in second
    assert "Local only" not in first


async def test_a_public_profile_shows_name_and_badges(app: FastAPI) -> None:
    account = await _seen(app)
    async with browser_client(app) as client:
        answer = await client.get(f"/en/learners/{account.handle}")

    assert answer.status_code == 200
    assert "Ada &lt;b&gt;Byron&lt;/b&gt;" in answer.text
    assert account.email not in answer.text
    assert account.learner_id not in answer.text


@pytest.mark.parametrize("hidden", [{"public": False}, {"disabled": True}])
async def test_who_does_not_want_to_be_seen_is_not_told_from_nobody(app: FastAPI, hidden: dict[str, bool]) -> None:
    account = await _seen(app, **hidden)
    async with browser_client(app) as client:
        answers = [await client.get(f"/en/learners/{handle}") for handle in (account.handle, "nobody-of-this-name")]

    assert [answer.status_code for answer in answers] == [404, 404]
    errors = [answer.json()["error"] for answer in answers]
    assert [{**error, "request_id": ""} for error in errors] == [{**errors[0], "request_id": ""}] * 2


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/en/progress?course=no-such-course", 404),
        ("/en/progress/awards?since=yesterday", 422),
        ("/en/achievements?page=0", 422),
        ("/en/achievements?page=99999999999", 422),
        ("/en/courses/small/none/end", 404),
    ],
)
async def test_what_makes_no_sense_is_refused(app: FastAPI, path: str, status: int) -> None:
    async with browser_client(app) as client:
        assert (await client.get(path)).status_code == status
