"""What a page shows of its viewer arrives in one response, and moves nothing."""

from __future__ import annotations

import asyncio
from urllib.parse import urlsplit

from playwright.async_api import Route, expect

from app.db import Database, now
from app.progress.models import LedgerEntry, LessonProgress
from tests.browser.conftest import VisitorFactory
from tests.browser.signed_in_visitors import admit_signed_in

COURSE = "distributed-tensorflow"
LESSON = f"/en/courses/{COURSE}/distribution-strategies"
WATCH = """() => document.fonts.ready.then(() => new Promise((watching) => {
  const element = ({ node }) => (node instanceof Element ? node : node?.parentElement);
  const here = (node) => node?.closest("header.bar, #outline");
  window.moved = [];
  window.watch = new PerformanceObserver((list) => window.moved.push(
    ...list.getEntries().flatMap((entry) => entry.sources.map(element)).filter(here).map((node) => node.outerHTML)));
  requestAnimationFrame(() => requestAnimationFrame(() => {
    window.watch.observe({ type: "layout-shift" });
    watching();
  }));
}))"""
"""Watches what moves in the bar and in the outline, where the pieces are, once the fonts have taken their place."""
MOVED = """() => new Promise((told) => requestAnimationFrame(() => setTimeout(() => told(window.moved))))"""


async def test_a_learners_page_gets_all_pieces_at_once_and_nothing_moves(hall: VisitorFactory) -> None:
    visitor, account = await admit_signed_in(hall, "Ada Byron")
    db = Database(visitor.site.database)
    async with db.writing() as session:
        lesson, at = f"{COURSE}/scaling-the-loss", now()
        session.add(
            LessonProgress(learner_id=account.learner_id, lesson=lesson, started_at=at, last_seen_at=at, anchor="")
        )
    await db.close()
    page = await visitor.page()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(urlsplit(request.url).path))
    watching = asyncio.Event()

    async def after_the_fonts(route: Route) -> None:
        await watching.wait()
        await route.continue_()

    await page.route("**/en/pieces?*", after_the_fonts)
    await page.goto(visitor.site.url(LESSON))
    await page.evaluate(WATCH)
    watching.set()

    await expect(page.locator("button.account-button")).to_contain_text("Ada Byron")
    await expect(page.locator("#bell .bell-link")).to_have_accessible_name("Notifications: none unread")
    await expect(page.locator("#progress-header-button")).to_contain_text("0 of 100 XP")
    await expect(page.locator('#outline a[data-lesson-link$="/scaling-the-loss"]')).to_have_attribute(
        "data-stage", "started"
    )
    assert asked.count("/en/pieces") == 1
    assert not {"/en/progress", "/en/progress/outline", "/en/account-menu", "/en/notifications/bell"} & set(asked)
    assert await page.evaluate(MOVED) == []


async def test_a_page_says_which_of_the_required_lessons_are_done(hall: VisitorFactory) -> None:
    visitor, account = await admit_signed_in(hall, "Ada Byron")
    done, left = (f"{COURSE}/{slug}" for slug in ("scaling-the-loss", "collectives"))
    db = Database(visitor.site.database)
    async with db.writing() as session:
        session.add(LedgerEntry(learner_id=account.learner_id, kind="lesson", subject=done, xp=0, occurred_at=now()))
    await db.close()
    page = await visitor.page()
    await page.goto(visitor.site.url(LESSON))
    await expect(page.locator("#progress-header-button")).to_be_visible()

    await page.evaluate(
        """(keys) => {
          const place = document.querySelector(".lesson-head");
          for (const key of keys) place.insertAdjacentHTML("beforeend", `<i data-required-lesson="${key}"></i>`);
          document.body.dispatchEvent(new CustomEvent("lockstep:progress"));
        }""",
        [done, left],
    )

    await expect(page.locator("[data-required-lesson]")).to_have_text(["done", "not done yet"])
