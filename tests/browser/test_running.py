"""Pressing Run, and what runs must survive."""

from __future__ import annotations

import asyncio
import re

import pytest
from playwright.async_api import Page, Route, expect

from tests.browser.accessibility import assert_accessible, take_picture
from tests.browser.cell_page_object import CellPageObject, skip_predictions
from tests.browser.conftest import Visitor, VisitorFactory
from tests.browser.network_control import hold_requests, requests_to, wait_for_requests
from tests.browser.site import Site
from tests.browser.test_provenance import SESSION, Result
from tests.browser.test_visualizations import REPORT, TRAINING

LESSON = "/en/courses/distributed-tensorflow/distribution-strategies"
FRONT_PAGE = "/en/"
"""It has the same cell as the lesson, and a browser draws it faster: for what does not depend on the layout."""
SERVER_AWAY = [
    "ERR_CONNECTION_REFUSED",
    "ERR_CONNECTION_RESET",
    "ERR_CONTENT_LENGTH_MISMATCH",
    "ERR_EMPTY_RESPONSE",
    "ERR_INCOMPLETE_CHUNKED_ENCODING",
    "ERR_SOCKET_NOT_CONNECTED",
    "Failed to fetch",
    "network error",
]
MOVED = """
window.moved = 0;
new PerformanceObserver((list) => {
  for (const { value } of list.getEntries()) window.moved += value;
}).observe({ type: "layout-shift" });
"""
"""Adds up how much the page moves from its first paint on (the cumulative layout shift)."""
COUNTING = "import time\nfor i in range({n}): print('row', i, flush=True); time.sleep({pause})"


def counting(n: int, pause: float) -> str:
    return COUNTING.format(n=n, pause=pause)


def rows(n: int) -> list[str]:
    return [f"row {i}" for i in range(n)]


async def test_the_first_cell_finds_four_replicas(hall: VisitorFactory) -> None:
    page = await (await hall.admit()).open(LESSON)
    cell = CellPageObject(page, "strategy")

    await cell.run()

    await cell.has_row("Replicas: 4")
    await cell.finished()
    await expect(cell.status).to_contain_text("Finished")
    await expect(cell.status).to_contain_text("first output")
    await expect(page.locator("#announcements")).to_contain_text("Four replicas: Finished")
    await expect(page.locator("#session")).to_have_attribute("data-state", "idle")


async def test_a_cell_whose_run_is_pressed_before_the_script_has_loaded_runs_then(hall: VisitorFactory) -> None:
    visitor = await hall.admit()
    page = await visitor.page()
    script = await hold_requests(page, "**/dist/app.js*")
    await page.goto(visitor.site.url(FRONT_PAGE), wait_until="commit")
    cell = CellPageObject(page, "strategy")
    await cell.run()
    script.set()
    await cell.has_row("Replicas: 4")


async def test_a_usual_mistake_is_explained_in_the_language_of_the_page(hall: VisitorFactory) -> None:
    page = await (await hall.admit()).open("/ko/")
    cell = CellPageObject(page, "strategy")

    await cell.write("import torch")
    await cell.run()

    await cell.finished("error")
    await expect(cell.root.locator(".notice")).to_contain_text("torch 패키지는 이 사이트에 설치되어 있지 않고")


async def test_a_reload_keeps_the_output(hall: VisitorFactory) -> None:
    page = await (await hall.admit()).open(FRONT_PAGE)
    cell = CellPageObject(page, "strategy")
    await cell.run()
    await cell.finished()

    await page.reload()

    await cell.finished()
    assert await cell.lines() == ["Replicas: 4"]


async def test_a_reload_in_mid_run_shows_every_line_once(hall: VisitorFactory) -> None:
    page = await (await hall.admit()).open(FRONT_PAGE)
    cell = CellPageObject(page, "strategy")
    await cell.write(counting(40, 0.05))
    await cell.run()
    await cell.has_row("row 5")

    await page.reload()
    await cell.has_row("row 15")
    await page.reload()

    await cell.finished()
    assert await cell.lines() == rows(40)


