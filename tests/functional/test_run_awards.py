"""A successful run earns its award once and at once, whichever process stores its end."""

from __future__ import annotations

import asyncio
import itertools
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from sqlalchemy import func, select

from app.main import create_app
from app.progress.events import CELL_XP, TOPOLOGY_XP
from app.progress.models import LearnerTimeZone, LedgerEntry, LessonProgress
from app.runs.models import Run
from app.settings import Settings
from tests.factories.browser_client import browser_client, press_run
from tests.factories.course import FIRST_RUN, LESSON
from tests.factories.scripted_supervisor import ScriptedSupervisor

_RULES = (
    FIRST_RUN
    + """
[[achievements]]
id = "all-of-it"
badge = "course"
xp = 50
hidden = true
title.en = "All of it"
description.en = "The whole course."
needs = { course = "small" }
"""
)


@pytest.fixture
def settings(settings: Settings) -> Settings:
    (settings.lessons_dir / "achievements.toml").write_text(_RULES)
    return settings


async def _entries(app: FastAPI) -> dict[tuple[str, str], int]:
    async with app.state.db.session() as session:
        return {(entry.kind, entry.subject): entry.xp for entry in await session.scalars(select(LedgerEntry))}


async def _until_finished(app: FastAPI, run_id: str) -> None:
    async with asyncio.timeout(10):
        while True:
            async with app.state.db.session() as session:
                if (await session.get_one(Run, run_id)).finished:
                    return
            await asyncio.sleep(0.02)


async def _run(app: FastAPI, client: httpx.AsyncClient, cell: str = "hello", code: str = "print(1)") -> None:
    run = await press_run(client, code, cell)
    await _until_finished(app, run["id"])


async def _news(client: httpx.AsyncClient, since: str = "") -> dict[str, Any]:
    news = await client.get("/progress/news", params={"since": since}, headers={"x-lockstep-lang": "ko"})
    assert news.status_code == 200, news.text
    assert news.headers["cache-control"] == "no-store"
    body: dict[str, Any] = news.json()
    return body


def _mark(**more: object) -> dict[str, object]:
    moment = int(time.time() * 1000)
    return {"lesson": LESSON, "opened_at": moment - 1000, "last_seen_at": moment, "anchor": "cell-hello", **more}


async def test_a_cell_of_the_learners_own_earns_nothing_however_many_there_are(
    app: FastAPI, client: httpx.AsyncClient, supervisor: ScriptedSupervisor
) -> None:
    added = await client.post("/en/scratch-cells", params={"lesson": LESSON}, json={"after": "hello"})
    opened = await client.post("/en/playground/open", json={"name": "a.py", "text": "print(1)"})
    own = {LESSON: added.text.split('data-scratch-name="')[1][:20], "~playground/mine": opened.json()["cells"][0]}
    for lesson, cell in own.items():
        run = await client.post("/runs", json={"lesson": lesson, "cell": cell, "code": "print(1)"})
        handed = await supervisor.run(run.json()["id"])
        await supervisor.finish(handed)
        await _until_finished(app, run.json()["id"])

    assert await _entries(app) == {}


async def test_a_run_that_ended_ok_is_awarded_once_and_announced_at_once(
    app: FastAPI, client: httpx.AsyncClient, supervisor: ScriptedSupervisor
) -> None:
    supervisor.answer = ["1"]
    before = await _news(client)
    await _run(app, client)
    first = await _news(client, before["cursor"])
    await _run(app, client)
    again = await _news(client, first["cursor"])

    entries = await _entries(app)
    assert entries["cell", f"{LESSON}#hello"] == CELL_XP
    assert entries["topology", "gpu:4"] == TOPOLOGY_XP
    assert entries["achievement", "first-run"] == 20
    assert first["xp"] == CELL_XP + TOPOLOGY_XP + 20 == sum(entries.values())
    assert next((item["kind"], item["title"], item["badge"]) for item in first["items"]) == (
        "achievement",
        "첫걸음",
        "first-run",
    )
    assert {item["kind"]: item["title"] for item in first["items"]}["cell"] == "Say hello"
    assert (first["level_before"], first["level"]["number"], first["level"]["ends"]) == (0, 0, 100)
    assert again["items"] == []
    assert again["cursor"] == first["cursor"]


async def test_a_run_that_went_wrong_is_worth_nothing(
    app: FastAPI, client: httpx.AsyncClient, supervisor: ScriptedSupervisor
) -> None:
    for outcome in ("error", "timeout", "interrupted", "lost"):
        run = await press_run(client)
        await supervisor.finish(await supervisor.run(run["id"]), outcome)
        await _until_finished(app, run["id"])

    assert await _entries(app) == {}


