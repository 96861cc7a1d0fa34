"""Drafts are for instructors: for everyone else, a draft behaves exactly like a lesson that does not exist."""

from __future__ import annotations

import asyncio
import re
import shutil
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from sqlalchemy import func, select, update
from starlette.routing import Route

from app.accounts.models import Account
from app.comments import editing
from app.comments.editing import CommentDraft
from app.comments.models import Comment
from app.db import Database
from app.main import create_app
from app.notifications import service as notifications
from app.notifications.models import NotificationKind
from app.progress.models import LedgerEntry
from app.settings import Settings
from tests.factories.accounts import signed_in_browser, store_account
from tests.factories.browser_client import browser_client
from tests.factories.routes import ENDLESS, all_routes
from tests.factories.scripted_supervisor import ScriptedSupervisor

OUTSIDERS, INSIDERS = ("stranger", "visitor", "learner"), ("instructor", "admin")
DRAFT, NOWHERE = "small/treasure", "small/nowhere"
TITLE, WORDS = "Buried gold", "Dig below the palm tree."
FILE = f"""---
title: {TITLE}
summary: It is not ready.
minutes: 7
STATUS---

{WORDS}

![Map](assets/map.png)

```{{code-cell}} python
:name: dig

print("dig")
```
"""
PUBLIC_PAGES = ("/en/", "/ko/", "/en/courses/small", "/en/courses/small/first")
OWN_FILES = ("lesson", "lesson_source", "lesson_asset", "lesson_cover")
"""The routes of what a lesson is made of."""
HTML = {"accept": "text/html"}


def publish(settings: Settings, status: str) -> None:
    (settings.lessons_dir / DRAFT / "lesson.md").write_text(FILE.replace("STATUS", status))


@pytest.fixture
def settings(settings: Settings) -> Settings:
    """A second lesson without a status, and a course with only a draft."""
    root = settings.lessons_dir
    for folder in (root / DRAFT, root / "cellar" / "wine"):
        (folder / "assets").mkdir(parents=True)
        (folder / "assets" / "map.png").write_bytes(b"a map")
        (folder / "cover.png").write_bytes(b"a cover")
        (folder / "lesson.md").write_text(FILE.replace("STATUS", ""))
    course = root / "small" / "course.toml"
    course.write_text(course.read_text().replace('["first"]', '["treasure", "first"]'))
    (root / "cellar" / "course.toml").write_text(
        'title.en = "The cellar"\nsummary.en = "x"\n[[modules]]\nslug = "m"\ntitle.en = "M"\nlessons = ["wine"]\n'
    )
    return settings


async def asker(app: FastAPI, who: str) -> httpx.AsyncClient:
    if who in ("learner", *INSIDERS):
        return await signed_in_browser(app, who)
    client = browser_client(app)
    if who == "visitor":
        await client.post("/en/session", params={"lesson": "small/first"})
    return client


@pytest.fixture(params=OUTSIDERS)
async def outsider(app: FastAPI, supervisor: ScriptedSupervisor, request: Any) -> AsyncIterator[httpx.AsyncClient]:
    async with aclosing(await asker(app, request.param)) as client:
        yield client


@pytest.fixture(params=INSIDERS)
async def insider(app: FastAPI, supervisor: ScriptedSupervisor, request: Any) -> AsyncIterator[httpx.AsyncClient]:
    async with aclosing(await asker(app, request.param)) as client:
        yield client


async def until_finished(client: httpx.AsyncClient, run: str) -> None:
    async with asyncio.timeout(10):
        while (await client.get(run)).json()["state"] != "finished":  # noqa: ASYNC110
            await asyncio.sleep(0.01)


async def a_comment(db: Database, author: Account, lesson: str = DRAFT, thread: str | None = None) -> Comment:
    draft = CommentDraft(lesson, "", thread, f"{WORDS} @{author.handle}", f"{lesson}{thread}", "en")
    async with db.writing() as session:
        return await editing.create_comment(session, author, draft)


