"""Progress as learners see it: an award when a run ends, a counter in the header, a page that remembers."""

from __future__ import annotations

import asyncio
import re

import pytest
from playwright.async_api import Page, Route, expect

from app.db import Database, now
from app.progress.models import LedgerEntry
from tests.browser.accessibility import PHONE, assert_accessible_everywhere, assert_fits, assert_fits_phones_in
from tests.browser.cell_page_object import CellPageObject
from tests.browser.conftest import VisitorFactory
from tests.browser.signed_in_visitors import PASSWORD, admit_signed_in
from tests.browser.test_accounts import sign_up
from tests.browser.test_pages import LESSON

COURSE = LESSON.rpartition("/")[0]
KEY = LESSON.partition("/courses/")[2]
MARKS = "/progress/reading"
SECOND = f"{COURSE}/scaling-the-loss"
FIRST_RUN = re.compile(r"Level 0\s+(11|16) of 100 XP")
"""A hidden achievement for early birds is worth 5 more between five and seven in the morning."""

RUN_ELSEWHERE = """async (lesson) => {
    const body = JSON.stringify({lesson, cell: "strategy", code: "1"});
    const headers = {"content-type": "application/json"};
    const {urls} = await (await fetch("/runs", {method: "POST", headers, body})).json();
    await (await fetch(urls.stream)).text();
}"""
"""Runs a cell on a page that has none, to the end."""


async def run_first_cell(page: Page) -> None:
    cell = CellPageObject(page, "strategy")
    await cell.run()
    await cell.finished()


async def test_a_first_run_is_awarded_at_once_and_a_reload_keeps_it(hall: VisitorFactory) -> None:
    page = await (await hall.admit()).open(LESSON)
    header = page.locator("#progress-header-button")
    await expect(header).to_contain_text("Level 0 0 of 100 XP")

    await run_first_cell(page)

    card = page.get_by_role("region", name="Awards").get_by_role("article").filter(has_text="First step")
    await card.hover()  # so that it stays
    assert await card.evaluate("card => getComputedStyle(card).animationName") == "none", "motion is not wanted here"
    await expect(page.locator(".awards")).to_have_attribute("aria-live", "polite")
    awards, panel = await page.locator(".awards").bounding_box(), await page.locator("#session").bounding_box()
    assert awards is not None
    assert panel is not None
    assert awards["x"] + awards["width"] < panel["x"], "they cover none of the panel's buttons"
    await expect(header).to_contain_text(FIRST_RUN)

    await page.reload()

    await expect(header).to_contain_text(FIRST_RUN)
    await expect(page.locator("#outline [aria-current=page]")).to_contain_text("started")
    await expect(page.locator(".award")).to_have_count(0)


@pytest.mark.long
async def test_on_a_phone_award_cards_do_not_cover_run_wherever_it_is(hall: VisitorFactory) -> None:
    page = await (await hall.admit(width=390, height=844)).open("/en/")
    cell = CellPageObject(page, "strategy")
    actions, card = cell.root.locator(".cell-actions"), page.locator(".award").first
    await actions.evaluate("actions => actions.scrollIntoView()")

    await run_first_cell(page)

    await expect(card).to_be_in_viewport(ratio=1)
    run, award = await actions.bounding_box(), await page.locator(".awards").bounding_box()
    assert run is not None
    assert award is not None
    assert run["y"] < 160, "it is where cards would be"
    assert award["y"] >= run["y"] + run["height"]


async def test_a_phone_shows_one_award_card_and_the_next_once_it_is_closed(hall: VisitorFactory) -> None:
    visitor, account = await admit_signed_in(hall, "Ada Byron", width=390, height=844)
    page = await visitor.open(LESSON)
    await expect(page.locator("#progress-header-button")).to_contain_text("0 of 100 XP")
    db = Database(visitor.site.database)
    async with db.writing() as session:
        for name in ("first-run", "ten-runs"):
            entry = LedgerEntry(
                learner_id=account.learner_id, kind="achievement", subject=name, xp=5, occurred_at=now()
            )
            session.add(entry)
    await db.close()

    await page.reload()

    cards = page.locator(".award")
    await expect(cards).to_have_count(1)
    await expect(cards).to_contain_text("First step")
    await cards.get_by_role("button").click()
    await expect(cards).to_have_count(1)
    await expect(cards).to_contain_text("Warmed up")


@pytest.mark.long
async def test_what_was_awarded_while_the_reader_was_elsewhere_is_shown_by_the_next_page(hall: VisitorFactory) -> None:
    visitor = await hall.admit()
    page = await visitor.open(LESSON)
    cell = CellPageObject(page, "strategy")
    await cell.write("1 / 0")
    await cell.run()
    await cell.finished("error")
    await page.goto(visitor.site.url(COURSE))
    await expect(page.locator("#progress-header-button")).to_contain_text("Level 0 0 of 100 XP")
    await page.evaluate(RUN_ELSEWHERE, KEY)

    await page.reload()

    await expect(page.locator(".award").filter(has_text="First step")).to_be_visible()


