"""A cluster on the page: selected, shown in lanes, and with a worker that is killed and restarted."""

from __future__ import annotations

from itertools import pairwise

import pytest
from playwright.async_api import Locator, Page, expect

from tests.browser.accessibility import assert_accessible, assert_fits
from tests.browser.cell_page_object import CellPageObject
from tests.browser.conftest import VisitorFactory
from tests.factories.long_cases import long_only

PAGE = "/en/courses/distributed-tensorflow/multi-worker"
CELL = "tf-config"
CLUSTER, OTHER_CLUSTER = "2 workers with 2 GPUs each, simulated", "2 workers, simulated"
WIDTHS = (360, 800, 1100, 1920)
NARROW = 1184
"""Up to here the panel is a sheet."""


async def resize(page: Page, width: int) -> Locator:
    """Open another window; returns the processes on its panel."""
    await page.set_viewport_size({"width": width, "height": 800})
    processes, bar = page.get_by_role("group", name="Workers", exact=True), page.locator("#session-bar")
    await expect(bar).to_be_visible(visible=width <= NARROW)  # the page has its new layout
    if width > NARROW:
        await expect(page.locator("#session-sheet:popover-open")).to_have_count(0)  # its script closes it after that
    elif not await processes.is_visible():
        await bar.click()
    await expect(processes).to_be_visible()
    box, rail = await processes.bounding_box(), await page.locator(".rail").bounding_box()
    assert box is not None
    assert rail is not None
    assert width <= NARROW or rail["x"] <= box["x"] < box["x"] + box["width"] <= rail["x"] + rail["width"]
    return processes


async def ran_on(page: Page, machine: str) -> CellPageObject:
    """A cell that has run on that machine."""
    cell = CellPageObject(page, CELL)
    button = cell.root.get_by_role("button", name="Change machine:")
    if await button.get_attribute("aria-expanded") != "true":
        await button.click()
    await cell.root.get_by_role("radio", name=machine, exact=True).check()
    await cell.write("print('here')")
    await cell.run()
    await cell.finished()
    return cell


async def test_a_worker_is_killed_from_the_page_and_started_again(hall: VisitorFactory) -> None:
    page = await (await hall.admit()).open(PAGE)
    cell = await ran_on(page, CLUSTER)
    await expect(cell.root.get_by_role("group", name="worker 1", exact=True).locator(".row")).to_have_text(["here"])

    for width in (*long_only(WIDTHS[0]), WIDTHS[-1]):
        processes = await resize(page, width)
        worker, said = processes.get_by_role("listitem").filter(has_text="worker 1"), processes.get_by_role("status")
        await processes.get_by_role("button", name="Kill: worker 1").click()
        await expect(said).to_have_text("worker 1 was killed.")
        await expect(worker).to_contain_text("ended")
        await expect(worker).not_to_contain_text("running")
        await assert_accessible(page, "a worker that was killed", "#session-sheet" if width <= NARROW else "#session")
        step, kill = page.get_by_label("Kill, pause, or slow down at step"), "Kill: worker 1"
        await expect(processes.get_by_role("button", name=kill)).to_be_hidden()
        await step.fill("1000")
        await processes.get_by_role("button", name=kill).click()
        await expect(said).to_have_text("worker 1 will be killed at step 1,000.")
        await expect(worker).to_contain_text("The next run starts it again")
        await processes.get_by_role("button", name="Cancel: worker 1").click()
        await step.fill("")
        await processes.get_by_role("button", name="Start again: worker 1").click()
        await expect(worker).to_contain_text("running", timeout=30_000)
        await expect(said).to_have_text("worker 1 was started again.")


@pytest.mark.long
async def test_what_waits_for_a_step_is_taken_back(hall: VisitorFactory) -> None:
    page = await (await hall.admit()).open(PAGE)
    await ran_on(page, CLUSTER)

    for width in WIDTHS:
        processes = await resize(page, width)
        said = processes.get_by_role("status")
        await page.get_by_label("Kill, pause, or slow down at step").fill("1000")
        await processes.get_by_role("button", name="Pause: worker 1").click()
        await expect(said).to_have_text("worker 1 will be paused at step 1,000.")
        await expect(processes.locator(".scheduled-failure")).to_contain_text(
            "Will be paused at step 1,000. The steps of the next run count: those of fit, "
            "train_on_batch, and lockstep.log."
        )
        back = processes.get_by_role("button", name="Cancel: worker 1")
        if width == 360:
            box = await back.bounding_box()
            assert box is not None
            assert min(box["width"], box["height"]) >= 44
        await back.click()
        await expect(processes.locator(".scheduled-failure")).to_have_count(0)
        await expect(said).to_have_text("Canceled: nothing will happen to worker 1.")


