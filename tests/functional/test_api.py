"""The API: what each scope reads, page by page, and the document that describes it."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from fastapi.routing import APIRoute
from sqlalchemy import update

from app.accounts.api_tokens import TokenScope
from app.accounts.models import Account, Role
from app.accounts.second_factor import remove_authenticator
from app.db import now
from app.groups.models import Group, GroupDeadline, GroupMember, GroupRole
from app.lessons.dependencies import CATALOG
from app.progress.models import LedgerEntry, LessonProgress
from app.runs.models import CodeDraft, RunEvent
from app.web.access import Access, access_of
from app.web.api import InvalidCursor, make_cursor, read_cursor
from app.web.dependencies import SETTINGS
from runners.wire.protocol import TextEvent
from tests.factories.accounts import signed_in_browser, store_account
from tests.factories.api import bearer, store_token
from tests.factories.browser_client import browser_client
from tests.factories.course import LESSON
from tests.factories.routes import all_routes
from tests.factories.stored_runs import store_run

API = "/api/v1"
AT = datetime(2026, 11, 20, 12, tzinfo=UTC)


@pytest.fixture
async def account(app: FastAPI) -> Account:
    return await store_account(app.state.db, email="ada@example.org")


@pytest.fixture
async def program(app: FastAPI, account: Account) -> AsyncIterator[httpx.AsyncClient]:
    """A program with a token that has every scope."""
    async with browser_client(app) as client:
        client.headers.update(bearer(await store_token(app.state.db, account)))
        yield client


async def read(program: httpx.AsyncClient, path: str, **query: Any) -> Any:
    answer = await program.get(f"{API}/{path}", params=query)
    assert answer.status_code == 200, answer.text
    assert answer.headers["cache-control"] in ("no-store", "no-cache")
    return answer.json()


async def read_all(program: httpx.AsyncClient, path: str, limit: int) -> list[Any]:
    """The items of all pages."""
    items: list[Any] = []
    cursor: str | None = ""
    while cursor is not None:
        page = await read(program, path, limit=limit, cursor=cursor)
        assert len(page["items"]) <= limit
        items += page["items"]
        cursor = page["next_cursor"]
    return items


# --- for all routes ---------------------------------------------------------------------------------------------------


async def test_the_description_names_every_route_and_no_other(app: FastAPI, program: httpx.AsyncClient) -> None:
    document = await read(program, "openapi.json")

    routes = {route.path: route for route in all_routes(app) if isinstance(route, APIRoute) and API in route.path}
    assert document["paths"].keys() == routes.keys() - {f"{API}/openapi.json"}
    for path, operations in document["paths"].items():
        assert operations.keys() == {"get"}, path
        operation, access = operations["get"], access_of(routes[path])
        assert access in (Access.public, Access.token), path
        assert ("security" in operation) is (access is Access.token), path
        assert operation["tags"], path
        assert operation["description"], path
    named = set(re.findall(r"#/components/schemas/(\w+)", str(document)))
    assert named <= document["components"]["schemas"].keys()


async def test_errors_are_problem_documents_in_english(app: FastAPI, program: httpx.AsyncClient) -> None:
    headers = {"accept": "text/html", "accept-language": "ko", "cookie": "lockstep_lang=ko", "hx-request": "true"}
    for path, status, code in (
        ("progress/nothing", 404, "not_found"),
        ("progress?course=nothing", 404, "course_not_found"),
        ("progress/xp?limit=0", 422, "invalid_input"),
        ("progress/xp?cursor=x", 422, "invalid_cursor"),
    ):
        answer = await program.get(f"{API}/{path}", headers=headers)
        problem = answer.json()
        assert answer.headers["content-type"] == "application/problem+json"
        assert (answer.status_code, problem["status"], problem["code"]) == (status, status, code)
        assert problem["type"] == "about:blank"
        assert problem["request_id"] == answer.headers["x-request-id"]
        assert not re.search("[가-힣]", problem["detail"])


def test_a_cursor_comes_back_as_it_was_and_any_other_text_is_refused() -> None:
    assert read_cursor(make_cursor("한국어", ""), 2) == ["한국어", ""]
    assert read_cursor("", 2) is None
    others = (make_cursor("one"), make_cursor("a", "b\0"), make_cursor("a", "\ud800"))
    for wrong in ("x", "%", "=", "한", "W" * 900, *others):
        with pytest.raises(InvalidCursor):
            read_cursor(wrong, 2)


# --- progress:read ----------------------------------------------------------------------------------------------------


@pytest.fixture
async def progress(app: FastAPI, account: Account) -> None:
    """Of the account, and of somebody else."""
    other = await store_account(app.state.db)
    async with app.state.db.writing() as session:
        for learner, xp in ((account.learner_id, 10), (other.learner_id, 1000)):
            for number in range(5):
                at = AT + timedelta(hours=number)
                entry = {"kind": "cell" if number % 2 else "check", "subject": f"{LESSON}#{number}", "xp": xp}
                session.add(LedgerEntry(learner_id=learner, occurred_at=at, **entry))
            session.add(LedgerEntry(learner_id=learner, occurred_at=AT, kind="day", subject="2026-11-20", xp=0))
            for number in range(3):
                lesson = {"lesson": f"small/{number}", "started_at": AT, "last_seen_at": AT}
                session.add(LessonProgress(learner_id=learner, **lesson))


@pytest.mark.usefixtures("progress")
async def test_a_program_reads_the_progress_of_its_account(program: httpx.AsyncClient) -> None:
    figures = await read(program, "progress", course="small")

    assert (figures["xp"], figures["level"], figures["next_level_xp"]) == (50, 0, 100)
    entries = await read_all(program, "progress/xp", limit=2)
    assert [(entry["kind"], entry["subject"]) for entry in entries] == [
        *(("cell", f"{LESSON}#{number}") for number in (1, 3)),
        *(("check", f"{LESSON}#{number}") for number in (0, 2, 4)),
    ]
    assert {entry["xp"] for entry in entries} == {10}
    lessons = await read_all(program, "progress/lessons", limit=1)
    assert [lesson["lesson"] for lesson in lessons] == ["small/0", "small/1", "small/2"]
    assert lessons[0]["started_at"] == "2026-11-20T12:00:00Z"
    assert lessons[0]["completed_at"] is None


async def test_achievements_are_in_the_language_that_a_program_asks_for(
    app: FastAPI, program: httpx.AsyncClient
) -> None:
    english, korean = [(await read(program, "progress/achievements", language=code))["items"] for code in ("en", "ko")]

    assert [each["id"] for each in english] == [each["id"] for each in korean]
    assert all(each["earned_at"] is None and each["title"] for each in english)
    assert (await program.get(f"{API}/progress/achievements?language=xx")).status_code == 422


# --- groups:read ------------------------------------------------------------------------------------------------------


async def teach(app: FastAPI, instructor: Account) -> tuple[str, Account]:
    """A group with a learner who has completed a lesson; the group's ID, and the learner."""
    learner = await store_account(app.state.db, name="Grace Hopper")
    group = {"name": "Autumn", "course": "small", "time_zone": "UTC", "starts_at": None, "ends_at": None}
    async with app.state.db.writing() as session:
        session.add(Group(id="a" * 32, created_at=AT, **group))
        await session.flush()
        for account, role in ((instructor, GroupRole.instructor), (learner, GroupRole.learner)):
            session.add(GroupMember(group_id="a" * 32, account_id=account.id, role=role, joined_at=AT))
        seen = {"started_at": AT, "last_seen_at": now(), "completed_at": now()}
        session.add(LessonProgress(learner_id=learner.learner_id, lesson=LESSON, **seen))
    return "a" * 32, learner


