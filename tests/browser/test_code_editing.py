"""Editing code: what is kept, what can be undone, and how to edit without a mouse."""

from __future__ import annotations

import pytest
from playwright.async_api import expect

from tests.browser.cell_page_object import CellPageObject
from tests.browser.conftest import VisitorFactory
from tests.browser.network_control import hold_requests

LESSON = "/en/courses/distributed-tensorflow/distribution-strategies"
FRONT_PAGE = "/en/"
"""It has the same cell as the lesson, and a browser draws it faster: for what does not depend on the layout."""
FOCUSED = "document.activeElement.closest('.cell')?.dataset.cell + ' ' + document.activeElement.className"
EDITOR_CHUNK = "**/chunks/editor-*"


async def test_what_is_typed_before_the_editor_has_loaded_is_in_it(hall: VisitorFactory) -> None:
    page = await (await hall.admit()).open(FRONT_PAGE)
    cell = CellPageObject(page, "strategy")
    original = await cell.code()
    come = await hold_requests(page, EDITOR_CHUNK)

    await cell.root.locator("pre.code").click()
    await page.keyboard.press("Control+a")
    await page.keyboard.type("print('typed')")
    await page.keyboard.press("Enter")
    await page.keyboard.insert_text("print('pasted')")
    await expect(cell.root).to_have_attribute("data-edited", "")
    await expect(cell.editor).to_have_count(0)
    come.set()

    await expect(cell.editor).to_be_focused()
    assert (await cell.code()).rstrip() == "print('typed')\nprint('pasted')"
    await page.keyboard.insert_text("  # and on")  # at once: keys with a pause between them are undone one by one
    assert (await cell.code()).rstrip() == "print('typed')\nprint('pasted')  # and on"
    await page.keyboard.press("Control+z")
    await page.keyboard.press("Control+z")
    assert (await cell.code()).rstrip() == original.rstrip()


async def test_code_runs_by_keyboard_before_the_editor_has_loaded(hall: VisitorFactory) -> None:
    page = await (await hall.admit()).open(LESSON)
    cell, following = CellPageObject(page, "strategy"), CellPageObject(page, "components")
    come = await hold_requests(page, EDITOR_CHUNK)

    await cell.root.locator("pre.code").focus()
    await page.keyboard.press("Control+a")
    await page.keyboard.type("print('early')")
    await page.keyboard.press("Shift+Enter")
    await page.keyboard.press("Control+a")
    await page.keyboard.type("print('next')")

    await cell.finished()
    assert await cell.lines() == ["early"]
    come.set()
    await expect(following.editor).to_be_focused()
    assert (await following.code()).rstrip() == "print('next')"
    assert (await cell.code()).rstrip() == "print('early')"


@pytest.mark.parametrize("loaded", [True, False], ids=["loaded", "loading"])
async def test_the_caret_and_a_selection_are_where_the_pointer_put_them(hall: VisitorFactory, loaded: bool) -> None:
    page = await (await hall.admit()).open(FRONT_PAGE)
    cell = CellPageObject(page, "strategy")
    come = await hold_requests(page, EDITOR_CHUNK)
    word = await page.evaluate_handle(
        """() => {
            const walker = document.createTreeWalker(document.querySelector("#cell-strategy pre.code"), 4);
            while (!walker.nextNode().data.includes("MirroredStrategy"));
            const range = document.createRange();
            range.selectNodeContents(walker.currentNode);
            return range.getBoundingClientRect().toJSON();
        }"""
    )
    box: dict[str, float] = await word.json_value()
    middle = box["y"] + box["height"] / 2
    if loaded:
        come.set()
        async with page.expect_response(EDITOR_CHUNK):
            await page.mouse.move(box["x"] + box["width"] - 1, middle)

    await page.mouse.move(box["x"] + box["width"] - 1, middle)
    await page.mouse.down()
    await page.mouse.up()
    await page.keyboard.insert_text("Here")
    come.set()
    await expect(cell.editor).to_be_focused()
    await expect(cell.editor).to_contain_text("MirroredStrategyHere()")

    await page.keyboard.press("Home")
    await page.keyboard.press("Tab")
    assert "    strategy" in await cell.code()  # who has clicked indents


async def test_edits_survive_a_reload(hall: VisitorFactory) -> None:
    page = await (await hall.admit()).open(FRONT_PAGE)
    cell = CellPageObject(page, "strategy")
    await expect(cell.root.get_by_text("edited", exact=True)).to_be_hidden()
    await cell.write("print('mine')")
    await expect(cell.root.get_by_text("edited", exact=True)).to_be_visible()

    await page.reload()

    await expect(cell.editor).to_be_visible()
    assert await cell.code() == "print('mine')"
    await expect(cell.root.get_by_text("edited", exact=True)).to_be_visible()


