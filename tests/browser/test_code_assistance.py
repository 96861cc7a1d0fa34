"""What the editor knows: completion, documentation, errors in their lines, and keys for a phone."""

from __future__ import annotations

import re

from playwright.async_api import Locator, Page, expect

from tests.browser.accessibility import assert_readable_in_both_themes
from tests.browser.cell_page_object import CellPageObject, skip_predictions
from tests.browser.conftest import VisitorFactory

LESSON = "/en/courses/distributed-tensorflow/distribution-strategies"
FRONT_PAGE = "/en/"
"""It has the same cell as the lesson, and a browser draws it faster: for what needs only one."""


async def started(page: Page, cell: CellPageObject) -> None:
    """Start the cell's session."""
    await cell.write("import time\nclass Grid:\n    rows = columns = 3\ngrid = Grid()")
    await cell.run()
    await cell.finished()


async def answered(page: Page, key: str) -> bool:
    """Press a key that asks the kernel; whether that could answer within its second."""
    async with page.expect_request("**/introspection") as asked:
        await page.keyboard.press(key)
    response = await (await asked.value).response()
    return response is not None and (await response.json())["state"] == "answered"


async def complete(page: Page) -> None:
    """Press Tab after a name, and again where the kernel could not answer."""
    while not await answered(page, "Tab"):
        pass


async def document(page: Page) -> Locator:
    """Press Shift+Tab after a name, and again where the kernel could not answer; returns what is shown of it."""
    shown = page.get_by_role("note", name="Documentation")
    while not await answered(page, "Shift+Tab"):
        await expect(shown).to_contain_text("The session is busy")
        await page.keyboard.press("Escape")
    return shown


async def test_tab_completes_and_shift_tab_documents_a_name(hall: VisitorFactory) -> None:
    page = await (await hall.admit()).open(FRONT_PAGE)
    cell = CellPageObject(page, "strategy")
    options = cell.root.get_by_role("option")
    await started(page, cell)

    await cell.write("grid.")
    await complete(page)
    await expect(options).to_have_text(["columns", "rows"])
    await page.keyboard.press("ArrowDown")
    await page.keyboard.press("Tab")
    assert await cell.code() == "grid.rows"

    await cell.write("import tensorflow as tf\ntf.distribute.Mirr")
    await complete(page)  # the import has not run; the only possibility needs no list
    await expect(cell.editor).to_contain_text("tf.distribute.MirroredStrategy")
    await page.keyboard.type("(")
    await expect(cell.editor).to_contain_text("MirroredStrategy()")
    documentation = await document(page)
    await expect(documentation).to_contain_text("MirroredStrategy(devices=None")
    await expect(page.locator("#announcements")).to_contain_text("Synchronous training")
    await assert_readable_in_both_themes(page, "documentation", "#cell-strategy")
    await page.keyboard.press("Shift+Tab")
    await expect(documentation).to_be_focused()
    await page.keyboard.press("Escape")
    await expect(documentation).to_have_count(0)
    await expect(cell.editor).to_be_focused()

    await cell.write("    x = 1")
    await page.keyboard.press("Home")
    await page.keyboard.press("Shift+Tab")
    assert await cell.code() == "x = 1"


async def test_while_a_cell_runs_the_editor_completes_what_the_lesson_has(hall: VisitorFactory) -> None:
    page = await (await hall.admit()).open(LESSON)
    cell, following = CellPageObject(page, "strategy"), CellPageObject(page, "components")
    await cell.write("import time\nstrategic_wait = 300\nprint('going')\ntime.sleep(strategic_wait)")
    await cell.run()
    await cell.has_row("going")

    await following.write("strategic_")
    await page.keyboard.press("Tab")
    await expect(following.editor).to_have_text("strategic_wait")
    await following.write("whi")
    await page.keyboard.press("Tab")
    await expect(following.editor).to_have_text("while")
    await following.write("print(")
    await page.keyboard.press("Shift+Tab")
    await expect(page.get_by_role("note", name="Documentation")).to_contain_text("The session is busy")
    await cell.button("stop").click()
    await cell.finished("interrupted")


