"""Accessibility of pages: what axe finds, and whether a page fits its window.

The main tier asks axe about each page in one light window, and checks that it fits on a phone. ``tests/long/browser``
adds the dark theme, axe on a phone, and other languages.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from playwright.async_api import Page, ViewportSize

from tests.browser.polling import wait_until
from tests.factories.long_cases import LONG_CASES

AXE = Path(__file__).parents[2] / "node_modules/axe-core/axe.min.js"
DESK = ViewportSize(width=1280, height=900)
PHONE = ViewportSize(width=360, height=800)
_TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
_CONTRAST = ["color-contrast", "link-in-text-block"]
WINDOWED = {"assert_accessible_everywhere", "assert_readable_in_both_themes", "assert_fits_phones_in"}
"""Functions that check more windows in the long tests; a test that calls one is marked ``windows``."""
_PICTURES = os.environ.get("LOCKSTEP_TEST_SCREENSHOTS")
"""A folder for pictures of what is checked. Taking one of a whole lesson costs as much as checking it."""


async def has_its_styles(page: Page) -> None:
    """Wait for all styles: a click may just have opened the page, or have brought a piece with a style sheet."""
    await page.wait_for_load_state()
    await wait_until(page, "[...document.querySelectorAll('link[rel=stylesheet]')].every(({ sheet }) => sheet)")


async def violations(page: Page, within: str = "html", rules: Sequence[str] = ()) -> list[str]:
    """What axe finds on the page once it has loaded, in words; by these rules alone, if any are named.

    Its script goes in through the debugger, once per document: the page's policy stays as it is.
    """
    await has_its_styles(page)
    if not await page.evaluate("'axe' in window"):
        await page.evaluate(AXE.read_text())
    only = {"type": "rule", "values": list(rules)} if rules else {"type": "tag", "values": _TAGS}
    options = {"runOnly": only, "resultTypes": ["violations"]}
    found = await page.evaluate("([within, options]) => axe.run(within, options)", [within, options])
    return [f"{v['id']}: {node['html'][:200]}" for v in found["violations"] for node in v["nodes"]]


async def assert_fits(page: Page, name: str = "the page") -> None:
    """Check that nothing makes the page scroll sideways. A phone's viewport grows with content that does not fit."""
    await has_its_styles(page)
    window = page.viewport_size
    assert window is not None
    wide = await page.evaluate("document.documentElement.scrollWidth")
    assert wide <= window["width"], f"{name} scrolls sideways: it is {wide} px wide"


async def assert_accessible(page: Page, name: str = "the page", within: str = "html") -> None:
    """Check that axe finds nothing on the page in its current state, and that it fits its window."""
    found = await violations(page, within)
    assert not found, f"{name}: {found}"
    await assert_fits(page, name)
    await take_picture(page, name)


async def assert_readable_in_both_themes(page: Page, name: str = "the page", within: str = "html") -> None:
    """Check that axe finds nothing there in the light theme, and in the long tests no low contrast in the dark one."""
    await assert_accessible(page, name, within)
    if not LONG_CASES:
        return
    await page.emulate_media(color_scheme="dark")
    found = await violations(page, within, _CONTRAST)
    assert not found, f"{name} in the dark: {found}"
    await take_picture(page, f"{name} dark")
    await page.emulate_media(color_scheme="light")


async def assert_accessible_everywhere(page: Page, name: str = "the page", within: str = "html") -> None:
    """Axe finds nothing there and it fits: in the wide light window it is in; in the long tests, also on a dark phone.

    Room and colors do not depend on each other, so these two windows stand for all four. That the page fits on a phone
    is always checked.
    """
    wide = page.viewport_size
    assert wide is not None
    assert wide["width"] > PHONE["width"]
    await assert_accessible(page, name, within)
    await page.set_viewport_size(PHONE)
    if LONG_CASES:
        await page.emulate_media(color_scheme="dark")
        await assert_accessible(page, f"{name} on a dark phone", within)
        await page.emulate_media(color_scheme="light")
    else:
        await assert_fits(page, f"{name} on a phone")
    await page.set_viewport_size(wide)


async def assert_fits_phones_in(language: str, page: Page, urls: Sequence[str]) -> None:
    """Check in the long tests that the same pages in another language, with longer words, also fit on a phone."""
    if not LONG_CASES:
        return
    await page.set_viewport_size(PHONE)
    for url in urls:
        await page.goto(url)
        assert await page.locator("html").get_attribute("lang") == language
        await assert_fits(page, url)
        await take_picture(page, url.partition("://")[2])


async def take_picture(page: Page, name: str) -> None:
    """Take a screenshot, only if LOCKSTEP_TEST_SCREENSHOTS names a folder."""
    if _PICTURES:
        file = "-".join("".join(sign if sign.isalnum() else " " for sign in name).split())
        await page.screenshot(path=Path(_PICTURES) / f"{file}.png", full_page=True)
