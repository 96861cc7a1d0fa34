"""Output belongs to the code, machine and session that produced it; otherwise the cell says where it is from."""

from __future__ import annotations

import pytest
from playwright.async_api import Route, expect

from app.db import Database
from app.runs.pruning import DeletionReason, prune_output
from tests.browser.accessibility import PHONE, assert_accessible_everywhere, assert_readable_in_both_themes
from tests.browser.cell_page_object import CellPageObject, skip_predictions
from tests.browser.conftest import VisitorFactory
from tests.browser.site import Site
from tests.factories.long_cases import long_only

LESSON = "/{}/courses/distributed-tensorflow/distribution-strategies"
FRONT_PAGE = "/{}/"
"""It has the same cell as the lesson, and a browser draws it faster: for what does not depend on the layout."""
CHOICE = "/en/courses/distributed-tensorflow/mirrored-strategy"
VERSION, SESSION = "From an earlier version of this cell", "From an earlier session"


class Result(CellPageObject):
    """A cell, and its note about the origin of its output."""

    async def has_run(self, code: str) -> None:
        await self.write(code)
        await self.run()
        await self.finished()
        await self.comes_from()

    async def comes_from(self, *words: str) -> None:
        """Wait until the cell names this origin; without one, until it names none."""
        line = self.root.locator(".provenance")
        if not words:
            await expect(line).to_be_hidden()
            await expect(self.root).not_to_have_attribute("data-stale", "")
            return
        await expect(line.locator(".words")).to_have_text(" · ".join(words))
        await expect(line).to_be_visible()
        await expect(self.root).to_have_attribute("data-stale", "")
        await expect(self.root.locator(".output")).to_have_accessible_description(" · ".join(words))


async def test_an_edit_is_marked_while_typed_and_unmarked_when_undone(hall: VisitorFactory) -> None:
    page = await (await hall.admit()).open(FRONT_PAGE.format("en"))
    cell = Result(page, "strategy")
    await cell.has_run("print('one')")

    await cell.touch()
    await page.keyboard.press("Control+End")
    await page.keyboard.type("#")
    await cell.comes_from(VERSION)
    await expect(page.locator("#announcements")).to_contain_text(VERSION)
    await page.keyboard.press("Backspace")
    await cell.comes_from()

    await page.keyboard.type("  # more")
    await expect(cell.root).to_have_attribute("data-edited", "")
    await page.reload()
    await cell.comes_from(VERSION)
    await cell.run()
    await cell.comes_from()
    await cell.finished()
    await cell.comes_from()


async def test_after_a_reset_the_code_that_made_the_output_is_one_press_away(hall: VisitorFactory) -> None:
    page = await (await hall.admit()).open(FRONT_PAGE.format("en"))
    cell = Result(page, "strategy")
    await cell.has_run("print('one')")

    await cell.button("reset").click()
    await cell.comes_from(VERSION)
    await page.reload()
    await cell.comes_from(VERSION)
    await cell.write("print('two')")
    await cell.button("show-code").click()

    await cell.comes_from()
    assert await cell.code() == "print('one')"
    await expect(cell.editor).to_be_focused()
    await expect(cell.button("reset")).to_have_text("Undo")
    await cell.button("reset").click()
    assert await cell.code() == "print('two')"
    await cell.comes_from(VERSION)


async def test_a_lesson_that_was_changed_has_other_code_than_the_one_that_ran(hall: VisitorFactory) -> None:
    page = await (await hall.admit()).open(LESSON.format("en"))
    cell = Result(page, "strategy")
    await cell.run()
    await cell.finished()
    await cell.comes_from()

    async def change(route: Route) -> None:
        lesson = await route.fetch()
        await route.fulfill(response=lesson, body=(await lesson.text()).replace("Replicas: ", "Count: "))

    await page.route("**/distribution-strategies", change)
    await page.reload()

    await cell.has_row("Replicas: 4")
    await cell.comes_from(VERSION)


@pytest.mark.long
async def test_another_machine_is_named(hall: VisitorFactory) -> None:
    page = await (await hall.admit()).open(CHOICE)
    name = await page.locator(".cell[data-group]").first.get_attribute("data-cell")
    cell = Result(page, name or "")
    await cell.has_run("print('here')")
    before = await cell.root.locator(".cell-top .machine-button .machine-words").inner_text()
    await cell.button("machine").click()
    radios = cell.root.locator("[data-pick=topology]")
    first = await cell.root.get_attribute("data-topology")

    await cell.root.locator(f"[data-pick=topology]:not([value='{first}'])").first.check(force=True)
    await cell.comes_from(f"From another machine: {before}")
    await page.reload()
    await cell.comes_from(f"From another machine: {before}")
    await expect(cell.button("show-code")).to_be_hidden()
    await cell.button("machine").click()
    await radios.and_(page.locator(f"[value='{first}']")).check(force=True)
    await cell.comes_from()