@pytest.fixture
async def instructor(app: FastAPI) -> Account:
    return await store_account(app.state.db, Role.instructor)


async def test_an_instructor_reads_the_reports_and_learners_of_their_group(app: FastAPI, instructor: Account) -> None:
    group, learner = await teach(app, instructor)
    newcomer = await store_account(app.state.db)
    async with app.state.db.writing() as session:
        session.add(GroupMember(group_id=group, account_id=newcomer.id, role=GroupRole.learner, joined_at=AT))
        session.add(GroupDeadline(group_id=group, lesson=LESSON, exercise="", due_at=now() + timedelta(days=7)))
    async with browser_client(app) as program:
        program.headers.update(bearer(await store_token(app.state.db, instructor)))
        (listed,) = (await read(program, "groups"))["items"]
        report = await read(program, f"groups/{group}/reports/lessons", period="all")
        rows = await read_all(program, f"groups/{group}/learners", limit=1)
        for name in ("exercises", "errors", "limits", "questions"):
            assert (await read(program, f"groups/{group}/reports/{name}"))["rows"] == []

    assert (listed["id"], listed["role"], listed["learners"]) == (group, "instructor", 2)
    assert report["columns"][:4] == ["Lesson", "Opened", "Read to the end", "Completed"]
    assert report["rows"][0][1:4] == [1, 0, 1]
    states = {row["handle"]: row["lessons"] for row in rows}
    assert states == {learner.handle: {LESSON: "completed"}, newcomer.handle: {}}