def bound(app: FastAPI, comment_id: str) -> list[tuple[str, str, str]]:
    """Name, method and path of every route that names a lesson or a comment in its path."""
    parts = {
        "lang": "en",
        "course": "small",
        "slug": "treasure",
        "comment_id": comment_id,
        "name": "map.png",
        "form": "py",
        "check": "0",
        "count": "1",
        "run_id": "0",
        "group_id": "0" * 32,
        "review_id": "0",
    }
    parts |= {"action": "report"}
    found = []
    for route in all_routes(app):
        if isinstance(route, Route) and re.search(r"\{(slug|comment_id)[:}]", route.path) and route.name not in ENDLESS:
            path = re.sub(r"\{(\w+)(?::\w+)?\}", lambda part: parts[part[1]], route.path)
            method = sorted((route.methods or {"GET"}) - {"HEAD"})[0]
            found.append((route.name, method, path))
    return found


def seen(answer: httpx.Response, *names: str) -> tuple[int, str]:
    """The response, without the requested names."""
    body = re.sub(r"[0-9a-f]{12,}", "", answer.text)
    for name in names:
        body = body.replace(name, "NAME")
    return answer.status_code, body


async def test_no_route_tells_a_draft_from_a_lesson_that_does_not_exist(
    app: FastAPI, outsider: httpx.AsyncClient
) -> None:
    teacher = await store_account(app.state.db, "instructor", name="Grace Hopper")
    comment = await a_comment(app.state.db, teacher)
    routes = bound(app, comment.id)
    assert {*OWN_FILES, "export", "comments", "comment"} <= {name for name, *_ in routes}

    for name, method, path in routes:
        nowhere = path.replace("treasure", "nowhere").replace(comment.id, "0" * len(comment.id))
        fields = {"text": "Hello", "helpful": "yes", "add": "helpful", "verb": "pin"} if method == "POST" else None
        for headers in (HTML, {"accept": "application/json"}):
            there = await outsider.request(method, path, data=fields, headers=headers)
            not_there = await outsider.request(method, nowhere, data=fields, headers=headers)
            assert seen(there, "treasure", comment.id) == seen(not_there, "nowhere", "0" * len(comment.id)), name
            elsewhere = name.endswith("_again")  # to the page of a form, which says whether there is one
            assert there.status_code in (401, 403, 404) or elsewhere or "/sign-in?" in there.headers["location"], name
            assert WORDS not in there.text, name
            assert TITLE not in there.text, name


async def test_to_instructors_a_draft_answers_as_any_lesson_does(app: FastAPI, insider: httpx.AsyncClient) -> None:
    author = await store_account(app.state.db, name="Bob")
    of_draft, of_other = [(await a_comment(app.state.db, author, lesson)).id for lesson in (DRAFT, "small/first")]
    for name, method, path in bound(app, of_draft):
        answer = await insider.request(method, path, headers=HTML)
        if path.startswith("/api/"):  # it heeds no cookie, so it knows no instructor
            assert answer.status_code == 404, name
            continue
        other = path.replace(of_draft, of_other).replace("treasure", "first")
        if name not in ("lesson_asset", "lesson_cover"):  # the other lesson has none
            assert answer.status_code == (await insider.request(method, other, headers=HTML)).status_code, name
        if name in (*OWN_FILES, "export", "comments", "comment", "lesson_end"):
            assert answer.status_code == 200, name
        if name in OWN_FILES:
            assert answer.headers["cache-control"] == "no-store", name


async def test_no_page_names_a_draft_to_anyone_else_whoever_was_there_before(
    app: FastAPI, supervisor: ScriptedSupervisor
) -> None:
    outside = [await asker(app, who) for who in OUTSIDERS]
    inside = [await asker(app, who) for who in INSIDERS]
    for path in (*PUBLIC_PAGES, "/en/courses/small/treasure", *PUBLIC_PAGES):
        for teacher in inside:
            page = await teacher.get(path, headers=HTML)
            assert TITLE in page.text, path
            assert page.headers["cache-control"] == "no-store"
            assert "etag" not in page.headers
        for client in outside:
            page = await client.get(path, headers=HTML)
            assert "treasure" not in page.text or path.endswith("treasure"), path
            assert TITLE not in page.text, path
            assert "cellar" not in page.text, path
    for client in (*outside, *inside):
        await client.aclose()