@pytest.mark.parametrize("outcome", ["ok", "error"])
async def test_a_run_that_ended_itself_is_worth_nothing(
    app: FastAPI, client: httpx.AsyncClient, supervisor: ScriptedSupervisor, outcome: str
) -> None:
    code = "import sys; sys.exit(0); s = tf.distribute.MirroredStrategy()"
    run = await press_run(client, code)
    await supervisor.finish(await supervisor.run(run["id"]), outcome, exited=True)
    await _until_finished(app, run["id"])

    assert await _entries(app) == {}


async def test_two_processes_that_store_the_same_end_award_it_once(
    settings: Settings, supervisor: ScriptedSupervisor
) -> None:
    one, other = create_app(settings), create_app(settings)
    async with one.router.lifespan_context(one), other.router.lifespan_context(other), browser_client(one) as client:
        for cell in ("hello", "alone"):
            run = await press_run(client, cell=cell)
            scripted = await supervisor.run(run["id"])
            other.state.dispatcher.followers.watch(run["id"])
            await supervisor.say(scripted, "1")
            await supervisor.finish(scripted)
            await _until_finished(one, run["id"])
        async with asyncio.timeout(15):
            while one.state.dispatcher.followers.watching or other.state.dispatcher.followers.watching:  # noqa: ASYNC110
                await asyncio.sleep(0.02)

        entries = await _entries(one)
        assert [subject for kind, subject in sorted(entries) if kind == "cell"] == [
            f"{LESSON}#alone",
            f"{LESSON}#hello",
        ]
        assert sum(entries.values()) == 2 * CELL_XP + 2 * TOPOLOGY_XP + 20


async def test_a_lesson_is_completed_by_its_cells_and_its_end_in_either_order(
    app: FastAPI, client: httpx.AsyncClient, stranger: httpx.AsyncClient, supervisor: ScriptedSupervisor
) -> None:
    supervisor.answer = ["1"]
    read = {"lessons": [_mark(end_reached_at=int(time.time() * 1000))], "time_zone": "Asia/Seoul"}
    await _run(app, client)
    await _run(app, client, "alone")
    assert (await client.post("/progress/reading", json=read)).json() == {"kept": 1}
    await _run(app, stranger)
    assert (await stranger.post("/progress/reading", json=read)).json() == {"kept": 1}
    await _run(app, stranger, "alone")

    async with app.state.db.session() as session:
        sums = select(LedgerEntry.learner_id, func.sum(LedgerEntry.xp)).group_by(LedgerEntry.learner_id)
        totals = [total for _, total in await session.execute(sums)]
        kinds = select(LedgerEntry.kind, func.count()).where(
            LedgerEntry.kind.in_(("lesson", "module", "course", "achievement"))
        )
        counts = {kind: count for kind, count in await session.execute(kinds.group_by(LedgerEntry.kind))}  # noqa: C416 - rows
        rows = (await session.scalars(select(LessonProgress))).all()
        zones = set(await session.scalars(select(LearnerTimeZone.time_zone)))
    assert len(totals) == 2
    assert len(set(totals)) == 1
    assert counts == {"lesson": 2, "module": 2, "course": 2, "achievement": 4}
    assert all(row.completed_at and row.end_reached_at for row in rows)
    assert zones == {"Asia/Seoul"}
    outline = (await client.get("/en/progress/outline", params={"course": "small"})).json()["lessons"]
    assert outline == [
        {
            "slug": "first",
            "stage": "completed",
            "cells_done": 2,
            "cells": 2,
            "exercises_done": 0,
            "exercises": 0,
            "end_reached": True,
            "anchor": "cell-hello",
        }
    ]


async def test_running_the_cell_of_the_home_page_opens_no_lesson(
    app: FastAPI, client: httpx.AsyncClient, supervisor: ScriptedSupervisor
) -> None:
    supervisor.answer = ["1"]
    await _run(app, client)
    async with app.state.db.session() as session:
        learner = await session.scalar(select(LedgerEntry.learner_id).limit(1))
        header = await app.state.progress.summary.header(session, learner)
    assert header.level.xp > 0
    assert header.resume is None

    await client.post("/progress/reading", json={"lessons": [_mark()], "time_zone": "Asia/Seoul"})
    await _run(app, client, "alone")
    async with app.state.db.session() as session:
        header = await app.state.progress.summary.header(session, learner)
    assert (header.resume.slug, header.resume.anchor) == ("first", "cell-alone")


async def test_marks_of_a_stranger_make_a_visitor_of_no_one(app: FastAPI, client: httpx.AsyncClient) -> None:
    answer = await client.post("/progress/reading", json={"lessons": [_mark()]})

    assert answer.status_code == 204
    assert "set-cookie" not in answer.headers
    assert (await client.get("/en/progress/outline", params={"course": "small"})).json()["lessons"][0]["stage"] == "new"
    assert await _entries(app) == {}


