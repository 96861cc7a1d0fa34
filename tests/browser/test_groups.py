"""Groups in a real browser: an instructor invites, a learner joins by the link and agrees; pages are accessible."""

from __future__ import annotations

import secrets
from datetime import timedelta

import pytest
from playwright.async_api import ViewportSize, expect

from app.accounts.models import Account, Role
from app.db import Database, now
from app.groups.models import Group, GroupDeadline, GroupMember
from app.groups.service import day_start
from app.progress.models import LessonProgress
from app.runs.models import RunEvent, RunState
from tests.browser.accessibility import assert_accessible_everywhere, assert_fits_phones_in
from tests.browser.conftest import VisitorFactory
from tests.browser.signed_in_visitors import admit_signed_in
from tests.factories.classroom import where_it_is_noon
from tests.factories.stored_runs import store_run

COURSE, LESSON, CELL = "distributed-tensorflow", "distribution-strategies", "strategy"
ERROR = '{"kind":"error","seq":1,"at_ms":1,"name":"ValueError","value":"no","frames":[]}'


async def worked(url: str, learner_id: str) -> None:
    """Store a lesson that was opened, a run that failed, and one that met a limit."""
    db = Database(url)
    key = f"{COURSE}/{LESSON}"
    facts = {"learner_id": learner_id, "lesson": key, "cell": CELL, "state": RunState.finished, "outcome": "error"}
    run = await store_run(db, **facts, code="print(undefined)")
    await store_run(db, **facts | {"outcome": "memory"}, code="x = bytearray(10**12)")
    async with db.writing() as session:
        session.add(RunEvent(run_id=run, seq=1, kind="error", at_ms=1, payload=ERROR))
        session.add(LessonProgress(learner_id=learner_id, lesson=key, started_at=now(), last_seen_at=now(), anchor=""))
    await db.close()


@pytest.mark.long
async def test_a_learner_sees_deadlines_on_the_lesson_and_on_the_course_map(hall: VisitorFactory) -> None:
    ada, account = await admit_signed_in(hall, "Ada Byron")
    group = secrets.token_hex(16)
    zone = where_it_is_noon()  # no day ends during the test
    due_at = day_start(now().astimezone(zone).date() + timedelta(days=4), zone)
    db = Database(ada.site.database)
    async with db.writing() as session:
        (await session.get_one(Account, account.id)).time_zone = zone.key
        session.add(Group(id=group, name="Autumn", course=COURSE, time_zone="UTC", created_at=now()))
        await session.flush()
        session.add(GroupMember(group_id=group, account_id=account.id, role="learner", joined_at=now(), note=""))
        for exercise in ("", CELL):
            session.add(GroupDeadline(group_id=group, lesson=f"{COURSE}/{LESSON}", exercise=exercise, due_at=due_at))
    await db.close()
    page = await ada.page()

    for path, shown in ((f"/en/courses/{COURSE}/{LESSON}", "This lesson"), (f"/en/courses/{COURSE}", "All deadlines")):
        await page.goto(ada.site.url(path))
        await expect(page.locator("#deadlines li")).to_have_count(2)
        await expect(page.locator("#deadlines")).to_contain_text("due in 3 days")
        await expect(page.locator("#deadlines")).to_contain_text(shown)
        await assert_accessible_everywhere(page, f"deadlines on {path}")