async def test_nobody_else_reads_a_group(app: FastAPI, instructor: Account, program: httpx.AsyncClient) -> None:
    group, learner = await teach(app, instructor)
    paths = [f"{API}/groups/{group}/learners", f"{API}/groups/{group}/reports/lessons"]
    stranger = await store_account(app.state.db, Role.instructor)
    for account in (learner, stranger):
        headers = bearer(await store_token(app.state.db, account))
        assert [(await program.get(path, headers=headers)).status_code for path in paths] == [404, 404]
        assert (await program.get(f"{API}/groups", headers=headers)).json() == {"items": []}
    headers = bearer(await store_token(app.state.db, instructor, [TokenScope.progress]))
    assert [(await program.get(path, headers=headers)).status_code for path in paths] == [403, 403]

    headers = bearer(await store_token(app.state.db, instructor))
    assert (await program.get(paths[0], headers=headers)).status_code == 200
    async with app.state.db.writing() as session:
        await session.execute(update(Account).where(Account.id == instructor.id).values(role=Role.learner))
    assert [(await program.get(path, headers=headers)).status_code for path in paths] == [404, 404], "no longer staff"
    assert (await program.get(f"{API}/groups", headers=headers)).json() == {"items": []}


async def test_where_staff_needs_a_second_factor_a_token_made_without_one_reads_no_group(
    app: FastAPI, instructor: Account, program: httpx.AsyncClient
) -> None:
    group, _ = await teach(app, instructor)
    plain, strong = [
        bearer(await store_token(app.state.db, instructor, method=method)) for method in ("password", "password+totp")
    ]
    SETTINGS.set(app, SETTINGS.get(app).model_copy(update={"staff_second_factor": True}))
    path = f"{API}/groups/{group}/learners"

    refused = await program.get(path, headers=plain | {"accept": "text/html"})

    assert (refused.status_code, refused.json()["code"]) == (403, "token_lacks_second_factor")
    assert (await program.get(f"{API}/progress", headers=plain)).status_code == 200
    assert (await program.get(path, headers=strong)).status_code == 200
    async with app.state.db.writing() as session:
        await remove_authenticator(session, instructor)
    assert (await program.get(path, headers=strong)).status_code == 403, "its app was removed"


# --- work:read --------------------------------------------------------------------------------------------------------


