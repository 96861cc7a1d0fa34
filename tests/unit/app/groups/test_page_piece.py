"""A learner's deadlines on the pages of a course: theirs only, in their language and time zone, and never cached."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from sqlalchemy import update

from app.accounts.models import Account, Role
from app.db import Database, now
from app.groups.models import Group, GroupDeadline, GroupMember, GroupRole
from app.groups.service import day_after
from app.lessons.dependencies import CATALOG
from app.progress.events import LearningEvent
from app.progress.service import PROGRESS
from app.settings import Settings
from app.web.dependencies import DATABASE
from tests.factories.accounts import signed_in_browser, store_account
from tests.factories.browser_client import browser_client
from tests.factories.classroom import where_it_is_noon
from tests.factories.course import LESSON

GROUP = "a" * 32
LESSON_PIECES = "/en/pieces?course=small&lesson=first"
COURSE_PIECES = "/en/pieces?course=small"
HTMX = {"hx-request": "true"}


class Course:
    """A group whose learner, Ada, has deadlines."""

    def __init__(self, app: FastAPI, running: AsyncExitStack) -> None:
        self.app = app
        self.db: Database = DATABASE.get(app)
        self._running = running
        self.zone = where_it_is_noon()  # no day ends during a test

    def midnight(self, days: int) -> datetime:
        """The end of a day, so many days after today."""
        return day_after(now().astimezone(self.zone).date() + timedelta(days=days), self.zone)

    async def browser(self, account: Account | str = Role.learner) -> httpx.AsyncClient:
        return await self._running.enter_async_context(await signed_in_browser(self.app, account))

    async def nobody(self) -> httpx.AsyncClient:
        return await self._running.enter_async_context(browser_client(self.app))

    async def add_group(self, group_id: str = GROUP, name: str = "Autumn", **facts: Any) -> None:
        row = {"course": "small", "time_zone": "UTC", "starts_at": None, "ends_at": None, "created_at": now()} | facts
        async with self.db.writing() as session:
            session.add(Group(id=group_id, name=name, **row))

    async def add_member(self, account: Account, role: GroupRole = GroupRole.learner, group_id: str = GROUP) -> None:
        async with self.db.writing() as session:
            session.add(GroupMember(group_id=group_id, account_id=account.id, role=role, joined_at=now(), note=""))

    async def set_deadline(
        self, due_at: datetime, exercise: str = "", lesson: str = LESSON, group_id: str = GROUP
    ) -> None:
        async with self.db.writing() as session:
            await session.merge(GroupDeadline(group_id=group_id, lesson=lesson, exercise=exercise, due_at=due_at))

    async def change(self, statement: Any) -> None:
        async with self.db.writing() as session:
            await session.execute(statement)

    async def award(self, account: Account, *facts: LearningEvent) -> None:
        async with self.db.writing() as session:
            await PROGRESS.get(self.app).ledger.award(session, account.learner_id, facts)


@pytest.fixture
async def course(app: FastAPI) -> AsyncIterator[Course]:
    async with AsyncExitStack() as running:
        yield Course(app, running)


@pytest.fixture
async def ada(course: Course) -> Account:
    account = await store_account(course.db, name="Ada")
    await course.change(update(Account).where(Account.id == account.id).values(time_zone=course.zone.key))
    await course.add_group()
    await course.add_member(account)
    return account


async def ask(browser: httpx.AsyncClient, path: str = LESSON_PIECES) -> str:
    answer = await browser.get(path, headers=HTMX)
    assert answer.status_code == 200, answer.text
    assert answer.headers["cache-control"] == "no-store"
    return answer.text


async def test_only_the_learner_of_the_group_sees_its_deadlines(course: Course, ada: Account) -> None:
    await course.set_deadline(course.midnight(3))
    people = [await store_account(course.db, role) for role in (Role.learner, Role.instructor, Role.admin)]
    await course.add_member(people[1], GroupRole.instructor)
    browsers = [await course.browser(person) for person in people]
    browsers.append(await course.nobody())

    for path in (LESSON_PIECES, COURSE_PIECES, LESSON_PIECES):
        assert "due in 3 days" in await ask(await course.browser(ada), path)
        for other in browsers:
            text = await ask(other, path)
            assert "due in" not in text
            assert 'hx-target="#deadlines"' not in text
    assert "due in" not in await ask(await course.browser(ada), "/en/pieces?course=other")
    assert "due in" not in await ask(await course.browser(ada), "/en/pieces?course=small&lesson=second")
    assert "due in" not in await ask(await course.browser(ada), "/en/pieces")


async def test_the_pages_themselves_are_the_same_for_everyone(course: Course, ada: Account) -> None:
    await course.set_deadline(course.midnight(3))
    own, nobody = await course.browser(ada), await course.nobody()

    for path in ("/en/courses/small/first", "/en/courses/small"):
        page = (await own.get(path)).text
        assert '<div id="deadlines"></div>' in page
        assert "due in" not in page
        assert (await nobody.get(path)).text == page


async def test_a_deadline_says_how_many_days_are_left_or_that_it_has_passed(course: Course, ada: Account) -> None:
    browser = await course.browser(ada)
    said = {-1: "was due", 0: "due today", 1: "due tomorrow", 2: "due in 2 days", 40: "due in 40 days"}
    for days, words in said.items():
        await course.set_deadline(course.midnight(days))
        text = await ask(browser)
        assert f">{words}</b>" in text
        assert ('class="is-overdue"' in text) == (days < 0)


async def test_a_deadline_is_in_the_readers_language_and_time_zone(course: Course, ada: Account) -> None:
    await course.set_deadline(datetime(2150, 3, 31, 15, tzinfo=UTC))  # the end of March 31 in Seoul
    browser = await course.browser(ada)

    await course.change(update(Account).where(Account.id == ada.id).values(time_zone="UTC"))
    assert ">Mar 31, 2150, 3:00:00\u202fPM</time>" in await ask(browser)
    await course.change(update(Account).where(Account.id == ada.id).values(time_zone="Asia/Seoul"))
    assert ">Mar 31, 2150</time>" in await ask(browser)
    korean = await ask(browser, LESSON_PIECES.replace("/en/", "/ko/"))
    assert ">2150. 3. 31.</time>" in korean
    assert "마감까지" in korean
    assert ">2150年3月31日</time>" in await ask(browser, LESSON_PIECES.replace("/en/", "/zh/"))


async def test_what_is_done_says_so_at_once_and_leaves_the_course_map(course: Course, ada: Account) -> None:
    await course.set_deadline(course.midnight(3))
    await course.set_deadline(course.midnight(4), exercise="hello")
    browser = await course.browser(ada)
    assert "Say hello" in await ask(browser, COURSE_PIECES)

    await course.award(ada, LearningEvent("exercise", f"{LESSON}#hello", 10))
    assert ">done</b>" in await ask(browser)
    text = await ask(browser, COURSE_PIECES)
    assert "Say hello" not in text
    assert "due in 3 days" in text
    await course.award(ada, LearningEvent("lesson", LESSON, 10))
    assert "due in 3 days" not in await ask(browser, COURSE_PIECES)
    assert (await ask(browser, "/en/groups/deadlines?course=small&lesson=first")).count(">done</b>") == 2


async def test_changes_by_the_staff_are_seen_at_once(course: Course, ada: Account) -> None:
    browser = await course.browser(ada)
    await course.set_deadline(course.midnight(3))
    assert "due in 3 days" in await ask(browser)
    await course.set_deadline(course.midnight(5))
    assert "due in 5 days" in await ask(browser)
    await course.change(update(Group).values(ends_at=now() - timedelta(seconds=1)))
    assert "due in" not in await ask(browser), "the group is over"
    await course.change(update(Group).values(ends_at=None))
    assert "due in 5 days" in await ask(browser)
    await course.change(update(GroupMember).values(role=GroupRole.assistant))
    assert "due in" not in await ask(browser), "no longer a learner"


async def test_a_lesson_that_learners_cannot_see_is_not_named(course: Course, ada: Account, settings: Settings) -> None:
    await course.set_deadline(course.midnight(3))
    await course.set_deadline(course.midnight(3), lesson="small/gone")
    file = settings.lessons_dir / LESSON / "lesson.md"
    browser = await course.browser(ada)
    assert (await ask(browser, COURSE_PIECES)).count("due in 3 days") == 1

    file.write_text(file.read_text().replace("status: published", "status: draft"))
    CATALOG.get(course.app).reload()
    assert "The first lesson" not in await ask(browser, COURSE_PIECES)
    assert "The first lesson" not in await ask(browser, "/en/groups/deadlines?course=small")


async def test_a_learner_in_two_groups_sees_which_one_a_deadline_is_of(course: Course, ada: Account) -> None:
    await course.set_deadline(course.midnight(3))
    await course.add_group("b" * 32, "<b>Spring</b>")
    await course.add_member(ada, group_id="b" * 32)
    browser = await course.browser(ada)
    assert "Autumn" not in await ask(browser)

    await course.set_deadline(course.midnight(9), group_id="b" * 32)
    text = await ask(browser)
    assert "Autumn" in text
    assert "&lt;b&gt;Spring" in text


async def test_a_course_map_shows_the_nearest_deadlines_and_where_all_are(course: Course, ada: Account) -> None:
    for number in range(20):
        await course.set_deadline(course.midnight(number + 2), exercise=f"cell-{number}")
    text = await ask(await course.browser(ada), COURSE_PIECES)

    assert [number for number in range(20) if f">due in {number + 2} days<" in text] == list(range(6))
    assert f'href="/en/groups/{GROUP}/me"' in text


async def test_nobody_else_can_ask_for_deadlines(course: Course, ada: Account) -> None:
    await course.set_deadline(course.midnight(3))
    path = "/en/groups/deadlines?course=small&lesson=first"
    async with browser_client(course.app) as nobody:
        assert (await nobody.get(path, headers=HTMX)).status_code == 401
    stranger = await course.browser()
    assert "due" not in await ask(stranger, path)
    assert (await stranger.get("/en/groups/deadlines?course=%00&lesson=%00", headers=HTMX)).status_code == 200
