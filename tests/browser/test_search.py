"""Searching in a real browser: from the keyboard to the place that was found."""

from __future__ import annotations

import re

from playwright.async_api import expect

from tests.browser.accessibility import assert_accessible_everywhere
from tests.browser.conftest import VisitorFactory
from tests.browser.network_control import hold_requests
from tests.browser.polling import wait_until

LESSON = "/en/courses/distributed-tensorflow/scaling-the-loss"
MARKED = "CSS.highlights.get('search')?.size ?? 0"


async def test_a_search_begins_with_a_key_and_ends_at_the_marked_place(hall: VisitorFactory) -> None:
    visitor = await hall.admit()
    page = await visitor.open(LESSON)
    link = page.get_by_role("banner").get_by_role("link", name="Search")
    await expect(link).to_have_attribute("data-htmx-powered", "true")  # until then, the key leads to the page
    await page.keyboard.press("/")
    await expect(page.get_by_role("dialog", name="Search")).to_be_visible()
    await expect(page.get_by_role("searchbox")).to_be_focused()
    await page.keyboard.type("one all")
    results = page.get_by_role("dialog").locator(".search-passages a")
    await expect(results.first).to_have_attribute("href", re.compile("mark=one%20all(#|$)"))
    later = await hold_requests(page, "**/search?q=one*")
    await page.keyboard.type("-reduce")
    await page.keyboard.press("ArrowDown")
    await expect(page.get_by_role("searchbox")).not_to_be_focused()
    later.set()
    await expect(page.get_by_role("searchbox")).to_be_focused()  # the result that had the focus is gone
    found = page.get_by_role("dialog").get_by_role("link", name="One all-reduce, with its numbers")
    await expect(found).to_have_attribute("href", re.compile("mark=one%20all-reduce#"))
    await assert_accessible_everywhere(page, "the search", "#search")

    links = page.get_by_role("dialog").get_by_role("link")
    place = [await link.get_attribute("href") for link in await links.all()].index(await found.get_attribute("href"))
    for _ in range(place + 1):
        await page.keyboard.press("ArrowDown")
    await expect(found).to_be_focused()
    await page.keyboard.press("Enter")
    await page.wait_for_url("**/mirrored-strategy?mark=one%20all-reduce#cell-replay")
    await wait_until(page, f"{MARKED} > 1")
    await page.keyboard.press("Escape")
    await wait_until(page, f"{MARKED} === 0")


async def test_the_key_types_where_one_types(hall: VisitorFactory) -> None:
    visitor = await hall.admit()
    page = await visitor.open("/en/search?q=gradient")
    title, field = await page.locator("h1").bounding_box(), await page.get_by_role("searchbox").bounding_box()
    assert title is not None
    assert field is not None
    assert field["y"] - title["y"] - title["height"] >= 12, "the field does not touch the title"
    await page.get_by_role("searchbox").press("End")
    await page.keyboard.type("/")
    await expect(page.get_by_role("searchbox")).to_have_value("gradient/")
    await expect(page.get_by_role("dialog")).to_have_count(0)
