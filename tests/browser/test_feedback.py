"""Feedback in a real browser: from a dialog and without scripts, sent once, and kept when the network fails."""

from __future__ import annotations

import asyncio
import secrets

import pytest
from playwright.async_api import Page, Route, expect

from app.accounts.models import Role
from tests.browser.accessibility import assert_accessible_everywhere, assert_fits_phones_in
from tests.browser.conftest import VisitorFactory
from tests.browser.network_control import drop_responses, hold_requests, wait_for_requests
from tests.browser.signed_in_visitors import admit_signed_in

LESSON = "/en/courses/distributed-tensorflow/distribution-strategies"
INBOX = "/en/feedback/inbox"


def unique(words: str) -> str:
    """A text that no other test writes."""
    return f"{words} {secrets.token_hex(4)}"


async def inbox_holds(hall: VisitorFactory, text: str, times: int = 1) -> Page:
    """The inbox of an instructor, once it contains the problem."""
    teacher, _ = await admit_signed_in(hall, "Tea Cher", Role.instructor)
    page = await teacher.open(INBOX)
    await expect(page.locator(".problem", has_text=text)).to_have_count(times)
    return page


async def test_a_problem_is_reported_from_a_cell_and_resolved_by_an_instructor(hall: VisitorFactory) -> None:
    page = await (await hall.admit()).open(LESSON)
    link = page.get_by_role("link", name="Report a problem with the cell").first
    await link.click()
    dialog = page.get_by_role("dialog", name="Report a problem")
    await expect(dialog).to_be_visible()
    await expect(dialog.get_by_label("Cell")).not_to_have_value("")
    text = unique("The output is wrong")
    await dialog.get_by_label("What is wrong?").fill(text)
    await page.keyboard.press("Escape")
    await expect(dialog).to_be_hidden()
    await expect(link).to_be_focused()
    await page.keyboard.press("Enter")
    await expect(dialog.get_by_label("What is wrong?")).to_have_value(text)
    await dialog.get_by_role("button", name="Send").dblclick()
    await expect(dialog).to_contain_text("Your report was sent to the instructors")
    await dialog.get_by_role("link", name="Back to the page").click()
    await expect(dialog).to_be_hidden()
    assert page.url.endswith(LESSON)

    inbox = await inbox_holds(hall, text)
    row = inbox.locator(".problem", has_text=text)
    await row.get_by_label("Note").fill("Mended")
    await row.get_by_role("button", name="Mark as resolved").click()
    await expect(row).to_contain_text("Tea Cher: Mended")
    await expect(row.get_by_role("button", name="Reopen")).to_be_visible()


async def test_what_was_sent_into_a_network_that_failed_is_kept_and_sent_again_once(hall: VisitorFactory) -> None:
    visitor = await hall.admit()
    visitor.tolerated += ["ERR_", "Failed to fetch", "htmx"]
    page = await visitor.open(LESSON)
    await page.get_by_role("link", name="Report a problem", exact=True).click()
    dialog = page.get_by_role("dialog", name="Report a problem")
    text = unique("Through a tunnel")
    await dialog.get_by_text("Something else").click()
    await dialog.get_by_label("What is wrong?").fill(text)

    await drop_responses(page, "**/en/feedback")
    await dialog.get_by_role("button", name="Send").click()
    await expect(dialog).to_contain_text("Your text is kept")
    await expect(dialog.get_by_label("What is wrong?")).to_have_value(text)
    await page.unroute("**/en/feedback")
    await dialog.get_by_role("button", name="Send").click()
    await expect(dialog).to_contain_text("Your report was sent to the instructors")
    await inbox_holds(hall, text)


