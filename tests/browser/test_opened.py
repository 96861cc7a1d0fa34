"""What opens over a page or stands on it only for a while: sheets, cards, lists, choices and complaints."""

from __future__ import annotations

import pytest
from playwright.async_api import Page, expect

from app.accounts.models import Role
from tests.browser.conftest import Hall
from tests.browser.people import somebody
from tests.browser.test_pages import violations

LESSON = "courses/distributed-tensorflow/distribution-strategies"


async def look(page: Page, name: str) -> None:
    """Nothing is wrong with the page as it stands now."""
    assert await violations(page) == [], name
    assert await page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"), f"{name} scrolls sideways"


@pytest.mark.parametrize(
    ("lang", "width", "dark"),
    [("en", 1280, False), ("ko", 360, True), ("zh", 360, False), ("ko", 1280, True)],
    ids=["desk-light", "phone-dark", "phone-light", "desk-dark"],
)
async def test_axe_finds_nothing_in_what_opens(hall: Hall, lang: str, width: int, dark: bool) -> None:
    ada, account = await somebody(hall, "Grace Hopper", Role.instructor, width=width, height=800, dark=dark)
    ada.tolerated += ["status of 422", "status of 403", "ERR_", "Failed to fetch", "htmx"]
    page = await ada.open(f"/{lang}/{LESSON}")
    await page.locator("button.account-button").click()
    await expect(page.locator("#account-menu")).to_be_visible()
    await look(page, "the menu of an instructor")
    await page.keyboard.press("Escape")
    if width < 600:
        await page.locator(".outline-button").click()
        await expect(page.locator("#outline")).to_be_visible()
        await look(page, "the outline")
        await page.keyboard.press("Escape")
    await page.locator("#cell-strategy .machine-button").click()
    await expect(page.locator("#cell-strategy .picker")).to_be_visible()
    await look(page, "the choice of a machine")

    await page.goto(ada.site.url(f"/{lang}/{LESSON}/comments"))
    field, send = page.locator(".comments > form textarea"), page.locator(".comments > form button.primary")
    await field.fill(f"Here I am, {account.handle}")
    await send.click()
    await expect(page.locator(".thread", has_text=account.handle)).to_have_count(1)
    await field.press_sequentially(f"@{account.handle[:-1]}")
    await expect(page.locator(".suggestions").get_by_role("option").first).to_be_visible()
    await look(page, "the names suggested")
    await page.keyboard.press("Escape")
    await field.fill(" ")
    await send.click()
    await expect(page.locator(".comment-error").first).not_to_be_empty()
    await look(page, "an empty comment")
    await page.route("**/comments", lambda route: route.abort())
    await field.fill("Into the tunnel")
    await send.click()
    await expect(page.locator(".comment-error").first).not_to_be_empty()
    await look(page, "a comment that could not be sent")


@pytest.mark.parametrize(("lang", "dark"), [("en", False), ("zh", True)], ids=["light", "dark"])
async def test_axe_finds_nothing_where_something_was_refused(hall: Hall, lang: str, dark: bool) -> None:
    bob, _ = await somebody(hall, "Bob Moore", width=360, height=800, dark=dark)
    bob.tolerated += ["status of 422", "status of 403", "status of 404"]
    page = await bob.page()
    for path in ("feedback/inbox", "comments/none/history", f"{LESSON}/comments?before=~"):
        await page.goto(bob.site.url(f"/{lang}/{path}"))
        await look(page, path)
    await page.goto(bob.site.url(f"/{lang}/settings"))
    await page.locator("#field-handle").fill("-")
    await page.locator("main form button").last.click()
    await expect(page.locator("#field-handle")).to_have_attribute("aria-invalid", "true")
    await look(page, "settings with a mistake")