async def test_an_error_is_marked_in_its_line_until_the_code_changes(hall: VisitorFactory) -> None:
    page = await (await hall.admit()).open(LESSON)
    await skip_predictions(page)
    cell, following = CellPageObject(page, "strategy"), CellPageObject(page, "components")
    await cell.write("import json\n\ndef load(text):\n    return json.loads(text)\n")
    await cell.run()
    await cell.finished()

    await following.write("load('{')\nprint('never')")
    await following.run()
    await following.finished("error")
    await expect(page.locator("#announcements")).to_contain_text("Ended with JSONDecodeError. Line 1 of “")
    await expect(following.root.locator(".error-line")).to_have_text("load('{')")
    places = following.root.locator(".frame-place")
    await expect(places).to_have_text([re.compile("^Line 1 of “"), "Line 4 of “Four replicas”"])
    await expect(following.root.locator(".library")).not_to_have_attribute("open", "")

    await places.last.click()
    await expect(cell.editor).to_be_focused()
    await page.keyboard.insert_text("# here ")
    assert "    # here return" in await cell.code()

    await following.touch()
    await page.keyboard.press("End")
    await page.keyboard.insert_text(" ")
    await expect(following.root.locator(".error-line")).to_have_count(0)

    await following.write("x = = 1")
    await following.run()
    await following.finished("error")
    await expect(following.root.locator(".error-line")).to_have_text("x = = 1")


async def test_a_phone_has_the_keys_that_code_needs_and_wraps_lines(hall: VisitorFactory) -> None:
    page = await (await hall.admit(width=390, height=844)).open(LESSON)
    cell = CellPageObject(page, "strategy")
    await cell.write("")
    keys = cell.root.get_by_role("toolbar", name="Keys for code")
    for key in ("[", "_", "=", "(", ":"):
        await keys.get_by_role("button", name=key, exact=True).tap()
        await expect(cell.editor).to_be_focused()
    assert await cell.code() == "[_=(:)]"
    await page.keyboard.press("Home")
    await keys.get_by_role("button", name="Tab", exact=True).tap()
    assert await cell.code() == "    [_=(:)]"

    await cell.write(f"x = '{'wide ' * 60}'")
    scrolls = "element => element.scrollWidth > element.clientWidth"
    assert await cell.root.locator(".cm-scroller").evaluate(scrolls)
    wrap = keys.get_by_role("button", name="Wrap lines")
    await wrap.tap()
    await expect(wrap).to_have_attribute("aria-pressed", "true")
    assert not await cell.root.locator(".cm-scroller").evaluate(scrolls)
    row, window = await keys.bounding_box(), page.viewport_size
    assert row is not None
    assert window is not None
    assert abs(row["y"] + row["height"] - window["height"]) < 1

    await page.reload()
    await page.locator("#cell-strategy .cm-content").wait_for()
    assert not await page.locator("#cell-model pre.code").evaluate(scrolls)


async def test_find_and_line_numbers_belong_to_the_editor(hall: VisitorFactory) -> None:
    page = await (await hall.admit()).open(LESSON)
    cell = CellPageObject(page, "strategy")
    await cell.write("alpha = 1\nbeta = alpha\n")
    await page.keyboard.press("Control+f")
    await page.keyboard.type("alpha")
    await expect(cell.root.locator(".cm-searchMatch")).to_have_count(2)
    await page.keyboard.press("Escape")
    await expect(cell.editor).to_be_focused()

    await page.keyboard.press("Escape")
    await page.keyboard.press("Tab")
    await page.keyboard.press("ArrowRight")
    await expect(cell.root.get_by_role("button", name="Line numbers")).to_be_focused()
    await page.keyboard.press("Enter")
    await expect(cell.root.locator(".cm-lineNumbers .cm-gutterElement")).to_contain_text(["", "1", "2", "3"])
    await page.keyboard.press("Tab")
    await expect(cell.root.locator(".editor-bar")).not_to_be_visible()