async def test_a_class_joins_by_a_link_and_its_pages_are_accessible(hall: VisitorFactory) -> None:
    grace, _ = await admit_signed_in(hall, "Grace Hopper", Role.instructor)
    ada, account = await admit_signed_in(hall, "Ada Byron")
    teacher, learner = await grace.page(), await ada.page()
    in_seoul = {"timezoneId": "Asia/Seoul"}
    await (await grace.context.new_cdp_session(teacher)).send("Emulation.setTimezoneOverride", in_seoul)
    await teacher.goto(grace.site.url("/en/groups"))
    await expect(teacher.get_by_label("Time zone")).to_have_value("Asia/Seoul")
    await assert_accessible_everywhere(teacher, "groups")
    await teacher.get_by_label("Name").fill("Autumn")
    await teacher.get_by_role("button", name="Create the group").click()
    await teacher.get_by_role("button", name="Make a link").click()
    link = await teacher.get_by_label("Your new link").input_value()
    await teacher.evaluate("scrollTo(0, 0)")  # the address leads to the link, and the top bar lies over half of a tab
    await assert_accessible_everywhere(teacher, "group settings")
    group = teacher.url.partition("/settings")[0]

    await learner.goto(link)
    await assert_accessible_everywhere(learner, "joining a group")
    await learner.get_by_label("Show my code").check()
    await learner.get_by_role("button", name="Join the group").click()
    await expect(learner).to_have_url(f"{group}/me")
    await worked(grace.site.database, account.learner_id)
    await learner.reload()
    await expect(learner.get_by_text("ValueError")).to_be_visible()
    await assert_accessible_everywhere(learner, "own page of a group")
    await learner.goto(grace.site.url("/en/groups"))
    await expect(learner.get_by_text("They see your code.")).to_be_visible()
    await assert_accessible_everywhere(learner, "own groups")
    await learner.get_by_role("link", name="Leave the group").click()
    await assert_accessible_everywhere(learner, "leaving a group")

    cell = f"cells/errors?lesson={COURSE}%2F{LESSON}&cell={CELL}"
    paths = ["reports/lessons", "reports/errors", "reports/questions", "learners", f"learners/{account.id}", cell]
    paths.append(f"settings/members/{account.id}/remove")
    for path in paths:
        await teacher.goto(f"{group}/{path}")
        await expect(teacher.locator(".settings-nav [aria-current]")).to_have_count(1)
        await assert_accessible_everywhere(teacher, f"group {path.partition('?')[0]}")
    await teacher.goto(f"{group}/{cell}")
    await expect(teacher.get_by_text("print(undefined)")).to_be_visible()
    wide, phone = teacher.viewport_size, ViewportSize(width=390, height=844)
    await teacher.set_viewport_size(phone)
    learners, runs = [await number.bounding_box() for number in await teacher.locator(".stacks td").all()]
    assert learners
    assert runs
    assert (learners["y"], learners["x"] < 60 < runs["x"]) == (runs["y"], True)
    await expect(teacher.locator(".stacks td").first).to_have_css("text-align", "start")
    await teacher.goto(f"{group}/reports/limits")
    outcome, learners, _ = [await part.bounding_box() for part in await teacher.locator(".stacks td").all()]
    assert outcome
    assert learners
    assert outcome["width"] > 300, "a text has the whole width"
    assert learners["width"] < 150
    await teacher.goto(f"{group}/learners")
    name, handle = [await teacher.locator(f"tbody th {part}").bounding_box() for part in ("a", ".fine")]
    assert name
    assert handle
    assert (handle["x"], handle["y"] > name["y"]) == (name["x"], True)
    await teacher.goto(f"{group}/reports/lessons")
    await teacher.get_by_role("link", name="Stopped here").click()
    await expect(teacher.get_by_role("columnheader", name="Stopped here")).to_have_attribute("aria-sort", "descending")
    await teacher.goto(f"{group.replace('/en/', '/zh/')}/learners/{account.id}")
    heads = await teacher.locator(".group-table thead th").evaluate_all("all => all.map(head => head.offsetHeight)")
    assert max(heads) < 60, "no heading has one sign in each line"
    assert wide
    await teacher.set_viewport_size(wide)
    for language in ("ko", "zh"):
        translated = group.replace("/en/", f"/{language}/")
        own = [grace.site.url(f"/{language}/groups"), f"{translated}/me"]
        await assert_fits_phones_in(language, learner, own)
        await assert_fits_phones_in(language, teacher, [f"{translated}/{path}" for path in (*paths, "settings")])