@pytest.mark.long
async def test_a_session_that_was_restarted_leaves_its_output_behind(hall: VisitorFactory) -> None:
    page = await (await hall.admit()).open(LESSON.format("en"))
    await skip_predictions(page)
    first, second = Result(page, "strategy"), Result(page, "components")
    await first.has_run("x = 1")
    await second.has_run("print(x)")

    await page.locator("#session-restart").click()

    await first.comes_from(SESSION)
    await second.comes_from(SESSION)
    await first.run()
    await first.finished()
    await first.comes_from()
    await second.comes_from(SESSION)
    await page.reload()
    await second.comes_from(SESSION)
    await first.comes_from()
    await first.write("x = 2")
    await first.comes_from(VERSION)
    await page.locator("#session-restart").click()
    await first.comes_from(VERSION, SESSION)


async def test_every_eye_can_read_output_that_is_dimmed(hall: VisitorFactory) -> None:
    visitor = await hall.admit()
    page = await visitor.open(FRONT_PAGE.format("en"))
    cell = Result(page, "strategy")
    await cell.has_run("import sys\nprint('plain \\033[31mred \\033[33myellow\\033[0m')\nprint('err', file=sys.stderr)")

    await cell.button("reset").click()

    await cell.comes_from(VERSION)
    await assert_readable_in_both_themes(page, "dimmed output", "#cell-strategy")
    for language, words in long_only(("ko", "이 셀의 이전 버전이 만든 출력"), ("zh", "来自此单元格的早期版本")):
        await page.goto(visitor.site.url(FRONT_PAGE.format(language)))
        await cell.comes_from(words)


@pytest.mark.long
async def test_deleted_output_says_so_and_keeps_its_code_and_outcome(hall: VisitorFactory, site: Site) -> None:
    visitor = await hall.admit()
    page = await visitor.open(FRONT_PAGE.format("en"))
    cell = Result(page, "strategy")
    code = "print('gone soon')\n1 / 0"
    await cell.write(code)
    await cell.run()
    await cell.finished("error")
    await _delete_output(site, await cell.root.get_attribute("data-run") or "")

    for language, width, deleted, ended in (
        *long_only(
            ("ko", 360, "이 실행의 출력을 삭제했습니다", "오류로 끝남"),
            ("zh", 360, "此次运行的输出已被删除", "因错误结束"),
        ),
        ("en", 1280, "deleted to make room for newer runs", "Ended with an error"),
    ):
        await page.set_viewport_size({"width": width, "height": 900})
        await page.goto(site.url(FRONT_PAGE.format(language)))
        await expect(cell.root.locator(".output")).to_contain_text(deleted)
        await expect(cell.status.locator(".word")).to_have_text(ended)
        await expect(cell.rows.get_by_text("gone soon")).to_have_count(0)
        await cell.comes_from()

    await cell.button("reset").click()
    await expect(cell.root).to_have_attribute("data-stale", "")
    await assert_accessible_everywhere(page, "deleted output", "#cell-strategy")
    await page.set_viewport_size(PHONE)
    box = await cell.button("show-code").bounding_box()
    assert box is not None
    assert box["height"] >= 24
    await cell.button("show-code").click()
    await cell.comes_from()
    assert await cell.code() == code


@pytest.mark.long
async def test_the_button_that_shows_the_code_that_ran_fits_a_thumb(hall: VisitorFactory) -> None:
    page = await (await hall.admit(width=360, height=800)).open(LESSON.format("ko"))
    cell = Result(page, "strategy")
    await cell.has_run("print('one')")
    await cell.button("reset").click()
    await expect(cell.root).to_have_attribute("data-stale", "")

    box = await cell.button("show-code").bounding_box()

    assert box is not None
    assert box["height"] >= 44


async def _delete_output(site: Site, run: str) -> None:
    """Delete output as the sweeper does when a newer run needs the space."""
    db = Database(site.database)
    async with db.writing() as session:
        assert await prune_output(session, [run], DeletionReason.quota) > 0
    await db.close()