async def test_a_form_that_cannot_be_taken_stays_with_the_reason(hall: VisitorFactory) -> None:
    visitor = await hall.admit()
    visitor.tolerated.append("status of 422")
    page = await visitor.open(LESSON)
    await page.get_by_role("link", name="Report a problem", exact=True).click()
    dialog = page.get_by_role("dialog", name="Report a problem")
    field = dialog.get_by_label("What is wrong?")
    await dialog.get_by_text("Translation").click()
    await field.evaluate("field => { field.removeAttribute('maxlength'); field.value = 'x'.repeat(4001); }")
    await dialog.get_by_role("button", name="Send").click()

    await expect(dialog.get_by_role("alert")).to_contain_text("4,001 characters")
    await expect(field).to_be_focused()
    await expect(dialog.get_by_label("Translation")).to_be_checked()
    assert len(await field.input_value()) == 4_001

    send = dialog.get_by_role("button", name="Send")
    await send.focus()
    async with page.expect_response("**/session?*"):  # any other part of the page
        await page.evaluate("document.body.dispatchEvent(new CustomEvent('lockstep:session'))")
    await wait_for_requests(page)
    await expect(send).to_be_focused()


async def test_comments_that_come_during_a_press_do_not_move_what_is_pressed(hall: VisitorFactory) -> None:
    page = await (await hall.admit()).open(LESSON)
    answered, pressed = asyncio.Event(), asyncio.Event()

    async def come_late(route: Route) -> None:
        response = await route.fetch()  # before the press, which a page heeds for two seconds only
        answered.set()
        await pressed.wait()
        await route.fulfill(response=response)

    await page.route(f"**{LESSON}/comments", come_late)
    link = page.get_by_role("link", name="Report a problem", exact=True)
    await link.scroll_into_view_if_needed()
    await answered.wait()
    await expect(page.locator("#helpful-yes")).to_have_attribute("aria-pressed", "false")
    await link.hover()
    await page.mouse.down()
    async with page.expect_response(f"**{LESSON}/comments"):
        pressed.set()
    await wait_for_requests(page)  # by then, the page would show them
    await page.mouse.up()
    await expect(page.get_by_role("dialog", name="Report a problem")).to_be_visible()
    await expect(page.locator(".comments")).to_be_attached()


@pytest.mark.parametrize(
    ("page_moves", "distance", "clicks"), [(True, 0, 1), (True, 30, 0), (False, 4, 0)], ids=["page", "pointer", "edge"]
)
async def test_a_press_counts_if_the_page_moves_but_not_if_the_pointer_leaves(
    hall: VisitorFactory, page_moves: bool, distance: int, clicks: int
) -> None:
    page = await (await hall.admit()).open("/en/")
    link = page.get_by_role("link", name="Report a problem", exact=True)
    await wait_for_requests(page)
    await page.evaluate("document.fonts.ready")
    await link.evaluate(
        """(link, moves) => {
            window.clicks = 0;
            link.addEventListener("click", () => (window.clicks += 1));
            const move = () => (document.body.style.paddingTop = "200px");
            if (moves) addEventListener("pointerdown", move, {once: true});
        }""",
        page_moves,
    )
    await link.hover()
    box = await link.bounding_box()
    assert box is not None
    x, y = box["x"] + box["width"] - 1, box["y"] + box["height"] / 2
    await page.mouse.move(x, y)
    await page.mouse.down()
    if distance:
        await page.mouse.move(x + distance, y)
    await page.mouse.up()
    await page.evaluate("new Promise(pressed => setTimeout(pressed))")
    assert (await link.bounding_box() != box) is page_moves
    await wait_for_requests(page)
    await expect(page.get_by_role("dialog", name="Report a problem")).to_be_visible(visible=bool(clicks))
    assert await page.evaluate("clicks") == clicks


async def test_the_dialog_opens_with_its_style_sheet(hall: VisitorFactory) -> None:
    page = await (await hall.admit()).open(LESSON)
    released = await hold_requests(page, "**/feedback.css*")
    dialog = page.get_by_role("dialog", name="Report a problem")
    async with page.expect_request("**/feedback.css*"):
        await page.get_by_role("link", name="Report a problem with the cell").first.click()
    await page.evaluate("new Promise(requestAnimationFrame)")
    await expect(dialog).to_be_hidden()
    released.set()
    await expect(dialog).to_be_visible()
    await dialog.get_by_text("Something else").click()
    await expect(dialog.get_by_label("Something else")).to_be_checked()