async def test_a_reload_in_mid_run_does_not_start_the_clock_again_and_moves_nothing(hall: VisitorFactory) -> None:
    page = await (await hall.admit()).open(FRONT_PAGE)
    cell = CellPageObject(page, "strategy")
    bar = "progress('fit', 120, 300, left_s=130)"
    await cell.write(f"{REPORT}\n{TRAINING}\n{bar}\nfor i in range(15): print('row', i)\ntime.sleep(600)")
    await cell.run()
    await cell.has_row("row 14")
    await expect(cell.root.locator(".chart, .progress-bars")).to_have_count(2)
    await page.mouse.move(0, 0)
    await cell.root.locator(".result").evaluate("result => result.scrollIntoView({block: 'center'})")
    await page.add_init_script(MOVED)

    async def grow_old(route: Route) -> None:
        answer = await route.fetch()
        (run,) = (await answer.json())["runs"]
        assert 0 <= run["running_ms"] < 60_000
        await route.fulfill(response=answer, json={"runs": [run | {"running_ms": 200_000}]})

    await page.route("**/runs?lesson=*", grow_old)
    await page.reload()

    await expect(cell.status.locator(".facts")).to_contain_text(re.compile("3 min [2-5]"))
    await expect(cell.root.locator(".chart, .progress-bars")).to_have_count(2)
    await expect(cell.editor).to_be_attached()
    assert await page.evaluate("moved") < 0.01
    await cell.button("stop").click()
    await cell.finished("interrupted")


@pytest.mark.long
async def test_a_restart_of_the_web_process_loses_no_line_and_no_press_of_run(hall: VisitorFactory, site: Site) -> None:
    at_work, just_opened = await hall.admit(), await hall.admit()
    for visitor in (at_work, just_opened):
        visitor.tolerated += SERVER_AWAY
    cell = CellPageObject(await at_work.open(FRONT_PAGE), "strategy")
    other = CellPageObject(await just_opened.open(FRONT_PAGE), "strategy")
    await cell.write(counting(120, 0.05))
    await cell.run()
    await cell.has_row("row 10")

    site.kill_web()
    await other.run()
    await expect(cell.status).to_contain_text("reconnecting")
    await expect(other.status).to_contain_text("retrying")
    await asyncio.to_thread(site.start_web)

    await other.finished()
    assert await other.lines() == ["Replicas: 4"]
    await cell.finished()
    assert await cell.lines() == rows(120)


async def test_a_page_whose_stream_is_refused_for_now_asks_again_and_loses_nothing(hall: VisitorFactory) -> None:
    visitor = await hall.admit()
    visitor.tolerated.append("429 (Too Many Requests)")
    page = await visitor.open(FRONT_PAGE)
    refused = 0

    async def refuse_twice(route: Route) -> None:
        nonlocal refused
        refused += 1
        if refused > 2:
            await route.continue_()
        else:
            await route.fulfill(status=429, json={"error": {"code": "too_many_requests", "message": "Wait a moment."}})

    await page.route("**/stream?after=*", refuse_twice)
    cell = CellPageObject(page, "strategy")
    await cell.write(counting(20, 0.01))
    await cell.run()

    await cell.finished()
    assert await cell.lines() == rows(20)
    assert refused == 3


async def test_a_second_tab_sees_the_same_run(hall: VisitorFactory) -> None:
    visitor = await hall.admit()
    page = await visitor.open(FRONT_PAGE)
    cell = CellPageObject(page, "strategy")
    await cell.write(counting(30, 0.05))
    await cell.run()
    await cell.has_row("row 3")

    other = CellPageObject(await visitor.open(FRONT_PAGE), "strategy")

    await other.finished()
    assert await other.lines() == rows(30)
    await cell.finished()
    await cell.has_row("row 29")  # a tab behind another paints its last frame late
    assert await cell.lines() == rows(30)


@pytest.mark.long
async def test_a_second_run_waits_behind_the_first_says_so_and_is_stopped_with_it(hall: VisitorFactory) -> None:
    page = await (await hall.admit()).open(LESSON)
    await skip_predictions(page)
    first, second = CellPageObject(page, "strategy"), CellPageObject(page, "components")
    await first.write(counting(6_000, 0.1))
    await second.write("print('after')")
    await first.run()
    await first.has_row("row 0")

    await second.run()

    await expect(second.status).to_contain_text("Queued behind 1 run")
    await first.button("stop").click()
    await first.finished("interrupted")
    await second.finished("interrupted")
    assert await second.lines() == []


@pytest.mark.long
async def test_cells_run_in_the_order_in_which_they_were_pressed(hall: VisitorFactory) -> None:
    page = await (await hall.admit()).open(LESSON)
    await skip_predictions(page)
    cells = [CellPageObject(page, name) for name in ("strategy", "components", "assign", "model", "relatives")]
    for i, cell in enumerate(cells):
        await cell.write(f"order = {'order + ' if i else ''}[{i}]\nprint(order)")

    await page.evaluate("document.querySelectorAll('.cell [data-action=run]').forEach((b, i) => i < 5 && b.click())")

    await cells[-1].finished()
    assert await cells[-1].lines() == ["[0, 1, 2, 3, 4]"]


