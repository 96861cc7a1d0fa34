"""Accessibility of pages that no other module opens: links in emails, forms, menus, lists, and refusals."""

from __future__ import annotations

import secrets
from pathlib import Path

import pytest
from playwright.async_api import Browser, expect
from sqlalchemy import make_url

from app.accounts.email_links import LinkPurpose, create_link
from app.accounts.models import Account, Role
from app.accounts.signing import SIGN_IN_SECRET, Signer, load_secrets
from app.comments import editing
from app.comments.editing import CommentDraft
from app.db import Database, now
from app.groups.models import Group, GroupMember
from app.progress.models import LedgerEntry
from tests.browser.accessibility import (
    PHONE,
    assert_accessible_everywhere,
    assert_fits_phones_in,
    assert_readable_in_both_themes,
)
from tests.browser.conftest import VisitorFactory
from tests.browser.loopback import Loopback
from tests.browser.signed_in_visitors import admit_signed_in
from tests.browser.site import Site

LESSON = "distributed-tensorflow/distribution-strategies"


async def made_ready(url: str, account: Account) -> dict[str, str]:
    """Give the account something to show; returns the pages that show it, by name."""
    db = Database(url)
    async with db.writing() as session:
        mine = await session.get_one(Account, account.id)
        mine.public_profile = True
        for kind, subject in (("achievement", "first-run"), ("lesson", LESSON), ("read", LESSON)):
            session.add(LedgerEntry(learner_id=mine.learner_id, kind=kind, subject=subject, xp=20, occurred_at=now()))
        text = f"Why four? {secrets.token_hex(4)}"
        comment = await editing.create_comment(session, mine, CommentDraft(LESSON, "", None, text, "", "en"))
        await editing.edit_comment(session, mine, comment.id, f"{text} Or eight?", 0)
        links = {purpose: await create_link(session, mine, purpose, mine.email) for purpose in LinkPurpose}
    await db.close()
    return {
        "profile": f"learners/{mine.handle}",
        "comments_by_author": f"learners/{mine.handle}/comments",
        "thread": f"comments/{comment.id}",
        "history": f"comments/{comment.id}/history",
        "reply": f"comments/{comment.id}/reply",
        "edit": f"comments/{comment.id}/forms/edit",
        "delete": f"comments/{comment.id}/forms/delete",
        "vote": f"courses/{LESSON}/helpful",
        "thanks": f"feedback/thanks?page=/en/courses/{LESSON}",
        **{f"link-{purpose}": f"email-link/{token}" for purpose, token in links.items()},
    }


async def test_axe_finds_nothing_on_pages_of_comments_profiles_and_mails(hall: VisitorFactory) -> None:
    ada, account = await admit_signed_in(hall, "Ada Byron")
    pages = await made_ready(ada.site.database, account)
    page = await ada.page()
    for name, path in pages.items():
        await page.goto(ada.site.url(f"/en/{path}"))
        await expect(page.get_by_role("heading", level=1)).to_be_visible()
        await assert_accessible_everywhere(page, name)
    await assert_fits_phones_in("ko", page, [ada.site.url(f"/ko/{path}") for path in pages.values()])


async def test_axe_finds_nothing_in_menus_and_sheets(hall: VisitorFactory) -> None:
    ada, _ = await admit_signed_in(hall, "Grace Hopper", Role.instructor)
    page = await ada.open(f"/en/courses/{LESSON}")
    await page.locator("button.account-button").click()
    await expect(page.locator("#account-menu")).to_be_visible()
    await assert_accessible_everywhere(page, "the menu of an instructor", "#account-menu")
    await page.keyboard.press("Escape")
    await page.locator("#cell-strategy .machine-button").click()
    await expect(page.locator("#cell-strategy .picker")).to_be_visible()
    await assert_accessible_everywhere(page, "the choice of a machine", "#cell-strategy .picker")
    await page.set_viewport_size(PHONE)
    await page.locator(".outline-button").click()
    await expect(page.locator("#outline")).to_be_visible()
    await assert_readable_in_both_themes(page, "the outline", "#outline")


