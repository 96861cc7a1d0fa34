"""The bell and the list of notifications in a real browser."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.async_api import Page, Request, expect
from sqlalchemy import make_url

from app.accounts.models import Account
from app.accounts.signing import load_secrets
from app.comments import editing
from app.comments.editing import CommentDraft
from app.db import Database, now
from app.notifications.models import NotificationKind
from app.notifications.unsubscribe_links import UnsubscribeRequest, UnsubscribeTokens
from tests.browser.accessibility import (
    assert_accessible,
    assert_accessible_everywhere,
    assert_fits,
    assert_fits_phones_in,
)
from tests.browser.conftest import Visitor, VisitorFactory
from tests.browser.network_control import wait_for_requests
from tests.browser.signed_in_visitors import admit_signed_in

COURSE = "distributed-tensorflow"
LESSON = f"{COURSE}/distribution-strategies"
HOSTILE = 'Bob <img src=x onerror="window.caught=1">'
STREAM = "/notifications/stream"


async def ask(visitor: Visitor, account: Account) -> str:
    """Ask a question as this person; returns its id."""
    db = Database(visitor.site.database)
    async with db.writing() as session:
        comment = await editing.create_comment(
            session, account, CommentDraft(LESSON, "", None, f"Why is it four? {now()}", "", "en")
        )
    await db.close()
    return comment.id


async def answer(hall: VisitorFactory, thread: str, name: str = "Bob") -> None:
    """Answer it as a new person, over HTTP."""
    bob, account = await admit_signed_in(hall, name)
    url = bob.site.url(f"/en/courses/{COURSE}/distribution-strategies/comments")
    form: dict[str, str | float | bool] = {
        "thread": thread,
        "text": f"Because {account.handle} says so",
        "key": account.id,
    }
    answered = await bob.context.request.post(url, form=form, headers={"sec-fetch-site": "same-origin"})
    assert answered.status == 200, await answered.text()


def streams(page: Page, kept: list[str]) -> None:
    """Record every stream that a page opens."""

    def note(request: Request) -> None:
        if request.url.endswith(STREAM):
            kept.append(page.url)

    page.on("request", note)


async def test_the_bell_counts_live_in_every_tab_with_one_stream_and_is_read_out(hall: VisitorFactory) -> None:
    ada, account = await admit_signed_in(hall, "Ada Byron")
    thread = await ask(ada, account)
    asked: list[str] = []
    first = await ada.page()
    streams(first, asked)
    async with first.expect_request(f"**{STREAM}"):
        await first.goto(ada.site.url("/en/"))
    second = await ada.page()
    streams(second, asked)
    await second.goto(ada.site.url("/ko/"))
    bells = [page.locator("#bell .bell-link") for page in (first, second)]
    await expect(bells[0]).to_have_accessible_name("Notifications: none unread")
    await expect(bells[1]).to_have_accessible_name("알림: 모두 읽음")

    await answer(hall, thread, HOSTILE)
    await expect(bells[0]).to_have_accessible_name("Notifications: 1 unread")
    await expect(bells[1]).to_have_accessible_name("알림: 읽지 않은 것 1건")
    await expect(first.locator("#announcements")).to_have_text("Notifications: 1 unread")
    await answer(hall, thread)
    await expect(bells[1].locator(".bell-count")).to_have_text("2")
    assert len(asked) == 1, "one stream serves both tabs"

    await first.close()
    await answer(hall, thread, "Cy")
    await expect(bells[1].locator(".bell-count")).to_have_text("3", timeout=15_000)
    assert len(asked) == 2, "the other tab has taken over"

    await bells[1].click()
    await second.get_by_role("button", name="모두 읽음으로 표시").click()
    await expect(second.locator("#bell .bell-link")).to_have_accessible_name("알림: 모두 읽음")
    assert await second.evaluate("window.caught") is None


async def test_a_stranger_has_no_bell_and_asks_for_no_stream(hall: VisitorFactory) -> None:
    visitor = await hall.admit()
    asked: list[str] = []
    page = await visitor.page()
    streams(page, asked)
    await page.goto(visitor.site.url("/en/"))
    await expect(page.get_by_role("link", name="Sign in")).to_be_visible()
    await wait_for_requests(page)
    assert await page.locator("#bell").count() == 0
    assert asked == []


async def test_notifications_are_read_by_keyboard_and_lead_to_the_comment(hall: VisitorFactory) -> None:
    ada, account = await admit_signed_in(hall, "Ada Byron")
    thread = await ask(ada, account)
    await answer(hall, thread, HOSTILE)
    page = await ada.open("/en/notifications")
    link = page.get_by_role("link", name="replied in one of your threads")
    await link.focus()
    await page.keyboard.press("Enter")
    await expect(page.locator(".comment.asked-for")).to_contain_text("Because")
    await page.goto(ada.site.url("/en/notifications"))
    await expect(page.locator(".notification-list .is-read")).to_have_count(1)
    assert await page.evaluate("window.caught") is None


async def test_the_list_works_without_a_script(hall: VisitorFactory) -> None:
    ada, account = await admit_signed_in(hall, "Ada Byron", script=False)
    await answer(hall, await ask(ada, account))
    page = await ada.open("/en/notifications")
    await expect(page.locator(".notification-list .is-unread")).to_contain_text("unread")
    await page.get_by_role("button", name="Mark as read", exact=False).first.click()
    await expect(page.locator(".notification-list .is-read")).to_have_count(1)
    await expect(page.get_by_role("button", name="Mark all as read")).to_have_count(0)


async def test_axe_finds_nothing_in_the_list(hall: VisitorFactory) -> None:
    ada, account = await admit_signed_in(hall, "Ada Byron")
    thread = await ask(ada, account)
    for name in ("Bob", HOSTILE, "Somebody with a rather long name who writes"):
        await answer(hall, thread, name)
    page = await ada.open("/en/notifications")
    await expect(page.locator("#bell .bell-count")).to_have_text("3")

    await assert_accessible_everywhere(page, "notifications")
    await assert_fits_phones_in("ko", page, [ada.site.url("/ko/notifications")])


async def test_the_bell_has_room_in_the_narrowest_bar(hall: VisitorFactory) -> None:
    ada, account = await admit_signed_in(hall, "Ada Byron", width=360)
    await answer(hall, await ask(ada, account))
    page = await ada.open(f"/en/courses/{COURSE}/distribution-strategies")
    bell = page.locator("#bell .bell-link")
    await expect(bell.locator(".bell-count")).to_have_text("1")
    box = await bell.bounding_box()
    assert box
    assert min(box["width"], box["height"]) >= 36
    assert box["x"] + box["width"] <= 360
    await assert_fits(page)


@pytest.mark.parametrize(("script", "width"), [(True, 1280), (False, 360)], ids=["desk", "phone without a script"])
async def test_a_link_in_an_email_unsubscribes_somebody_who_is_signed_out(
    hall: VisitorFactory, script: bool, width: int
) -> None:
    _, account = await admit_signed_in(hall, "Ada Byron")
    reader = await hall.admit(width=width, dark=not script, script=script)
    data = Path(str(make_url(reader.site.database).database)).parent
    token = UnsubscribeTokens(*load_secrets(data / "secrets" / "unsubscribe")).sign(
        UnsubscribeRequest(account.id, NotificationKind.reply)
    )
    page = await reader.open(f"/en/unsubscribe/{token}")
    if script:
        await assert_accessible_everywhere(page, "unsubscribe")
    await page.get_by_role("button", name="Stop emails about replies").click()
    await expect(page.get_by_role("status").first).to_have_text("You will no longer get emails about replies.")
    if script:
        await assert_accessible(page, "unsubscribed")
    else:
        await assert_fits(page)
