"""The session panel: beside the lesson if there is room, otherwise in a bar at the bottom."""

from __future__ import annotations

import pytest
from playwright.async_api import Page, Route, expect

from tests.browser.accessibility import assert_fits, assert_readable_in_both_themes
from tests.browser.cell_page_object import CellPageObject
from tests.browser.conftest import VisitorFactory
from tests.browser.polling import wait_until

LESSON = "/en/courses/distributed-tensorflow/distribution-strategies"
NARROW = (360, 800, 1100)
OVERLAP = """([bar, run]) => {
    const [a, b] = [bar, run].map((each) => document.querySelector(each).getBoundingClientRect());
    return a.top < b.bottom && b.top < a.bottom && a.left < b.right && b.left < a.right;
}"""

UNDER_WAY = """window.underWay = 0;
addEventListener("htmx:before:request", () => window.underWay++);
addEventListener("htmx:finally:request", () => window.underWay--);"""
"""Counts the requests whose answer the page does not know yet."""


async def scroll_to(page: Page, share: float) -> None:
    await page.evaluate("share => scrollTo(0, share * document.documentElement.scrollHeight)", share)


@pytest.mark.parametrize("width", [360, pytest.param(800, marks=pytest.mark.long), 1100])
async def test_the_session_is_one_press_away_wherever_one_reads(hall: VisitorFactory, width: int) -> None:
    page = await (await hall.admit(width=width, height=740)).open(LESSON)
    bar, title = page.locator("#session-bar"), page.locator("#session-title")
    await expect(bar).to_contain_text("4 GPUs, simulated")
    await expect(bar).to_contain_text("Keras 3")
    for share in (0, 0.5, 1):
        await scroll_to(page, share)
        box = await bar.bounding_box()
        assert box is not None
        assert box["height"] >= 44
        assert box["y"] + box["height"] == pytest.approx(740, abs=1)

        await bar.click()

        await expect(title).to_be_in_viewport()
        await expect(title).to_be_focused()
        assert not await page.evaluate(OVERLAP, ["#session-title", ".session-close"]), "its ring covers Close"
        await page.keyboard.press("Escape")
        await expect(title).to_be_hidden()
        await expect(bar).to_be_focused()
    await assert_fits(page)


async def test_the_bar_covers_neither_run_nor_the_end_of_the_page(hall: VisitorFactory) -> None:
    page = await (await hall.admit()).open(LESSON)
    cell = CellPageObject(page, "strategy")
    run = "#cell-strategy [data-action=run]"
    for width in NARROW:
        await page.set_viewport_size({"width": width, "height": 740})
        await expect(page.locator("#session-bar")).to_be_visible()
        await cell.root.evaluate("cell => cell.scrollIntoView({block: 'end'})")
        assert not await page.evaluate(OVERLAP, ["#session-bar", run]), f"at {width} px"
        await page.locator(run).focus()
        assert not await page.evaluate(OVERLAP, ["#session-bar", run]), f"at {width} px"
        await scroll_to(page, 1)
        assert not await page.evaluate(OVERLAP, ["#session-bar", ".foot-languages"]), f"at {width} px"


@pytest.mark.parametrize("width", [pytest.param(360, marks=pytest.mark.long), 1920])
async def test_a_run_is_interrupted_from_the_panel(hall: VisitorFactory, width: int) -> None:
    page = await (await hall.admit(width=width, height=740)).open(LESSON)
    cell = CellPageObject(page, "strategy")
    await cell.write("import time\nprint('begun')\ntime.sleep(600)")
    await cell.run()
    await cell.has_row("begun")
    stop = page.locator("#session-sheet").get_by_role("button", name="Stop")
    if width in NARROW:
        await expect(page.locator("#session-bar")).to_contain_text("Running")
        await cell.root.get_by_role("button", name="Session of the cell “Four replicas”").click()
        await expect(page.locator("#session-title")).to_be_focused()
        box = await stop.bounding_box()
        assert box is not None
        assert min(box["width"], box["height"]) >= 44
        # Only the sheet: it may cover a part of a link of the page behind it.
        await assert_readable_in_both_themes(page, "the session", "#session-sheet")
    else:
        await expect(page.locator("#session-bar")).to_be_hidden()

    await stop.click()

    await cell.finished("interrupted")


async def test_a_wide_window_has_the_panel_beside_the_lesson(hall: VisitorFactory) -> None:
    page = await (await hall.admit(width=1920)).open(LESSON)
    await expect(page.locator("#session-title")).to_be_in_viewport()
    await expect(page.locator("#session-bar")).to_be_hidden()
    await expect(page.locator(".session-close")).to_be_hidden()
    await expect(page.locator(".session-open").first).to_be_hidden()
    await expect(page.locator(".session-machine")).to_contain_text("Keras 3")


async def test_the_panel_polls_less_and_less_often_while_the_server_is_unavailable(hall: VisitorFactory) -> None:
    visitor = await hall.admit()
    page = await visitor.page()
    asked: list[int] = []

    async def answer(route: Route) -> None:
        if asked:
            asked.append(503)
            await route.fulfill(status=503, headers={"retry-after": "10"})
            return
        asked.append(200)
        response = await route.fetch()
        panel = (await response.text()).replace("lockstep:session from:body", "lockstep:session from:body, every 2s", 1)
        await route.fulfill(response=response, body=panel)

    visitor.tolerated.append("503 (Service Unavailable)")
    await page.clock.install()
    await page.add_init_script(UNDER_WAY)
    await page.route("**/en/session?*", answer)
    async with page.expect_response("**/en/session?*"):
        await page.goto(visitor.site.url(LESSON))
    await expect(page.locator("#session[data-state=none]")).to_be_visible()
    for _ in range(60):
        await page.clock.run_for(2_000)
        await wait_until(page, "window.underWay === 0")  # the page's clock does not wait for the answer

    assert 3 <= asked.count(503) <= 10, "every 2 seconds, it would be 60 times in two minutes"