@pytest.mark.parametrize(
    "body",
    [
        {"lessons": [_mark()] * 201},
        {"lessons": [_mark(anchor="x" * 101)]},
        {"lessons": [_mark(anchor="<script>")]},
        {"lessons": [_mark(anchor="a\x00b")]},
        {"lessons": [_mark(last_seen_at=-1)]},
        {"lessons": [_mark(last_seen_at=2**63)]},
        {"lessons": [_mark(lesson="x" * 201)]},
        {"lessons": [], "time_zone": "no zone at all"},
        {"lessons": "all"},
        [],
    ],
)
async def test_marks_that_no_page_sends_are_refused(client: httpx.AsyncClient, body: object) -> None:
    assert (await client.post("/progress/reading", json=body)).status_code == 422


async def test_marks_of_unknown_lessons_and_from_a_strange_clock_harm_nothing(
    app: FastAPI, client: httpx.AsyncClient, supervisor: ScriptedSupervisor
) -> None:
    supervisor.answer = ["1"]
    await _run(app, client)
    marks = [
        _mark(lesson="small/none"),
        _mark(opened_at=0, last_seen_at=2**53, anchor="cell-alone"),
        _mark(anchor="old"),
    ]

    answer = await client.post("/progress/reading", json={"lessons": marks, "time_zone": "Not/AZone"})

    assert answer.json() == {"kept": 2}
    async with app.state.db.session() as session:
        [row] = (await session.scalars(select(LessonProgress))).all()
    assert row.anchor == "cell-alone"
    assert row.started_at.year == 2020
    assert abs(row.last_seen_at.timestamp() - time.time()) < 60


async def test_an_error_of_ours_while_awarding_keeps_no_run_from_ending(
    app: FastAPI, client: httpx.AsyncClient, supervisor: ScriptedSupervisor, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(*_: object) -> None:
        raise RuntimeError("ours")

    monkeypatch.setattr(app.state.progress, "run_ended", broken)
    supervisor.answer = ["1"]
    await _run(app, client)

    assert await _entries(app) == {}


@pytest.mark.parametrize("ended", ["2026-11-22T23:59:59", "2026-11-23T00:00:01"])  # a Sunday, and the Monday after it
async def test_the_header_knows_all_figures(
    app: FastAPI, client: httpx.AsyncClient, supervisor: ScriptedSupervisor, monkeypatch: pytest.MonkeyPatch, ended: str
) -> None:
    ticks = itertools.count()
    for clock in ("app.runs.awards.now", "app.progress.summary.now"):
        begin = datetime.fromisoformat(ended).replace(tzinfo=UTC)
        monkeypatch.setattr(clock, lambda begin=begin: begin + timedelta(microseconds=next(ticks)))
    supervisor.answer = ["1"]
    await _run(app, client)
    opened = int(begin.timestamp() * 1000)
    mark = _mark(opened_at=opened, last_seen_at=opened)
    await client.post("/progress/reading", json={"lessons": [mark], "time_zone": "UTC"})
    await _run(app, client, "alone")
    summary = app.state.progress.summary
    async with app.state.db.session() as session:
        learner = await session.scalar(select(LedgerEntry.learner_id).limit(1))
        header = await summary.header(session, learner, "small")
        nobody = await summary.header(session, None)
        views = await summary.achievements(session, learner)

    xp = 2 * CELL_XP + 2 * TOPOLOGY_XP + 20
    assert (header.level.xp, header.level.number, header.level.missing) == (xp, 0, 100 - xp)
    assert (header.lessons_done, header.lessons, header.percent) == (0, 1, 0)
    assert (header.achievements_done, header.achievements) == (1, 2)
    assert header.streak.days == 1
    assert (header.resume.slug, header.resume.title, header.resume.anchor) == (
        "first",
        "The first lesson",
        "cell-alone",
    )
    assert (nobody.level.xp, nobody.resume, nobody.achievements) == (0, None, 2)
    assert [(view.id, view.title, view.earned_at is not None, view.towards.done) for view in views] == [
        ("first-run", "First step", True, True),
        ("all-of-it", "", False, False),
    ]


async def test_a_fault_in_the_file_leaves_the_last_good_achievements_up(app: FastAPI, settings: Settings) -> None:
    def spoil(file: Path) -> None:
        file.write_text(_RULES.replace("xp = 20", 'xp = "much"'))
        app.state.catalog.reload()

    await asyncio.to_thread(spoil, settings.lessons_dir / "achievements.toml")

    assert [rule.xp for rule in app.state.progress.terms().rules] == [20, 50]