async def test_stop_ends_a_run_and_keeps_what_it_said(hall: VisitorFactory) -> None:
    page = await (await hall.admit()).open(FRONT_PAGE)
    cell = CellPageObject(page, "strategy")
    await expect(cell.button("stop")).to_be_hidden()
    await cell.write(counting(6_000, 0.1))
    await cell.run()
    await cell.has_row("row 2")

    await cell.button("stop").click()

    await cell.finished("interrupted")
    assert (await cell.lines())[:3] == rows(3)


async def test_run_says_that_the_cell_is_at_work_and_the_focus_is_never_lost(hall: VisitorFactory) -> None:
    page = await (await hall.admit()).open(FRONT_PAGE)
    cell = CellPageObject(page, "strategy")
    await expect(cell.button("run")).to_have_accessible_name("Run Four replicas")
    await cell.write(counting(6_000, 0.1))
    await cell.button("run").press("Enter")
    await cell.has_row("row 2")

    await expect(cell.button("run")).to_have_accessible_name("Running Four replicas")
    await expect(cell.button("run")).to_be_disabled()
    await expect(cell.button("run")).to_be_focused()
    await page.keyboard.press("Enter")
    await expect(page.locator("#announcements")).to_contain_text("Four replicas is still running.")
    await assert_accessible(page, "a cell at work", "#cell-strategy")

    await cell.button("stop").press("Enter")

    await cell.finished("interrupted")
    await expect(cell.button("run")).to_be_focused()
    await expect(cell.button("run")).to_be_enabled()
    await expect(cell.button("run")).to_have_accessible_name("Run Four replicas")
    assert await names_of_runs(page) == ["strategy"]


async def test_run_all_runs_in_order_and_ends_at_an_error(hall: VisitorFactory) -> None:
    page = await (await hall.admit()).open(LESSON)
    await skip_predictions(page)
    first, second, third = (CellPageObject(page, name) for name in ("strategy", "components", "assign"))
    await first.write("print('one')")
    await second.write("1 / 0")
    await third.write("print('never')")

    await page.locator("[data-action=run-all]").click()

    await first.finished()
    await second.finished("error")
    await expect(page.locator("[data-action=run-all]")).to_have_attribute("aria-pressed", "false")
    await expect(third.root).to_have_attribute("data-state", "idle")


@pytest.mark.long
async def test_a_long_cell_says_its_outcome_beside_run_and_links_to_its_output(hall: VisitorFactory) -> None:
    page = await (await hall.admit(width=390, height=844)).open(LESSON)
    cell = CellPageObject(page, "strategy")
    wrong = "print('a line that is wider than the window of a phone', 1 2)"
    await cell.write("\n".join([*(f"line_{number} = {number}" for number in range(80)), wrong]))
    await page.keyboard.press("Control+Home")
    link = cell.root.locator(".last-outcome")
    await expect(link).to_be_hidden()

    await cell.run()

    await expect(link).to_have_text("Ended with SyntaxError: Output of the cell “Four replicas”", timeout=60_000)
    await expect(link).to_be_in_viewport(ratio=1)
    await assert_accessible(page, "an outcome beside Run", f"#cell-{cell.name} .cell-actions")
    await take_picture(page, "an outcome beside Run")
    await link.click()
    await expect(cell.root.locator(".output")).to_be_in_viewport()
    rows = cell.root.locator(".own .row")
    heights = await rows.evaluate_all("rows => rows.slice(1, 3).map(row => row.getBoundingClientRect().height)")
    assert len(set(heights)) == 1, "neither the wrong line nor its mark is wrapped, so one is below the other"
    await expect(rows.nth(2)).to_have_text(re.compile(r"^ +\^+$"))
    await cell.status.scroll_into_view_if_needed()
    await expect(link).to_be_hidden()


async def test_restart_forgets_the_variables(hall: VisitorFactory) -> None:
    page = await (await hall.admit()).open(LESSON)
    cell = CellPageObject(page, "strategy")
    await cell.write("kept = 41")
    await cell.run()
    await cell.finished()

    restart = await hold_requests(page, "**/session/restart?**")
    runs = requests_to(page, "/runs", "POST")
    await page.locator("#session-restart").click()
    await cell.write("kept + 1")
    await cell.run()
    await wait_for_requests(page)
    assert runs == [], "the run would use the session from before the restart"
    restart.set()

    await cell.finished("error")
    await expect(cell.status).to_contain_text("NameError")