async def test_an_award_is_shown_even_if_the_header_comes_after_the_end_of_the_run(hall: VisitorFactory) -> None:
    visitor = await hall.admit()
    page = await visitor.page()
    answered, over = asyncio.Event(), asyncio.Event()

    async def come_late(route: Route) -> None:
        response = await route.fetch()
        answered.set()
        await over.wait()
        await route.fulfill(response=response)

    await page.route("**/en/pieces?*", come_late)
    await page.goto(visitor.site.url(LESSON))
    await answered.wait()
    await run_first_cell(page)
    over.set()

    await expect(page.locator(".award").filter(has_text="First step")).to_be_visible()


async def test_an_award_can_be_closed_by_keyboard_and_leaves_the_focus_where_it_was(hall: VisitorFactory) -> None:
    page = await (await hall.admit()).open(LESSON)
    await expect(page.locator("#progress-header-button")).to_be_visible()
    await run_first_cell(page)
    await expect(page.locator(".award")).not_to_have_count(0)
    run = page.locator("#cell-strategy [data-action=run]")
    await run.focus()

    for _ in range(await page.locator(".award").count()):
        await page.keyboard.press("Escape")

    await expect(page.locator(".award")).to_have_count(0)
    await expect(run).to_be_focused()


async def test_axe_finds_nothing_in_awards_header_and_achievements(hall: VisitorFactory) -> None:
    visitor = await hall.admit()
    page = await visitor.open(LESSON)
    await expect(page.locator("#progress-header-button")).to_be_visible()
    await run_first_cell(page)
    await expect(page.locator(".award")).not_to_have_count(0)
    await page.locator("#progress-header-button").click()
    await expect(page.locator("#progress-header-more")).to_be_visible()
    await assert_accessible_everywhere(page, "awards", ".awards")
    await assert_accessible_everywhere(page, "the header of progress", "#progress-header")

    await page.goto(visitor.site.url("/en/achievements"))
    await expect(page.get_by_role("heading", name="First step")).to_be_visible()
    await assert_accessible_everywhere(page, "achievements")
    await page.set_viewport_size(PHONE)
    name = page.locator(".history td:nth-child(2)").first
    await name.evaluate("cell => (cell.textContent = 'MultiWorkerMirroredStrategy, made on several workers')")
    fits = await page.locator(".scroller:has(.history)").evaluate("box => box.scrollWidth <= box.clientWidth")
    assert fits, "the XP beside a long name are in sight"
    await assert_fits_phones_in("ko", page, [visitor.site.url("/ko/achievements")])


async def test_what_was_read_is_kept_in_the_browser_and_makes_a_visitor_of_no_one(hall: VisitorFactory) -> None:
    visitor = await hall.admit()
    page = await visitor.open(SECOND)
    await page.locator("#lesson-end").scroll_into_view_if_needed()
    end = page.locator("#lesson-end [data-end-mark]")
    await expect(end).to_have_text("Read to the end")

    await page.reload()
    await page.locator("#lesson-end").scroll_into_view_if_needed()
    await expect(end).to_have_text("Read to the end")
    await page.goto(visitor.site.url(COURSE))

    onward = page.locator("[data-continue]")
    await expect(onward).to_contain_text("Continue with “Scaling the loss”")
    await expect(page.locator(f"a[href='{SECOND}']").first).to_contain_text("started")
    assert await visitor.context.cookies() == []
    place = (await onward.get_attribute("href") or "").partition("#")[2]
    assert place
    await onward.click()
    await expect(page.locator(f"[id='{place}']")).to_be_in_viewport()
    assert await page.evaluate("scrollY") > 0


@pytest.mark.long
async def test_a_long_title_to_continue_with_fits_a_phone(hall: VisitorFactory) -> None:
    page = await (await hall.admit(width=320, height=800)).open(SECOND)
    await page.locator("#lesson-end").scroll_into_view_if_needed()
    await expect(page.locator("#lesson-end [data-end-mark]")).to_have_text("Read to the end")
    for path in ("/en/", COURSE):
        await page.goto(page.url.partition("/en/")[0] + path)
        words = page.locator("[data-continue] .label")
        await expect(words).to_contain_text("Continue with")
        await words.evaluate("it => { it.textContent = 'Continue with “A custom training loop on Fashion-MNIST”' }")
        await assert_fits(page, path)