async def test_axe_finds_nothing_in_suggested_names_and_refused_comments(hall: VisitorFactory) -> None:
    ada, account = await admit_signed_in(hall, "Grace Hopper")
    ada.tolerated += ["status of 422", "ERR_", "Failed to fetch", "htmx"]
    page = await ada.open(f"/en/courses/{LESSON}/comments")
    field, send = page.locator(".comments > form textarea"), page.locator(".comments > form button.primary")
    await field.fill(f"Here I am, {account.handle}")
    await send.click()
    await expect(page.locator(".thread", has_text=account.handle)).to_have_count(1)
    await field.press_sequentially(f"@{account.handle[:-1]}")
    await expect(page.locator(".suggestions").get_by_role("option").first).to_be_visible()
    await assert_accessible_everywhere(page, "the names suggested", ".comments > form")
    await page.keyboard.press("Escape")
    await field.fill(" ")
    await send.click()
    await expect(page.locator(".comment-error").first).not_to_be_empty()
    await assert_accessible_everywhere(page, "an empty comment", ".comments > form")
    await page.route("**/comments", lambda route: route.abort())
    await field.fill("Into the tunnel")
    await send.click()
    await expect(page.locator(".comment-error").first).to_contain_text("Your text is kept")
    await assert_accessible_everywhere(page, "a comment that could not be sent", ".comments > form")


async def test_axe_finds_nothing_where_something_was_refused(hall: VisitorFactory) -> None:
    bob, _ = await admit_signed_in(hall, "Bob Moore")
    bob.tolerated += ["status of 422", "status of 403", "status of 404"]
    page = await bob.page()
    paths = ("feedback/inbox", "comments/none/history", f"courses/{LESSON}/comments?before=~")
    for path in paths:
        await page.goto(bob.site.url(f"/en/{path}"))
        await assert_accessible_everywhere(page, path)
    await page.goto(bob.site.url("/en/settings"))
    await page.locator("#field-handle").fill("-")
    await page.locator("main form button").last.click()
    await expect(page.locator("#field-handle")).to_have_attribute("aria-invalid", "true")
    await assert_accessible_everywhere(page, "settings with a mistake")
    await assert_fits_phones_in("ko", page, [bob.site.url(f"/ko/{path}") for path in paths])


async def test_axe_finds_nothing_on_pages_that_answer_a_form_or_a_search(hall: VisitorFactory) -> None:
    grace, instructor = await admit_signed_in(hall, "Grace Hopper", Role.instructor)
    stranger, (_, learner) = await hall.admit(), await admit_signed_in(hall, "Ada Byron")
    bob, _ = await admit_signed_in(hall, "Bob Moore")
    word = secrets.token_hex(8)
    db = Database(grace.site.database)
    signer = Signer(load_secrets(Path(str(make_url(grace.site.database).database)).parent / "secrets" / SIGN_IN_SECRET))
    async with db.writing() as session:
        comment = await editing.create_comment(session, learner, CommentDraft(LESSON, "", None, word, "", "en"))
        course, group = LESSON.partition("/")[0], secrets.token_hex(16)
        session.add(Group(id=group, name="Autumn", course=course, time_zone="UTC", created_at=now()))
        await session.flush()
        session.add(GroupMember(group_id=group, account_id=instructor.id, role="instructor", joined_at=now(), note=""))
    await db.close()
    token = signer.sign("group reminders", group, learner.id)
    page = await grace.page()
    for path in (
        "search?q=gradient",
        f"search/comments?q={word}",
        f"groups/{group}/stopped?lesson={LESSON}",
        f"groups/{group}/reports/exercises",
        f"groups/{group}/reports/limits",
        f"groups/reminders/{group}/{learner.id}/{token}",
    ):
        await page.goto(grace.site.url(f"/en/{path}"))
        await expect(page.get_by_role("heading", level=1)).to_be_visible()
        await assert_accessible_everywhere(page, path)
    page = await bob.open(f"/en/comments/{comment.id}/forms/report")
    await page.locator(".comment-form textarea").fill("It is rude.")
    await page.evaluate("document.querySelector('.comment-form').submit()")  # as without a script
    await expect(page.get_by_role("heading", level=1)).to_have_text("Report")
    await assert_accessible_everywhere(page, "a comment that was reported")

    page = await stranger.open("/en/sign-up")
    await page.locator("#field-name").fill("Mary Somerville")
    await page.locator("#field-email").fill(f"{word}@example.org")
    await page.locator("#field-password").fill("correct horse battery")
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("heading", level=1)).to_have_text("Ask for your link")
    await assert_accessible_everywhere(page, "a new account without mail")


@pytest.mark.long
async def test_axe_finds_nothing_where_nobody_can_sign_up(chromium: Browser, network: Loopback) -> None:
    with Site(network=network, runner=False, sign_up="closed") as site:
        page = await (visitor := await VisitorFactory(chromium, site).admit()).page()
        visitor.tolerated.append("status of 403")
        await page.goto(site.url("/en/sign-up"))
        await expect(page.get_by_role("heading", level=1)).to_be_visible()
        await assert_accessible_everywhere(page, "sign-up that is closed")
        assert visitor.unexpected() == []
        await visitor.context.close()
