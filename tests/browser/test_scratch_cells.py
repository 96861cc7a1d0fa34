"""Cells that a learner adds to a lesson: kept, run in the lesson's session, moved, deleted and restored."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from playwright.async_api import Page, expect

from tests.browser.accessibility import assert_accessible_everywhere
from tests.browser.cell_page_object import CellPageObject
from tests.browser.conftest import VisitorFactory
from tests.browser.test_running import MOVED

LESSON = "/en/courses/distributed-tensorflow/distribution-strategies"

STORED = f"""async () => {{
    const found = await fetch("/en/scratch-cells?lesson={LESSON.removeprefix("/en/courses/")}");
    const page = new DOMParser().parseFromString(await found.text(), "text/html");
    return [page.querySelector(".scratch-title").value, page.querySelector("pre.code").textContent];
}}"""
"""The name and the code of the only cell that the visitor has added, as the server has them."""


@asynccontextmanager
async def answered(page: Page, method: str) -> AsyncIterator[None]:
    """The page changes its scratch cells, and the server answers."""
    sent = page.expect_response(lambda answer: "/scratch-cells" in answer.url and answer.request.method == method)
    async with sent as answer:
        yield
    assert (await answer.value).ok


async def add_below(page: Page, cell: str) -> CellPageObject:
    """Add a cell, which then has the focus."""
    async with answered(page, "POST"):
        await page.locator(f"[data-after={cell}] [data-action=add-code]").click()
    made = page.locator(".scratch section.cell:has(.cm-content:focus)")
    await expect(made).to_have_count(1)
    return CellPageObject(page, await made.get_attribute("data-cell") or "")


async def test_a_cell_of_ones_own_sees_the_variables_of_the_lesson_and_stays(hall: VisitorFactory) -> None:
    visitor = await hall.admit()
    page = await visitor.open(LESSON)
    lesson = CellPageObject(page, "strategy")
    await lesson.write("secret = 6 * 7\nprint('set')")
    await lesson.run()
    await lesson.finished()
    own = await add_below(page, "strategy")
    async with answered(page, "PUT"):
        await page.keyboard.insert_text("print('seen', secret)")
    await page.keyboard.press("Control+Enter")
    await own.has_row("seen 42")
    async with answered(page, "PUT"):
        await own.root.locator(".scratch-title").fill("What was set")
        await page.keyboard.press("Tab")
    await assert_accessible_everywhere(page, "a scratch cell", ".scratch")

    await page.reload()

    await own.has_row("seen 42")
    await expect(own.root.locator(".scratch-title")).to_have_value("What was set")
    await expect(own.root).not_to_have_attribute("data-stale", "")
    assert await own.code() == "print('seen', secret)"
    before = await page.locator("section.cell[data-cell]").evaluate_all("all => all.map(cell => cell.dataset.cell)")
    assert before[before.index("strategy") + 1] == own.name


async def test_a_reload_keeps_the_space_of_own_cells(hall: VisitorFactory) -> None:
    page = await (await hall.admit(width=390, height=844)).open(LESSON)
    for text in ("first = 1\n" * 12, "second = 2"):
        async with answered(page, "PUT"):
            await add_below(page, "strategy")
            await page.keyboard.insert_text(text)
    own, row = page.locator(".scratch"), page.locator("[data-after=strategy]")
    await expect(page.get_by_role("button", name="Delete all my cells")).to_be_visible()
    await row.evaluate("row => row.scrollIntoView()")
    await page.add_init_script(MOVED)

    await page.reload()

    await expect(own).to_have_count(2)
    await expect(row).to_be_in_viewport()
    assert await page.evaluate("moved") < 0.01


async def test_own_cells_are_moved_and_deleted_with_the_keyboard_and_restored(hall: VisitorFactory) -> None:
    visitor = await hall.admit()
    page = await visitor.open(LESSON)
    first = await add_below(page, "strategy")
    async with answered(page, "PUT"):
        await page.keyboard.insert_text("first = 1")
    second = await add_below(page, first.name)
    order = page.locator(".scratch")

    up = second.button("move-up")
    await up.focus()
    async with answered(page, "POST"):
        await page.keyboard.press("Enter")
    await expect(order.first).to_have_attribute("data-scratch-name", second.name)
    await expect(up).to_be_focused()
    await expect(up).to_have_attribute("aria-disabled", "true")
    await first.button("delete").focus()
    async with answered(page, "DELETE"):
        await page.keyboard.press("Enter")
    await expect(order).to_have_count(1)
    await expect(page.locator(".scratch-gone button")).to_be_focused()
    async with answered(page, "POST"):
        await page.keyboard.press("Enter")
    await expect(order).to_have_count(2)
    await page.reload()
    await expect(order.last).to_have_attribute("data-scratch-name", first.name)
    assert await first.code() == "first = 1"


@pytest.mark.long
async def test_all_own_cells_are_deleted_at_once_and_restored_in_their_order(hall: VisitorFactory) -> None:
    page = await (await hall.admit()).open(LESSON)
    everything = page.get_by_role("button", name="Delete all my cells")
    first = await add_below(page, "strategy")
    async with answered(page, "PUT"):
        await page.keyboard.insert_text("first = [print(row) for row in range(20)]")
    await first.run()
    await first.finished("ok")
    await expect(everything).to_be_hidden()  # one has a button of its own
    second = await add_below(page, first.name)
    async with answered(page, "PUT"):
        await page.keyboard.insert_text("second = 2")
    await page.reload()
    await first.has_row("19")

    async with answered(page, "DELETE"):
        await everything.click()

    cells = page.locator(".scratch")
    await expect(cells).to_have_count(0)
    await expect(page.locator(".scratch-gone")).to_contain_text("2 of your cells were deleted.")
    await page.locator(".scratch-gone button").click()
    await expect(cells).to_have_count(2)
    height = await cells.first.locator(".result").evaluate("result => result.offsetHeight")
    assert height < 100, "the output did not come back, and its space is not kept either"
    await page.reload()
    await expect(cells.first).to_have_attribute("data-scratch-name", first.name)
    assert await first.code() == "first = [print(row) for row in range(20)]"
    assert await second.code() == "second = 2"


@pytest.mark.long
async def test_naming_a_cell_does_not_hide_what_another_window_has_written(hall: VisitorFactory) -> None:
    visitor = await hall.admit()
    page = await visitor.open(LESSON)
    mine = await add_below(page, "strategy")
    async with answered(page, "PUT"):
        await page.keyboard.insert_text("x = 1")
    late = CellPageObject(await visitor.open(LESSON), mine.name)
    await expect(late.root).to_contain_text("x = 1")
    async with answered(page, "PUT"):
        await page.keyboard.insert_text(" + 1")

    async with answered(late.page, "PUT"):
        await late.root.locator(".scratch-title").fill("Sum")
        await late.page.keyboard.press("Tab")
    async with answered(late.page, "PUT"):
        await late.write("x = 3")

    await expect(late.root.locator(".newer-draft")).to_be_visible()
    assert await page.evaluate(STORED) == ["Sum", "x = 1 + 1"]


async def test_a_deleted_text_that_comes_back_has_the_focus(hall: VisitorFactory) -> None:
    page = await (await hall.admit()).open("/en/playground")
    async with answered(page, "POST"):
        await page.locator("[data-action=add-text]").first.click()
    await page.locator(".scratch textarea").fill("Notes")
    async with answered(page, "PUT"):
        await page.get_by_role("button", name="Save").click()
    async with answered(page, "DELETE"):
        await page.locator(".scratch [data-action=delete]").click()
    await expect(page.locator(".scratch-gone button")).to_be_focused()

    async with answered(page, "POST"):
        await page.keyboard.press("Enter")

    await expect(page.locator(".scratch [data-action=edit-text]")).to_be_focused()