async def test_a_vote_is_given_and_changed_at_the_end_of_a_lesson(hall: VisitorFactory) -> None:
    ada, _ = await admit_signed_in(hall, "Ada Byron")
    page = await ada.open(LESSON)
    await page.locator("#helpful").scroll_into_view_if_needed()
    yes, no = (page.locator(f"#helpful-{answer}") for answer in ("yes", "no"))
    await expect(yes).to_have_attribute("aria-pressed", "false")
    await yes.focus()
    await page.keyboard.press("Enter")
    await expect(yes).to_have_attribute("aria-pressed", "true")
    await expect(yes).to_be_focused()
    await no.click()
    await expect(no).to_have_attribute("aria-pressed", "true")
    await expect(yes).to_have_attribute("aria-pressed", "false")
    text = unique("A picture")
    await page.get_by_label("What was missing?").fill(text)
    async with page.expect_response(lambda answer: answer.request.method == "POST"):  # the vote got thanks, too
        await page.locator("#helpful").get_by_role("button", name="Send").click()
    await expect(page.locator("#helpful")).to_contain_text("Thank you")
    await page.reload()
    await page.locator("#helpful").scroll_into_view_if_needed()
    await expect(page.get_by_label("What was missing?")).to_have_value(text)


async def test_everything_works_without_a_script(hall: VisitorFactory) -> None:
    visitor = await hall.admit(script=False)
    page = await visitor.open(LESSON)
    await page.locator("#helpful-no").click()
    await expect(page.locator("#helpful-no")).to_have_attribute("aria-pressed", "true")
    await page.get_by_label("What was missing?").fill("More")
    await page.get_by_role("button", name="Send").click()
    await expect(page.get_by_text("Thank you. Your feedback was saved.")).to_be_visible()
    await page.get_by_role("link", name="Report a problem").click()
    text = unique("Without a script")
    await page.get_by_text("This page or its controls").click()
    await page.get_by_label("What is wrong?").fill(text)
    await page.get_by_role("button", name="Send").click()
    await expect(page.get_by_text("Your report was sent to the instructors")).to_be_visible()
    await page.go_back()
    await page.get_by_role("button", name="Send").click()
    await inbox_holds(hall, text)


async def test_axe_finds_nothing_in_feedback(hall: VisitorFactory) -> None:
    teacher, _ = await admit_signed_in(hall, "Tea Cher", Role.instructor)
    page = await teacher.open(LESSON)
    await page.locator("#helpful").scroll_into_view_if_needed()
    await expect(page.locator("#helpful-yes[aria-pressed]")).to_be_visible()
    await page.locator("#helpful-yes").click()
    await expect(page.locator("#helpful-text")).to_be_visible()
    await assert_accessible_everywhere(page, "the question at the end of a lesson", "#helpful")
    await page.locator("#helpful-text").fill("The drawings of the replicas")
    await page.locator("#helpful-more button").click()
    await page.locator(".foot-link[hx-get]").click()
    await expect(page.locator("dialog#feedback")).to_be_visible()
    await assert_accessible_everywhere(page, "the dialog", "dialog#feedback")

    form = f"feedback?page={LESSON}&cell=strategy"
    await page.goto(teacher.site.url(f"/en/{form}"))
    await page.locator("#feedback-text").fill("The output says 8 where the text says 4.")
    await assert_accessible_everywhere(page, "the form")
    await page.locator("#feedback-form button").click()
    await expect(page.locator(".feedback-thanks")).to_be_visible()
    lists = ("feedback/inbox", "feedback/votes")
    for name in lists:
        await page.goto(teacher.site.url(f"/en/{name}"))
        await assert_accessible_everywhere(page, name)
    await assert_fits_phones_in("ko", page, [teacher.site.url(f"/ko/{name}") for name in (form, *lists)])