async def test_edits_stay_in_their_own_cell_and_lesson(hall: VisitorFactory) -> None:
    page = await (await hall.admit()).open(LESSON)
    await CellPageObject(page, "strategy").write("print('mine')")

    await page.goto(page.url.replace("distribution-strategies", "scaling-the-loss"))

    assert await page.locator(".cell[data-edited]").count() == 0


async def test_reset_shows_the_original_from_its_first_column_and_can_be_undone(hall: VisitorFactory) -> None:
    page = await (await hall.admit(width=390)).open(FRONT_PAGE)
    mine = f"print({'mine ' * 30!r})"
    cell = CellPageObject(page, "strategy")
    original = await cell.code()
    reset = cell.button("reset")
    await expect(reset).to_be_disabled()
    await cell.write(mine)
    across = cell.root.locator(".cm-scroller")
    assert await across.evaluate("code => code.scrollLeft") > 0

    await reset.click()
    assert await across.evaluate("code => [code.scrollLeft, code.scrollWidth > code.clientWidth]") == [0, True]
    assert (await cell.code()).rstrip() == original.rstrip()
    await expect(reset).to_have_text("Undo reset")

    await reset.click()
    assert await cell.code() == mine
    await expect(reset).to_have_text("Reset")


async def test_edits_of_an_older_original_are_kept_and_said_to_be_so(hall: VisitorFactory) -> None:
    visitor = await hall.admit()
    page = await visitor.open(FRONT_PAGE)
    await page.evaluate(
        """localStorage.setItem(
            'lockstep:draft::distributed-tensorflow/distribution-strategies:strategy',
            JSON.stringify({digest: 'of another version', code: 'print(1)'}))"""
    )

    await page.reload()

    cell = CellPageObject(page, "strategy")
    await expect(cell.root.get_by_text("The lesson has changed since you edited this cell")).to_be_visible()
    await expect(cell.editor).to_have_text("print(1)")


async def test_nothing_moves_when_the_editor_comes(hall: VisitorFactory) -> None:
    page = await (await hall.admit()).open(LESSON)
    await page.evaluate("document.fonts.ready")
    cell = CellPageObject(page, "model")
    height = await cell.root.evaluate("element => element.offsetHeight")
    before = await cell.root.locator("pre.code").bounding_box()
    colours = "element => [...element.querySelectorAll('span')].map(s => s.textContent + getComputedStyle(s).color)"
    painted = set(await cell.root.locator("pre.code").evaluate(colours))

    await cell.touch()

    after = await cell.root.locator(".editor").bounding_box()
    assert before is not None
    assert after is not None
    assert abs(before["height"] - after["height"]) < 1
    assert await cell.root.evaluate("element => element.offsetHeight") == height
    repainted = set(await cell.editor.evaluate(colours))
    assert {c for c in repainted if c.startswith(("import", "with", "for", "build_model", "print"))} <= painted


async def test_copy_takes_the_code_as_it_stands(hall: VisitorFactory) -> None:
    visitor = await hall.admit()
    await visitor.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page = await visitor.open(FRONT_PAGE)
    cell = CellPageObject(page, "strategy")
    await cell.write("print('mine')")

    await cell.button("copy").click()

    await expect(page.locator("#announcements")).to_contain_text("Code copied.")
    assert await page.evaluate("navigator.clipboard.readText()") == "print('mine')"


async def test_the_keyboard_alone_is_enough(hall: VisitorFactory) -> None:
    page = await (await hall.admit()).open(LESSON)
    cell, following = CellPageObject(page, "strategy"), CellPageObject(page, "components")
    await cell.button("run").focus()

    await page.keyboard.press("Tab")
    await expect(cell.editor).to_be_focused()
    await expect(cell.editor).to_have_attribute("aria-label", "Code of the cell “Four replicas”")
    await expect(page.locator("#editor-help")).to_contain_text("press Escape, then Tab")
    await page.keyboard.press("Control+a")
    await page.keyboard.type("if True:\nprint('typed')")
    assert await cell.code() == "if True:\n    print('typed')"

    await page.keyboard.press("Shift+Enter")
    await cell.finished()
    assert await cell.lines() == ["typed"]
    await expect(following.editor).to_be_focused()