@pytest.mark.long
async def test_marks_from_before_the_first_run_are_sent_once_the_server_knows_the_learner(hall: VisitorFactory) -> None:
    visitor = await hall.admit()
    page = await visitor.open(SECOND)
    await page.locator("#lesson-end").scroll_into_view_if_needed()
    await expect(page.locator("#lesson-end [data-end-mark]")).to_have_text("Read to the end")
    await page.goto(visitor.site.url(LESSON))

    async with page.expect_response(lambda response: response.url.endswith(MARKS)) as answer:
        await run_first_cell(page)

    assert (await answer.value).status == 200
    outline = await page.request.get(visitor.site.url("/en/progress/outline?course=distributed-tensorflow"))
    read = {state["slug"]: state["end_reached"] for state in (await outline.json())["lessons"]}
    assert read["scaling-the-loss"]
    assert not read["distribution-strategies"]


async def test_the_end_of_a_lesson_leads_to_what_is_missing(hall: VisitorFactory) -> None:
    page = await (await hall.admit()).open(LESSON)
    await page.locator("#lesson-end").scroll_into_view_if_needed()
    missing = page.locator("#lesson-end .missing a")
    await expect(missing.first).to_be_visible()
    before = await missing.count()

    await page.locator(".prediction[data-state=open]").first.get_by_role("button", name="Skip and run").click()
    await expect(missing).to_have_count(before - 1)
    await page.locator(".quiz").first.locator("input").first.check()
    await page.locator(".quiz").first.get_by_role("button", name="Answer").click()
    await expect(missing).to_have_count(before - 2)

    await missing.first.click()
    assert await page.evaluate("document.querySelector(location.hash) !== null")


async def test_a_page_that_comes_back_after_a_sign_out_reveals_nothing_about_the_account(hall: VisitorFactory) -> None:
    """A shared computer: the next person presses Back, and signs in later."""
    visitor, _ = await admit_signed_in(hall, "Ada Byron")
    page = await visitor.page()
    async with page.expect_response("**/code-drafts?*"):  # which is refused after the sign-out
        await page.goto(visitor.site.url(LESSON))
    await expect(page.locator(".account-button")).to_contain_text("Ada Byron")
    await _until_kept(page, "lockstep:marks-told", there=True)
    read = {"lesson": "c/other", "opened_at": 1, "last_seen_at": 2, "end_reached_at": 2, "anchor": "end"}
    await page.evaluate("(read) => localStorage.setItem('lockstep:mark:c/other', JSON.stringify(read))", read)

    await visitor.context.clear_cookies()
    await page.evaluate("window.dispatchEvent(new PageTransitionEvent('pageshow', { persisted: true }))")
    await expect(page.locator(".account-button")).to_have_text("Sign in")
    await _until_kept(page, "lockstep:mark:c/other", there=False)
    await _until_kept(page, "lockstep:marks-told", there=False)


async def _until_kept(page: Page, name: str, *, there: bool) -> None:
    """Wait until the browser's storage has an item of that name, or no longer has it."""
    async with asyncio.timeout(30):
        while bool(await page.evaluate("(name) => localStorage.getItem(name)", name)) is not there:  # noqa: ASYNC110 - storage tells nobody
            await asyncio.sleep(0.05)


@pytest.mark.long
async def test_what_two_devices_did_without_an_account_is_one_learners_and_counts_once(hall: VisitorFactory) -> None:
    laptop, phone = await hall.admit(), await hall.admit(width=360, height=800)
    first = await laptop.open(LESSON)
    await run_first_cell(first)
    address = await sign_up(laptop, first)
    await expect(first.locator(".account-flash")).to_contain_text("Your work in this browser is now in your account.")
    await expect(first.locator("#progress-header-button")).to_contain_text(FIRST_RUN)

    second = await phone.open(SECOND)
    await second.locator("#lesson-end").scroll_into_view_if_needed()
    await expect(second.locator("#lesson-end [data-end-mark]")).to_have_text("Read to the end")
    await second.goto(phone.site.url(LESSON))
    await run_first_cell(second)
    await second.goto(phone.site.url("/en/sign-in"))
    await second.locator("#field-email").fill(address)
    await second.locator("#field-password").fill(PASSWORD)
    await second.keyboard.press("Enter")
    await expect(second.locator(".account-flash")).to_contain_text("Imported from this browser: 1 run.")
    await expect(second.locator("#progress-header-button")).to_contain_text(FIRST_RUN)

    await first.goto(laptop.site.url(COURSE))
    await expect(first.locator("#progress-header-button")).to_contain_text(FIRST_RUN)
    await expect(first.locator("[data-continue]")).to_contain_text("Continue with “Distribution strategies”")
    await expect(first.locator(f"a[href='{SECOND}']").first).to_contain_text("started")
