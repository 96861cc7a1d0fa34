"""A learner without a mouse: from a lesson's address to a comment, to the bell and out again, with Tab and Enter."""

from __future__ import annotations

import secrets

from playwright.async_api import Locator, Page, expect

from tests.browser.cell_page_object import CellPageObject
from tests.browser.conftest import VisitorFactory
from tests.browser.signed_in_visitors import PASSWORD, sign_in, store_account_with_password

LESSON = "/en/courses/distributed-tensorflow/distribution-strategies"
MOST_STOPS = 60
RING = """() => {
    const here = document.activeElement;
    if (here === document.body || here.isContentEditable || here.id === "main") return "";
    const { outlineStyle, outlineWidth, boxShadow } = getComputedStyle(here);
    const box = here.getBoundingClientRect();
    const ringed = (outlineStyle !== "none" && parseFloat(outlineWidth) >= 2) || boxShadow !== "none";
    const seen = box.bottom > 0 && box.top < innerHeight;
    return ringed && seen ? "" : here.outerHTML.slice(0, 120);
}"""
"""What has the focus, if nobody could see that it has."""


async def tab_to(page: Page, wanted: Locator) -> None:
    """Press Tab until the element has the focus; the focus must be visible all the way."""
    for _ in range(MOST_STOPS):
        await page.keyboard.press("Tab")
        assert await page.evaluate(RING) == ""
        if await wanted.evaluate("element => element === document.activeElement"):
            return
    raise AssertionError(f"{MOST_STOPS} presses of Tab do not lead to {wanted}")


async def test_a_whole_visit_needs_no_mouse(hall: VisitorFactory) -> None:
    visitor = await hall.admit()
    page = await visitor.page()
    address = await store_account_with_password(visitor.site)
    await sign_in(page, visitor.site, address)
    await page.goto(visitor.site.url(LESSON))
    cell = CellPageObject(page, "strategy")

    await tab_to(page, page.get_by_role("link", name="Skip to main content"))
    await page.keyboard.press("Enter")
    await expect(page.locator("#main")).to_be_focused()
    await tab_to(page, cell.button("run"))
    await page.keyboard.press("Enter")
    await cell.finished()
    await page.keyboard.press("Tab")
    await expect(cell.editor).to_be_focused()
    await page.keyboard.press("Control+a")
    await page.keyboard.type("print('typed')")
    await page.keyboard.press("Control+Enter")
    await cell.has_row("typed")
    await page.keyboard.press("Escape")
    await tab_to(page, CellPageObject(page, "components").root.get_by_role("link", name="Discuss the cell"))
    await page.keyboard.press("Enter")

    await expect(page.locator("#discuss-title")).to_be_focused()
    await tab_to(page, page.get_by_role("link", name="Open these comments on their own page"))
    await page.keyboard.press("Enter")
    await page.wait_for_url("**/comments?cell=components")
    question = f"Why four copies? {secrets.token_hex(4)}"
    await tab_to(page, page.get_by_label("Your comment"))
    await page.keyboard.type(question)
    await page.keyboard.press("Control+Enter")
    thread = page.locator(".thread", has_text=question)
    await tab_to(page, thread.get_by_text("More", exact=True))
    await page.keyboard.press("Enter")
    await tab_to(page, thread.get_by_role("link", name="Edit"))
    await page.keyboard.press("Enter")
    await expect(thread.get_by_label("Your comment")).to_be_focused()
    await page.keyboard.type(" Or five?")
    await page.keyboard.press("Control+Enter")
    await expect(thread).to_contain_text("Or five?")

    await page.goto(visitor.site.url(LESSON))
    await expect(page.locator("#bell .bell-link")).to_be_visible()
    await tab_to(page, page.locator("#bell .bell-link"))
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("heading", name="Notifications", level=1)).to_be_visible()
    await expect(page.locator("button.account-button")).to_be_visible()
    await tab_to(page, page.locator("button.account-button"))
    await page.keyboard.press("Enter")
    await tab_to(page, page.get_by_role("button", name="Sign out"))
    await page.keyboard.press("Enter")
    await expect(page.get_by_text("You are signed out.", exact=True).first).to_be_visible()

    await tab_to(page, page.locator(".bar").get_by_role("link", name="Sign in"))
    await page.keyboard.press("Enter")
    await expect(page.locator("#field-email")).to_be_focused()
    await page.keyboard.type(address)
    await tab_to(page, page.locator("#field-password"))
    await page.keyboard.type(PASSWORD)
    await page.keyboard.press("Enter")
    await expect(page.locator("button.account-button")).to_be_visible()
