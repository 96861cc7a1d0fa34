"""Scratch cells on both databases: their order, their limits, and whose they are."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from sqlalchemy import select

from app.db import Database
from app.lessons.dependencies import CATALOG
from app.lessons.model import Lesson
from app.runs import scratch_cells
from app.runs.errors import CodeTooLong, InvalidCode, ScratchCellNotFound, ScratchCellsTooLarge, TooManyScratchCells
from app.runs.models import Run, ScratchCell
from app.runs.personal_data import erase_scratch_cells, export_scratch_cells, move_scratch_cells
from app.runs.scratch_cells import (
    NewCell,
    ScratchChange,
    add_scratch_cells,
    as_cell,
    change_scratch_cell,
    delete_scratch_cell,
    in_page_order,
    list_scratch_cells,
    move_scratch_cell,
)
from app.web.dependencies import DATABASE
from app.web.user_text import TextTooLong
from tests.factories.accounts import signed_in_browser, store_account
from tests.factories.browser_client import browser_client
from tests.factories.course import LESSON
from tests.factories.scripted_supervisor import ScriptedSupervisor

ADA, BOB = "a" * 32, "b" * 32


@pytest.fixture
async def lesson(app: FastAPI) -> Lesson:
    found = CATALOG.get(app).find_lesson(LESSON, "en")
    assert found is not None
    return found


async def add(db: Database, lesson: Lesson, after: str | None, *sources: str, learner: str = ADA) -> list[str]:
    """Add cells with these sources; their names."""
    async with db.writing() as session:
        new = [NewCell("code", source) for source in sources]
        return [cell.name for cell in await add_scratch_cells(session, learner, lesson, after, new)]


async def sources(db: Database, lesson: Lesson, learner: str = ADA) -> list[str]:
    """The sources of all cells in the order of the page."""
    async with db.session() as session:
        page = in_page_order(await list_scratch_cells(session, learner, lesson.key), lesson)
    return [cell.source for group in page.values() for cell in group]


async def test_a_cell_stands_right_behind_the_one_that_it_was_added_to(database: Database, lesson: Lesson) -> None:
    (first,) = await add(database, lesson, "hello", "first")
    await add(database, lesson, "hello", "before")
    await add(database, lesson, first, "after")
    await add(database, lesson, None, "end")

    assert await sources(database, lesson) == ["before", "first", "after", "end"]


async def test_a_moved_cell_keeps_what_is_in_it(database: Database, lesson: Lesson) -> None:
    one, two, three = await add(database, lesson, "hello", "one", "two", "three")

    async with database.writing() as session:
        await move_scratch_cell(session, ADA, lesson, three, "hello")
        await move_scratch_cell(session, ADA, lesson, one, two)

    assert await sources(database, lesson) == ["three", "two", "one"]


async def test_a_cell_whose_anchor_is_gone_is_at_the_end(database: Database, lesson: Lesson) -> None:
    await add(database, lesson, "hello", "kept")
    async with database.writing() as session:
        cell = (await session.scalars(select(ScratchCell))).one()
        cell.anchor = "no-longer-there"

    assert await sources(database, lesson) == ["kept"]
    async with database.session() as session:
        (cell,) = await list_scratch_cells(session, ADA, lesson.key)
    assert as_cell(cell, lesson).topology == lesson.cells[-1].topology


async def test_a_change_replaces_only_the_version_that_its_browser_has_seen(database: Database, lesson: Lesson) -> None:
    (name,) = await add(database, lesson, "hello", "x = 1")

    async def change(source: str, seen: int) -> tuple[str, int]:
        async with database.writing() as session:
            cell = await change_scratch_cell(session, ADA, lesson.key, name, ScratchChange(seen, source))
            return cell.source, cell.version

    assert await change("x = 2", 1) == ("x = 2", 2)
    assert await change("x = 3", 1) == ("x = 2", 2)
    assert await change("x = 3", 2) == ("x = 3", 3)


async def test_a_title_is_stored_whatever_version_its_browser_has_seen_and_is_no_version(
    database: Database, lesson: Lesson
) -> None:
    (name,) = await add(database, lesson, "hello", "x = 1")

    async def change(change: ScratchChange) -> tuple[str, str, int]:
        async with database.writing() as session:
            cell = await change_scratch_cell(session, ADA, lesson.key, name, change)
            return cell.source, cell.title, cell.version

    assert await change(ScratchChange(1, "x = 2")) == ("x = 2", "", 2)
    assert await change(ScratchChange(1, title="Mine")) == ("x = 2", "Mine", 2)
    assert await change(ScratchChange(1, "x = 3", "Ours")) == ("x = 2", "Ours", 2)


async def test_a_page_with_too_much_can_be_shortened_step_by_step(
    database: Database, lesson: Lesson, monkeypatch: pytest.MonkeyPatch
) -> None:
    (name, _) = await add(database, lesson, "hello", "#" * 600, "#" * 600)
    monkeypatch.setattr(scratch_cells, "MAX_PAGE_BYTES", 1_000)

    async def change(seen: int, source: str) -> None:
        async with database.writing() as session:
            await change_scratch_cell(session, ADA, lesson.key, name, ScratchChange(seen, source))

    await change(1, "#" * 500)
    with pytest.raises(ScratchCellsTooLarge):
        await change(2, "#" * 501)
    await change(2, "#" * 300)

    assert sorted(map(len, await sources(database, lesson))) == [300, 600]


async def test_a_deleted_cell_comes_back_under_its_name_and_only_once(database: Database, lesson: Lesson) -> None:
    (name,) = await add(database, lesson, "hello", "x = 1")
    async with database.writing() as session:
        await delete_scratch_cell(session, ADA, lesson.key, name)
    assert await sources(database, lesson) == []

    async def bring_back() -> int:
        async with database.writing() as session:
            return len(await add_scratch_cells(session, ADA, lesson, "hello", [NewCell("code", "x = 1", "", name)]))

    assert sorted(await asyncio.gather(bring_back(), bring_back())) == [0, 1]
    assert await sources(database, lesson) == ["x = 1"]


async def test_two_browsers_that_add_at_once_both_succeed(database: Database, lesson: Lesson) -> None:
    await asyncio.gather(*(add(database, lesson, "hello", f"x = {n}") for n in range(6)))

    async with database.session() as session:
        cells = await list_scratch_cells(session, ADA, lesson.key)
    assert [cell.position for cell in cells] == list(range(6))


async def test_what_cannot_be_stored_is_refused_and_leaves_nothing(
    database: Database, lesson: Lesson, monkeypatch: pytest.MonkeyPatch
) -> None:
    (name,) = await add(database, lesson, "hello", "x = 1")
    monkeypatch.setattr(scratch_cells, "MAX_PAGE_BYTES", 1_000)
    monkeypatch.setattr(scratch_cells, "MAX_CELLS_PER_PAGE", 3)
    for error, new in (
        (CodeTooLong, ["#" * 100_001]),
        (InvalidCode, ["a\0b"]),
        (ScratchCellsTooLarge, ["#" * 600] * 2),
        (TooManyScratchCells, ["x"] * 3),
    ):
        with pytest.raises(error):
            await add(database, lesson, "hello", *new)
    for change in (ScratchChange(1, "#" * 1_001), ScratchChange(1, title="x" * 101)):
        with pytest.raises((ScratchCellsTooLarge, TextTooLong)):
            async with database.writing() as session:
                await change_scratch_cell(session, ADA, lesson.key, name, change)
    monkeypatch.setattr(scratch_cells, "MAX_CELLS_PER_LEARNER", 1)
    with pytest.raises(TooManyScratchCells):
        await add(database, lesson, "hello", "one more")

    assert await sources(database, lesson) == ["x = 1"]


async def test_nobody_changes_or_moves_the_cell_of_somebody_else(database: Database, lesson: Lesson) -> None:
    (name,) = await add(database, lesson, "hello", "x = 1")

    for attempt in (
        lambda session: change_scratch_cell(session, BOB, lesson.key, name, ScratchChange(1, "stolen")),
        lambda session: move_scratch_cell(session, BOB, lesson, name, "hello"),
    ):
        with pytest.raises(ScratchCellNotFound):
            async with database.writing() as session:
                await attempt(session)
    async with database.writing() as session:
        await delete_scratch_cell(session, BOB, lesson.key, name)

    assert await sources(database, lesson) == ["x = 1"]


async def test_a_visitor_takes_cells_along_and_an_account_exports_and_erases_them(
    database: Database, lesson: Lesson
) -> None:
    ada = await store_account(database)
    await add(database, lesson, "hello", "mine", learner=ada.learner_id)
    await add(database, lesson, "hello", "visited", learner=BOB)

    async with database.writing() as session:
        assert await move_scratch_cells(session, BOB, ada.learner_id) == {"cells": 1}
    async with database.writing() as session:
        rows = [row async for row in export_scratch_cells(session, ada)]
        await erase_scratch_cells(session, ada)

    assert [(row["lesson"], row["source"]) for row in rows] == [(LESSON, "mine"), (LESSON, "visited")]
    assert await sources(database, lesson, ada.learner_id) == []


async def test_cells_that_visitor_and_account_have_under_one_name_are_both_kept(
    database: Database, lesson: Lesson
) -> None:
    (name,) = await add(database, lesson, "hello", "theirs", learner=ADA)
    async with database.writing() as session:
        await add_scratch_cells(session, BOB, lesson, "hello", [NewCell("code", "visited", "", name)])

    async with database.writing() as session:
        assert await move_scratch_cells(session, BOB, ADA) == {"cells": 1}

    assert await sources(database, lesson) == ["theirs", "visited"]


# --- over HTTP --------------------------------------------------------------------------------------------------------


@pytest.fixture
async def visitor(app: FastAPI, supervisor: ScriptedSupervisor) -> AsyncIterator[httpx.AsyncClient]:
    async with browser_client(app) as client:
        yield client


async def post(client: httpx.AsyncClient, **more: Any) -> httpx.Response:
    asked = {"after": "hello", "source": "print(2)"} | more
    return await client.post("/en/scratch-cells", params={"lesson": LESSON}, json=asked)


def name_in(answer: httpx.Response) -> str:
    return answer.text.split('data-scratch-name="')[1].split('"')[0]


async def test_a_visitor_runs_an_own_cell_in_the_session_of_the_lesson(
    app: FastAPI, visitor: httpx.AsyncClient
) -> None:
    name = name_in(await post(visitor))
    lessons_run = await visitor.post("/runs", json={"lesson": LESSON, "cell": "hello", "code": "print(1)"})
    own_run = await visitor.post("/runs", json={"lesson": LESSON, "cell": name, "code": "print(2)"})

    assert own_run.status_code == 202
    async with DATABASE.get(app).session() as session:
        runs = {run.id: run for run in await session.scalars(select(Run))}
    assert runs[own_run.json()["id"]].session_id == runs[lessons_run.json()["id"]].session_id
    assert runs[own_run.json()["id"]].cell == name


async def test_running_an_own_cell_does_not_highlight_it_first(
    visitor: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = name_in(await post(visitor))
    monkeypatch.setattr("app.lessons.highlight._highlight", None)  # it may take longer than others can wait

    ran = await visitor.post("/runs", json={"lesson": LESSON, "cell": name, "code": "print(2)"})

    assert ran.status_code == 202


async def test_an_own_cell_is_a_cell_only_for_the_one_who_added_it(app: FastAPI, visitor: httpx.AsyncClient) -> None:
    name = name_in(await post(visitor))

    async with aclosing(await signed_in_browser(app)) as other:
        refused = await other.post("/runs", json={"lesson": LESSON, "cell": name, "code": "1"})
        listed = await other.get("/en/scratch-cells", params={"lesson": LESSON})

    assert (refused.status_code, refused.json()["error"]["code"]) == (404, "cell_not_found")
    assert listed.status_code == 204


async def test_an_own_text_cannot_be_run(visitor: httpx.AsyncClient) -> None:
    name = name_in(await post(visitor, kind="text", source="# Notes"))

    assert (await visitor.post("/runs", json={"lesson": LESSON, "cell": name, "code": "1"})).status_code == 404


async def test_markup_in_own_cells_is_only_text(visitor: httpx.AsyncClient) -> None:
    attack = "<script>alert(1)</script><img src=x onerror=alert(1)>"
    code = await post(visitor, source=attack, title=f'"{attack}')
    text = await post(visitor, kind="text", source=f"{attack}\n\n[a](javascript:alert(1))")

    for answer in (code, text):
        assert answer.status_code == 201
        assert "<script" not in answer.text
        assert "<img" not in answer.text.replace("&lt;img", "")
        assert 'href="javascript' not in answer.text


async def test_half_a_surrogate_pair_is_refused_with_a_sentence(visitor: httpx.AsyncClient) -> None:
    name, page = name_in(await post(visitor)), {"lesson": LESSON}
    half = '"\\ud800"'  # httpx would not send it
    for method, url, body in (
        ("POST", "/en/scratch-cells", f'{{"after": "hello", "source": {half}}}'),
        ("PUT", f"/en/scratch-cells/{name}", f'{{"source": {half}, "seen_version": 1}}'),
        ("PUT", f"/en/scratch-cells/{name}", f'{{"title": {half}, "seen_version": 1}}'),
        ("POST", "/en/playground/open", f'{{"name": "a.py", "text": {half}}}'),
    ):
        headers = {"content-type": "application/json"}
        refused = await visitor.request(method, url, params=page, content=body, headers=headers)
        assert refused.status_code == 422, (method, url)


async def test_a_change_answers_with_what_is_stored_then(visitor: httpx.AsyncClient) -> None:
    name = name_in(await post(visitor))
    url, page = f"/en/scratch-cells/{name}", {"lesson": LESSON}

    first = await visitor.put(url, params=page, json={"source": "print(3)", "seen_version": 1})
    late = await visitor.put(url, params=page, json={"source": "print(4)", "seen_version": 1})
    named = await visitor.put(url, params=page, json={"title": "  My  try ", "seen_version": 2})

    assert (first.json()["source"], first.json()["version"]) == ("print(3)", 2)
    assert (late.json()["source"], late.json()["version"]) == ("print(3)", 2)
    assert named.json()["title"] == "My try"
    assert first.headers["cache-control"] == "no-store"
    assert "My try" in (await visitor.get("/en/scratch-cells", params=page)).text


async def test_a_deleted_cell_is_gone_and_deleting_it_again_does_no_harm(visitor: httpx.AsyncClient) -> None:
    name = name_in(await post(visitor))
    url, page = f"/en/scratch-cells/{name}", {"lesson": LESSON}

    assert [(await visitor.delete(url, params=page)).status_code for _ in range(2)] == [204, 204]
    refused = await visitor.put(url, params=page, json={"source": "1", "seen_version": 1})
    assert (refused.status_code, refused.json()["error"]["code"]) == (404, "scratch_cell_not_found")


async def test_all_cells_of_a_page_are_deleted_at_once_and_no_others(app: FastAPI, visitor: httpx.AsyncClient) -> None:
    page, playground = {"lesson": LESSON}, {"lesson": "~playground/mine"}
    for _ in range(2):
        await post(visitor)
    await visitor.post("/en/scratch-cells", params=playground, json={"after": ""})
    async with aclosing(await signed_in_browser(app)) as other:
        await post(other)

        assert (await visitor.delete("/en/scratch-cells", params=page)).status_code == 204

        assert (await visitor.get("/en/scratch-cells", params=page)).status_code == 204
        assert (await visitor.get("/en/scratch-cells", params=playground)).status_code == 200
        assert (await other.get("/en/scratch-cells", params=page)).status_code == 200


async def test_cells_belong_to_a_lesson_that_exists(visitor: httpx.AsyncClient) -> None:
    for lesson in ("small/nowhere", "nowhere/first", "~playground/nowhere"):
        answer = await visitor.post("/en/scratch-cells", params={"lesson": lesson}, json={"after": ""})
        assert answer.status_code == 404, lesson