@pytest.mark.long
async def test_a_lost_runner_is_named_and_what_waits_runs_unless_stopped(hall: VisitorFactory, site: Site) -> None:
    ada, bob = await hall.admit(), await hall.admit()
    for visitor in (ada, bob):
        visitor.tolerated.append("status of 503")
    page, bobs = await ada.open(LESSON), await bob.open(LESSON)
    await skip_predictions(page)
    await skip_predictions(bobs)
    cell, given_up, other = (CellPageObject(page, name) for name in ("strategy", "components", "assign"))
    await cell.write(counting(6_000, 0.1))
    await cell.run()
    await other.write("print('back')")
    await cell.has_row("row 2")
    first, second = Result(bobs, "strategy"), Result(bobs, "components")
    await first.has_run("kept = 41\nprint('before')")
    await second.write("import time\nprint(kept + 1, flush=True)\nif not globals().get('short'): time.sleep(600)")
    await second.run()
    await second.has_row("42")

    site.kill_runner()
    await given_up.run()
    await expect(given_up.status).to_contain_text("cannot be reached")
    await given_up.button("stop").click()
    await expect(given_up.status).to_contain_text("Stopped")
    await other.run()
    await expect(page.locator("#session")).to_have_attribute("data-state", "down")
    site.start_runner()

    await cell.finished("lost")
    await expect(cell.status).to_contain_text("Lost: the runner restarted; run it again")
    await expect(cell.status.get_by_role("button", name="Run again")).to_be_visible()
    await other.finished()
    assert await other.lines() == ["back"]
    assert await names_of_runs(page) == ["assign", "strategy"]
    await expect(given_up.root).to_have_attribute("data-state", "idle")
    await what_is_left_runs_again_at_one_press(bob, first, second)


async def what_is_left_runs_again_at_one_press(visitor: Visitor, first: Result, second: Result) -> None:
    """The runner restarted while the second cell was running."""
    await second.finished("lost")
    await expect(first.page.locator("#session-notice")).to_contain_text("variables from earlier runs", timeout=60_000)
    await first.comes_from(SESSION)
    front = await visitor.open("/en/")
    await Result(front, "strategy").comes_from(SESSION)
    await front.close()
    await expect(second.status.get_by_role("button", name="Run again", exact=True)).to_be_visible()
    await take_picture(first.page, "lost")

    await first.write("kept, short = 41, True")
    await second.status.get_by_role("button", name="Run again from the first cell").click()
    await first.finished()
    await second.finished()
    assert await second.lines() == ["42"]


async def names_of_runs(page: Page) -> list[str]:
    """The cells of the lesson with a run that the server knows."""
    answer: dict[str, list[dict[str, str]]] = await page.evaluate(
        "async () => (await fetch('/runs?lesson=distributed-tensorflow/distribution-strategies')).json()"
    )
    return sorted(run["cell"] for run in answer["runs"])


@pytest.mark.long
async def test_the_training_loop_on_fashion_mnist_survives_a_reload(hall: VisitorFactory) -> None:
    page = await (await hall.admit()).open(LESSON.replace("distribution-strategies", "custom-training-loop"))
    data = CellPageObject(page, "data")
    await data.write((await data.code()).replace("6_000, 2_000", "640, 320"))
    for name in ("setup", "data", "distribute", "model", "steps"):
        await CellPageObject(page, name).run()
    loop = CellPageObject(page, "train")
    await loop.run()
    await expect(loop.rows.get_by_text("epoch 1").first).to_be_attached(timeout=180_000)

    await page.reload()

    await loop.finished(timeout_s=240)
    run = await page.evaluate(
        """async () => {
            const { runs } = await (await fetch(
                "/runs?lesson=distributed-tensorflow/custom-training-loop")).json();
            const { urls } = runs.find(run => run.cell === "train");
            return (await fetch(urls.events)).json();
        }"""
    )
    said = "".join(event["text"] for event in run["events"] if event["kind"] == "text" and event["stream"] == "stdout")
    shown = await loop.root.locator(".output .row:not(.err)").all_text_contents()
    assert [line.split("\r")[-1] for line in said.splitlines()] == shown
    assert [line[:17] for line in shown if "tested" in line] == [f"epoch {epoch}  tested  " for epoch in range(1, 9)]
    assert len(set(shown)) == len(shown)