async def test_a_program_reads_the_runs_and_drafts_of_its_account_and_of_nobody_else(
    app: FastAPI, account: Account, program: httpx.AsyncClient
) -> None:
    stranger, db = await store_account(app.state.db), app.state.db
    ended = {"lesson": LESSON, "cell": "hello", "code": "print(1)", "state": "finished", "outcome": "ok"}
    mine = sorted([await store_run(db, learner_id=account.learner_id, **ended) for _ in range(3)], reverse=True)
    other = await store_run(db, learner_id=stranger.learner_id, **ended)
    async with db.writing() as session:
        payload = TextEvent(seq=1, at_ms=1, stream="stdout", text="one\ntwo\n").model_dump_json()
        session.add_all(RunEvent(run_id=run, seq=1, kind="text", at_ms=1, payload=payload) for run in (mine[0], other))
        for owner, cell, code in ((account, "hello", "print(2)"), (account, "reset", None), (stranger, "x", "3")):
            draft = {"lesson": LESSON, "cell": cell, "code": code, "original_digest": "0" * 16, "version": 1}
            session.add(CodeDraft(account_id=owner.id, updated_at=AT, **draft))

    listed = await read_all(program, "runs", limit=2)
    run = await read(program, f"runs/{mine[0]}")

    assert [each["id"] for each in listed] == mine
    assert await read_all(program, "runs", limit=2) == (await read(program, "runs", lesson=LESSON))["items"]
    assert (await read(program, "runs", lesson="small/other"))["items"] == []
    assert (run["code"], run["printed"], run["submission"]) == ("print(1)", ["one", "two"], False)
    assert [(each["cell"], each["code"]) for each in await read_all(program, "drafts", limit=1)] == [
        ("hello", "print(2)")
    ]
    for wrong in (other, "nothing", "%00", "A-Z"):
        assert (await program.get(f"{API}/runs/{wrong}")).status_code == 404
    headers = bearer(await store_token(db, account, [TokenScope.progress]))
    for path in ("runs", f"runs/{mine[0]}", "drafts"):
        assert (await program.get(f"{API}/{path}", headers=headers)).status_code == 403


# --- courses ----------------------------------------------------------------------------------------------------------


async def test_the_etag_of_a_translation_follows_the_code_of_the_original(
    app: FastAPI, client: httpx.AsyncClient
) -> None:
    catalog = CATALOG.get(app)
    original = catalog.root / "small" / "first" / "lesson.md"
    translation = original.with_name("lesson.ko.md")
    translation.write_text(original.read_text().replace('print("hello")', ""))
    catalog.reload()
    address = f"{API}/courses/small/lessons/first?language=ko"
    before = await client.get(address)
    original.write_text(original.read_text().replace('print("hello")', 'print("changed")'))
    catalog.reload()
    after = await client.get(address, headers={"if-none-match": before.headers["etag"]})

    assert 'print("hello")' in [cell["code"] for cell in before.json()["cells"]]
    assert after.status_code == 200
    assert 'print("changed")' in [cell["code"] for cell in after.json()["cells"]]


async def test_courses_and_lessons_need_no_token_and_show_no_draft(
    app: FastAPI, client: httpx.AsyncClient, instructor: Account
) -> None:
    (course,) = (await read(client, "courses"))["items"]
    modules = (await read(client, f"courses/{course['slug']}"))["modules"]
    lesson = await client.get(f"{API}/courses/small/lessons/first")

    assert course["slug"] == "small"
    assert [each["slug"] for module in modules for each in module["lessons"]] == ["first"]
    assert lesson.json()["url"] == "/en/courses/small/first"
    assert "hello" in [cell["name"] for cell in lesson.json()["cells"]]
    same = await client.get(f"{API}/courses/small/lessons/first", headers={"if-none-match": lesson.headers["etag"]})
    assert (same.status_code, same.content) == (304, b"")
    for path in ("courses/nothing", "courses/small/lessons/nothing", "courses/nothing/lessons/first"):
        assert (await client.get(f"{API}/{path}")).status_code == 404
    file = CATALOG.get(app).root / "small" / "first" / "lesson.md"
    file.write_text(file.read_text().replace("status: published", "status: draft"))
    CATALOG.get(app).reload()
    async with await signed_in_browser(app, instructor) as browser:
        browser.headers.update(bearer(await store_token(app.state.db, instructor)))
        assert (await browser.get("/en/courses/small/first")).status_code == 200
        assert (await browser.get(f"{API}/courses/small/lessons/first")).status_code == 404