async def test_tab_indents_and_escape_lets_it_leave(hall: VisitorFactory) -> None:
    page = await (await hall.admit()).open(FRONT_PAGE)
    cell = CellPageObject(page, "strategy")
    await cell.write("x = 1")

    await page.keyboard.press("Home")
    await page.keyboard.press("Tab")
    assert await cell.code() == "    x = 1"
    await page.keyboard.press("Escape")
    await page.keyboard.press("Tab")

    await expect(cell.editor).not_to_be_focused()
    assert await cell.code() == "    x = 1"


@pytest.mark.parametrize("width", [pytest.param(360, marks=pytest.mark.long), 1920])
async def test_tab_passes_through_the_editor_of_a_reader(hall: VisitorFactory, width: int) -> None:
    page = await (await hall.admit(width=width)).open(LESSON)
    cell = CellPageObject(page, "strategy")
    code = await cell.code()
    hint = cell.root.locator(".editor-hint")
    await cell.root.locator("pre.code").focus()
    await expect(cell.editor).to_be_focused()
    await expect(hint).to_have_text("Tab moves on. Once you type, it indents.")
    await expect(hint).to_be_visible(visible=width > 360)  # a phone has no such key
    await page.keyboard.press("ArrowDown")

    await page.keyboard.press("Tab")

    await expect(cell.editor).not_to_be_focused()
    assert await cell.code() == code
    await page.keyboard.press("Shift+Tab")
    await expect(cell.editor).to_be_focused()
    await page.keyboard.press("Shift+Tab")
    await expect(cell.editor).not_to_be_focused()


async def test_the_way_out_of_the_editor_is_said_beside_the_code_and_aloud(hall: VisitorFactory) -> None:
    page = await (await hall.admit()).open(LESSON)
    cell = CellPageObject(page, "strategy")
    await cell.write("x = 1")
    hint = cell.root.locator(".editor-hint")
    await expect(hint).to_have_text("Tab indents. Press Esc, then Tab, to move on.")
    for width in (360, 800, 1100, 1920):
        await page.set_viewport_size({"width": width, "height": 900})
        box = await hint.bounding_box()
        assert box is not None
        assert box["height"] < 30, "it has one line, and nothing moves when it comes"
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= width

    await page.keyboard.press("Tab")
    assert await cell.code() == "x = 1   "
    await expect(page.locator("#announcements")).to_have_text("Tab indents. Press Esc, then Tab, to move on.")
    await page.keyboard.press("Control+a")
    await page.keyboard.press("Escape")
    await expect(hint).to_have_text("Tab moves on. Once you type, it indents.")
    await page.keyboard.press("Tab")
    await expect(cell.editor).not_to_be_focused()
    assert await cell.code() == "x = 1   "


async def test_with_the_keyboard_of_a_phone_open_the_caret_and_run_are_visible(hall: VisitorFactory) -> None:
    page = await (await hall.admit(width=390, height=844)).open(LESSON)
    cell = CellPageObject(page, "strategy")
    await cell.write("\n".join(f"line_{number} = {number}" for number in range(40)))

    await page.set_viewport_size({"width": 390, "height": 400})  # as the keyboard does
    for keys in ([], ["Control+Home"], ["Control+End"], ["Enter", "x"], ["ArrowUp"] * 20):
        for key in keys:
            await page.keyboard.press(key)
        await expect(page.locator(".key-row:visible")).to_have_count(1)
        await page.wait_for_function(
            """() => {
                const [bar, caret, actions, run, keys] = [
                    "header", "#cell-strategy .cm-cursor-primary", "#cell-strategy .cell-actions",
                    "#cell-strategy [data-action=run]", "#cell-strategy .key-row",
                ].map(selector => document.querySelector(selector).getBoundingClientRect());
                return caret.top >= bar.bottom && caret.bottom <= actions.top && run.bottom <= keys.top;
            }"""
        )
    await expect(cell.root.locator(".editor-hint")).to_be_hidden()  # a phone has neither Tab nor Escape
    await cell.write("")
    for key in ("{", '"', "Cursor right", "*", "Undo", "#"):
        await page.locator(".key-row").get_by_role("button", name=key, exact=True).tap()
    assert await cell.code() == '{""#}'
    await page.keyboard.press("Tab")
    await expect(cell.root.locator(".editor-hint")).to_be_visible()  # a keyboard is connected, and Tab has indented


async def test_control_enter_runs_and_stays(hall: VisitorFactory) -> None:
    page = await (await hall.admit()).open(LESSON)
    cell = CellPageObject(page, "strategy")
    await cell.write("print('here')")

    await page.keyboard.press("Control+Enter")

    await cell.finished()
    await expect(cell.editor).to_be_focused()
    assert await cell.code() == "print('here')"