async def test_lessons_are_numbered_as_those_who_read_them_see_them(app: FastAPI, client: httpx.AsyncClient) -> None:
    assert "Lesson 1 of 1" in (await client.get("/en/courses/small/first")).text
    assert "1 lesson " in (await client.get("/en/courses/small")).text
    async with await signed_in_browser(app, "instructor") as teacher:
        assert "Lesson 2 of 2" in (await teacher.get("/en/courses/small/first")).text
        assert "2 lessons" in (await teacher.get("/en/courses/small")).text


@pytest.mark.parametrize(
    ("language", "words", "chip"),
    [
        ("en", "Draft: only instructors can see this.", "draft"),
        ("ko", "초안: 강사만 볼 수 있습니다.", "초안"),
        ("zh", "草稿：仅讲师可见。", "草稿"),
    ],
)
async def test_a_draft_says_that_it_is_one(app: FastAPI, language: str, words: str, chip: str) -> None:
    async with await signed_in_browser(app, "instructor") as teacher:
        page = (await teacher.get(f"/{language}/courses/small/treasure")).text
        assert f"<strong>{words}</strong>" in page
        for path in (f"/{language}/courses/small/first", f"/{language}/courses/small", f"/{language}/"):
            mark = f'<span class="chip draft-chip" title="{words}">{chip}</span>'
            assert mark in (await teacher.get(path)).text, path


async def test_cells_of_a_draft_run_for_instructors_only_and_earn_nothing(
    app: FastAPI, supervisor: ScriptedSupervisor, outsider: httpx.AsyncClient
) -> None:
    asked = {"lesson": DRAFT, "cell": "dig", "code": "print(1)"}
    assert (await outsider.post("/runs", json=asked)).status_code == 404
    for method, path in (("GET", ""), ("POST", ""), ("POST", "/restart"), ("POST", "/keep"), ("POST", "/interrupt")):
        for lesson in (DRAFT, NOWHERE):
            answer = await outsider.request(method, f"/en/session{path}", params={"lesson": lesson})
            assert answer.status_code == 404, path
    async with await signed_in_browser(app, "instructor") as teacher:
        answer = await teacher.post("/runs", json=asked)
        assert answer.status_code == 202
        assert (await teacher.get("/en/session", params={"lesson": DRAFT})).status_code == 200
        address = f"/runs/{answer.json()['id']}"
        await supervisor.finish(await supervisor.run(answer.json()["id"]))
        await until_finished(teacher, address)
    async with app.state.db.session() as session:
        assert await session.scalar(select(func.count()).select_from(LedgerEntry)) == 0


async def test_a_draft_does_not_count_for_the_course(app: FastAPI) -> None:
    terms = app.state.progress.terms()
    assert terms.courses["small"].lessons == ("small/first",)
    assert "cellar" not in terms.courses
    assert not app.state.progress.counts(DRAFT)


async def test_notifications_about_drafts_go_to_instructors_only(app: FastAPI) -> None:
    db: Database = app.state.db
    teacher, other = [await store_account(db, "instructor", name=name) for name in ("Grace Hopper", "Prof")]
    learner = await store_account(db, name="Ada")
    async with db.writing() as session:  # from when the lesson was still published
        comment = await editing.create_comment(
            session, teacher, CommentDraft("small/first", "", None, WORDS, "k", "en")
        )
        await session.execute(update(Comment).values(lesson=DRAFT))
        await notifications.notify(session, [learner.id, other.id], NotificationKind.mention, comment.id, teacher.id)
    for account, told in ((learner, False), (other, True)):
        async with await signed_in_browser(app, account) as client:
            for path in ("/en/notifications", f"/en/learners/{teacher.handle}/comments"):
                answer = await client.get(path, headers=HTML)
                assert (WORDS in answer.text) is told, path
                assert (TITLE in answer.text) is (told and "notifications" in path)
            handles = await client.get("/en/comment-handles", params={"lesson": DRAFT, "begins": "g"})
            assert bool(handles.json()) is told


async def test_nobody_replies_in_a_thread_of_a_draft_by_way_of_another_lesson(app: FastAPI) -> None:
    root = await a_comment(app.state.db, await store_account(app.state.db, "instructor", name="Grace Hopper"))
    async with await signed_in_browser(app) as learner:
        answer = await learner.post("/en/courses/small/first/comments", data={"text": "Let me in", "thread": root.id})
    assert answer.status_code == 422
    async with app.state.db.session() as session:
        assert (await session.get_one(Comment, root.id)).reply_count == 0