@pytest.mark.long
async def test_what_waits_for_a_step_is_a_chip_at_hand_that_takes_it_back(hall: VisitorFactory) -> None:
    page = await (await hall.admit()).open(PAGE)
    await ran_on(page, CLUSTER)

    for width in (WIDTHS[0], WIDTHS[-1]):
        processes = await resize(page, width)
        await page.get_by_label("Kill, pause, or slow down at step").fill("1000")
        await processes.get_by_role("button", name="Kill: worker 1").click()
        await expect(processes.locator(".scheduled-failure")).to_be_visible()
        if width <= NARROW:
            await page.keyboard.press("Escape")
            await expect(processes).to_be_hidden()
        chip = page.get_by_role("button", name="Cancel: worker 1 will be killed at step 1,000.")
        await expect(chip).to_be_in_viewport(ratio=1)
        await assert_fits(page, "a failure that waits")
        await assert_accessible(page, "a failure that waits", ".armed-failures")
        if width <= NARROW:
            box = await chip.bounding_box()
            assert box is not None
            assert box["height"] >= 44
        await chip.click()
        await expect(chip).to_have_count(0)
        await expect(page.locator("#armed-result")).to_have_text("Canceled: nothing will happen to worker 1.")


async def test_an_armed_failure_covers_neither_run_nor_the_row_of_keys(hall: VisitorFactory) -> None:
    page = await (await hall.admit(width=390, height=844)).open(PAGE)
    cell = await ran_on(page, CLUSTER)
    await page.locator("#session-bar").click()
    await page.get_by_label("Kill, pause, or slow down at step").fill("1000")
    await page.get_by_role("button", name="Kill: worker 1").click()
    await expect(page.locator(".armed-failures li")).to_have_count(1)
    await page.keyboard.press("Escape")
    await cell.write("\n".join(f"line_{number} = {number}" for number in range(80)))
    await page.keyboard.press("Control+Home")

    for focused in (True, False):
        if not focused:
            await cell.editor.evaluate("code => code.blur()")
        await expect(page.locator(".key-row:visible")).to_have_count(int(focused))
        boxes = [
            await page.locator(selector).bounding_box()
            for selector in (
                f"#cell-{CELL} [data-action=run]",
                ".armed-failures .chip",
                ".key-row:visible" if focused else "#session-bar",
            )
        ]
        for above, below in pairwise(box for box in boxes if box is not None):
            assert above["y"] + above["height"] <= below["y"]
        assert None not in boxes

    await page.locator(".armed-failures .chip").press("Enter")
    await expect(page.locator("#armed-result")).to_have_text("Canceled: nothing will happen to worker 1.")
    await expect(page.locator("#session-bar")).to_be_focused()


async def test_on_a_phone_a_failure_that_still_waits_is_said_below_the_folded_lanes(hall: VisitorFactory) -> None:
    page = await (await hall.admit(width=390, height=844)).open(PAGE.replace("/en/", "/zh/"))
    cell = CellPageObject(page, CELL)
    await cell.write("print('no steps')")
    await cell.run()
    await cell.finished()
    await page.locator("#session-bar").click()
    await page.get_by_label("在第几步终止、暂停或减速").fill("3")
    await page.get_by_role("button", name="终止").last.click()
    await expect(page.locator(".armed-failures li")).to_have_count(1)
    await page.keyboard.press("Escape")

    await cell.run()
    await cell.finished()

    lane = cell.root.get_by_role("group", name="worker 1", exact=True)
    await expect(lane).not_to_have_attribute("open", "")
    said = "这次运行没有计步，所以为 worker 1 安排的故障仍在等待。"
    await expect(cell.status.locator(".advice")).to_contain_text(said)
    await expect(page.locator("#announcements")).to_contain_text(said)


async def test_the_panel_addresses_the_session_of_the_cell_at_hand_and_says_which(hall: VisitorFactory) -> None:
    page = await (await hall.admit(width=1920)).open(PAGE)
    panel = page.locator("#session")
    shown = panel.locator(".session-machine .machine-words")
    for machine in (CLUSTER, OTHER_CLUSTER):
        await ran_on(page, machine)
    await expect(shown).to_have_text(OTHER_CLUSTER)

    await panel.get_by_role("button", name="Kill: worker 1").click()

    await expect(panel.get_by_role("listitem").filter(has_text="worker 1")).to_contain_text("ended")
    await expect(shown).to_have_text(OTHER_CLUSTER)
    await panel.get_by_role("group", name="Other sessions for this lesson").get_by_role("button").click()
    await expect(shown).to_have_text(CLUSTER)
    await expect(panel.locator(".members li[data-state=running]")).to_have_count(2)
    await expect(panel.get_by_role("status").last).not_to_contain_text("was killed")
