"""Edits of a signed-in learner on two devices: both have the newer ones, and neither overwrites the other's."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from playwright.async_api import Page, expect

from tests.browser.accessibility import assert_accessible_everywhere, assert_readable_in_both_themes
from tests.browser.cell_page_object import CellPageObject
from tests.browser.conftest import VisitorFactory
from tests.browser.network_control import hold_requests
from tests.browser.signed_in_visitors import admit_signed_in, switch_account

LESSON = "/en/courses/distributed-tensorflow/distribution-strategies"


@asynccontextmanager
async def shared(page: Page) -> AsyncIterator[None]:
    """The page sends a draft, and the server answers."""
    sent = page.expect_response(lambda answer: "/code-drafts" in answer.url and answer.request.method == "PUT")
    async with sent as answer:
        yield
    assert (await answer.value).ok


async def test_a_second_device_has_the_output_and_the_edits_of_the_first(hall: VisitorFactory) -> None:
    laptop, _ = await admit_signed_in(hall, "Ada Byron")
    page = await laptop.open(LESSON)
    cell = CellPageObject(page, "strategy")
    async with shared(page):
        await cell.write("print('on the laptop')")
    await cell.run()
    await cell.finished()
    phone = await hall.admit(width=360, height=800)
    await switch_account(phone, laptop)

    there = CellPageObject(await phone.open(LESSON), "strategy")

    await there.has_row("on the laptop")
    await expect(there.root).to_have_attribute("data-edited", "")
    await expect(there.root).not_to_have_attribute("data-stale", "")
    assert await there.code() == "print('on the laptop')"


@pytest.mark.long
async def test_edits_on_two_devices_are_both_kept_until_the_learner_chooses(hall: VisitorFactory) -> None:
    laptop, _ = await admit_signed_in(hall, "Ada Byron")
    phone = await hall.admit(width=360, height=800)
    await switch_account(phone, laptop)
    first, second = await laptop.open(LESSON), await phone.open(LESSON)
    here, there = CellPageObject(first, "strategy"), CellPageObject(second, "strategy")
    offer = there.root.locator(".newer-draft")
    async with shared(first):
        await here.write("print('laptop')")
    async with shared(second):
        await there.write("print('phone')")

    await expect(offer).to_contain_text("A newer version of your code was saved elsewhere")
    await expect(second.locator("#announcements")).to_contain_text("A newer version of your code")
    assert await there.code() == "print('phone')"
    await assert_readable_in_both_themes(second, "an offered draft on a phone", "#cell-strategy .newer-draft")
    box = await offer.get_by_role("button").first.bounding_box()
    assert box is not None
    assert box["height"] >= 44
    await offer.get_by_role("button", name="Show that version").click()
    await expect(offer).to_have_count(0)
    assert await there.code() == "print('laptop')"
    async with shared(second):
        await there.button("reset").click()  # Undo
    assert await there.code() == "print('phone')"

    async with shared(first):
        await here.write("print('both')")
    await expect(here.root.locator(".newer-draft")).to_be_visible()
    await assert_accessible_everywhere(first, "an offered draft", "#cell-strategy .newer-draft")
    async with shared(first):
        await here.root.get_by_role("button", name="Keep this version").click()
    await expect(here.button("run")).to_be_focused()
    await second.reload()
    await expect(there.root.locator(".code-place")).to_contain_text("print('both')")


@pytest.mark.long
async def test_what_is_typed_just_before_the_script_of_drafts_has_loaded_is_kept(hall: VisitorFactory) -> None:
    laptop, _ = await admit_signed_in(hall, "Ada Byron")
    page = await laptop.open(LESSON)
    async with shared(page):
        await CellPageObject(page, "strategy").write("print('laptop')")
    phone = await hall.admit(width=360, height=800)
    await switch_account(phone, laptop)
    other = await phone.page()
    script = await hold_requests(other, "**/chunks/draft-sync-*")
    await other.clock.install()
    phone.tolerated.append("htmx:error: timeout")  # of the session panel: the clock leaps
    await other.goto(phone.site.url(LESSON))
    there = CellPageObject(other, "strategy")
    await there.touch()
    # The draft is stored a moment after a key. The clock leaps farther than a slow machine takes to set it.
    await other.clock.pause_at(await other.evaluate("Date.now() + 15_000"))
    await other.keyboard.press("Control+a")
    await other.keyboard.insert_text("print('phone')")

    script.set()

    await expect(there.root.locator(".newer-draft")).to_contain_text("A newer version of your code was saved elsewhere")
    assert await there.code() == "print('phone')"


@pytest.mark.long
async def test_a_visitor_downloads_edits_that_were_never_run(hall: VisitorFactory) -> None:
    page = await (await hall.admit()).open(LESSON)
    await CellPageObject(page, "strategy").write("print('never run')")

    async with page.expect_download(timeout=120_000) as downloading:
        await page.get_by_role("link", name="Notebook with my work").click()

    download = await downloading.value
    assert download.suggested_filename == "distribution-strategies.ipynb"
    notebook = json.loads((await download.path()).read_text())
    assert "print('never run')" in {"".join(cell["source"]) for cell in notebook["cells"]}
    assert page.url.endswith(LESSON)