async def test_progress_and_feedback_say_nothing_of_drafts(app: FastAPI, outsider: httpx.AsyncClient) -> None:
    for path in ("/en/progress?course=cellar", "/en/progress/outline?course=cellar"):
        assert (await outsider.get(path)).status_code == 404
    states = (await outsider.get("/en/progress/outline?course=small")).json()["lessons"]
    assert [state["slug"] for state in states] == ["first"]
    mark = {"lesson": DRAFT, "opened_at": 1, "last_seen_at": 1, "end_reached_at": 1}
    kept = await outsider.post("/progress/reading", json={"lessons": [mark]})
    assert kept.status_code == 204 or kept.json() == {"kept": 0}
    form = await outsider.get("/en/feedback?page=/en/courses/small/treasure&cell=dig")
    assert TITLE not in form.text
    async with await signed_in_browser(app, "instructor") as teacher:
        for path in ("/en/progress?course=cellar", "/en/progress/outline?course=cellar", "/en/courses/cellar"):
            assert (await teacher.get(path)).status_code == 200


async def test_a_lesson_that_goes_back_to_draft_leaves_the_kept_pages_at_once(
    app: FastAPI, settings: Settings, client: httpx.AsyncClient
) -> None:
    page = "/en/courses/small/treasure"
    for status, expected in (("status: published\n", 200), ("status: draft\n", 404), ("status: deprecated\n", 200)):
        publish(settings, status)
        app.state.catalog.reload()
        assert (await client.get(page)).status_code == expected
        assert (TITLE in (await client.get("/en/")).text) is (expected == 200)


async def test_a_scheduled_lesson_is_a_draft_until_its_time(
    app: FastAPI, settings: Settings, client: httpx.AsyncClient
) -> None:
    page = "/en/courses/small/treasure"
    publish(settings, "status: published\npublish_at: 2999-01-01T09:00+09:00\n")
    app.state.catalog.reload()
    async with await signed_in_browser(app, "instructor") as teacher:
        shown = (await teacher.get(page)).text
        assert "Scheduled: only instructors can see this." in shown
        assert "Learners can see it from Jan 1, 2999, 12:00:00\u202fAM (UTC)." in shown
        assert TITLE in (await teacher.get("/en/search?q=palm")).text
    assert (await client.get(page)).status_code == 404
    for elsewhere in (*PUBLIC_PAGES, "/en/search?q=palm"):
        assert TITLE not in (await client.get(elsewhere)).text, elsewhere
    assert app.state.catalog.with_drafts.snapshot.next_publication.year == 2999

    publish(settings, "status: published\npublish_at: 2026-01-01\n")
    app.state.catalog.reload()
    shown = (await client.get(page)).text
    assert TITLE in shown
    assert "Scheduled" not in shown


async def test_a_draft_whose_first_version_has_a_mistake_is_not_announced(
    app: FastAPI, settings: Settings, client: httpx.AsyncClient
) -> None:
    (settings.lessons_dir / DRAFT / "lesson.md").write_text("---\ntitle: 1\nminutes: many\n---\n")
    shutil.rmtree(settings.last_good_courses)  # of an earlier version
    fresh = create_app(settings)
    fresh.state.catalog.reload()
    async with fresh.router.lifespan_context(fresh), browser_client(fresh) as reader:
        assert "treasure" not in (await reader.get("/en/courses/small")).text
        assert (await reader.get("/en/courses/small/treasure")).status_code == 404
    (settings.lessons_dir / DRAFT / "lesson.md").write_text("---\nstatus: published\ntitle: 1\nminutes: many\n---\n")
    fresh.state.catalog.reload()
    assert fresh.state.catalog.hidden == {"cellar/wine"}, "of one that is published, it is said that it is not there"


async def test_lessons_are_read_while_the_database_is_away(app: FastAPI, monkeypatch: pytest.MonkeyPatch) -> None:
    async with await signed_in_browser(app, "instructor") as teacher:

        def away(*_asked: object) -> None:
            raise OSError("the database is away")

        for way in ("session", "read"):
            monkeypatch.setattr(app.state.db, way, away)
        page = await teacher.get("/en/courses/small/first")
        assert page.status_code == 200
        assert TITLE not in page.text
