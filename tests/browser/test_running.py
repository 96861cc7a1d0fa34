"""Pressing Run, and what must survive it."""

from __future__ import annotations

import asyncio

import pytest
from playwright.async_api import Route, expect

from tests.browser.accessibility import assert_accessible
from tests.browser.conftest import Hall
from tests.browser.instrument import Instrument
from tests.browser.site import Site

LESSON = "/en/courses/distributed-tensorflow/distribution-strategies"
SERVER_AWAY = [
    "ERR_CONNECTION_REFUSED",
    "ERR_CONNECTION_RESET",
    "ERR_CONTENT_LENGTH_MISMATCH",
    "ERR_EMPTY_RESPONSE",
    "ERR_INCOMPLETE_CHUNKED_ENCODING",
    "ERR_SOCKET_NOT_CONNECTED",
    "Failed to fetch",
]
COUNTING = "import time\nfor i in range({n}): print('row', i, flush=True); time.sleep({pause})"


def counting(n: int, pause: float) -> str:
    return COUNTING.format(n=n, pause=pause)


def rows(n: int) -> list[str]:
    return [f"row {i}" for i in range(n)]


async def test_the_first_cell_finds_four_replicas(hall: Hall) -> None:
    page = await (await hall.admit()).open(LESSON)
    cell = Instrument(page, "strategy")

    await cell.run()

    await cell.has_row("Replicas: 4")
    await cell.finished()
    await expect(cell.status).to_contain_text("Finished")
    await expect(cell.status).to_contain_text("first output")
    await expect(page.locator("#announcements")).to_contain_text("Four replicas: Finished")
    await expect(page.locator("#session")).to_have_attribute("data-state", "idle")


async def test_the_front_page_runs_it_too(hall: Hall) -> None:
    page = await (await hall.admit()).open("/en/")
    cell = Instrument(page, "strategy")

    await cell.run()

    await cell.has_row("Replicas: 4")


async def test_a_reload_keeps_the_output(hall: Hall) -> None:
    page = await (await hall.admit()).open(LESSON)
    cell = Instrument(page, "strategy")
    await cell.run()
    await cell.finished()

    await page.reload()

    await cell.finished()
    assert await cell.lines() == ["Replicas: 4"]


async def test_a_reload_in_mid_run_shows_every_line_once(hall: Hall) -> None:
    page = await (await hall.admit()).open(LESSON)
    cell = Instrument(page, "strategy")
    await cell.write(counting(40, 0.05))
    await cell.run()
    await cell.has_row("row 5")

    await page.reload()
    await cell.has_row("row 15")
    await page.reload()

    await cell.finished()
    assert await cell.lines() == rows(40)


async def test_a_restart_of_the_web_process_in_mid_run_shows_every_line_once(hall: Hall, site: Site) -> None:
    visitor = await hall.admit()
    visitor.tolerated += SERVER_AWAY
    page = await visitor.open(LESSON)
    cell = Instrument(page, "strategy")
    await cell.write(counting(120, 0.05))
    await cell.run()
    await cell.has_row("row 10")

    site.kill_web()
    await expect(cell.status).to_contain_text("reconnecting")
    await asyncio.to_thread(site.start_web)

    await cell.finished()
    assert await cell.lines() == rows(120)


async def test_a_page_whose_stream_is_refused_for_now_asks_again_and_loses_nothing(hall: Hall) -> None:
    visitor = await hall.admit()
    visitor.tolerated.append("429 (Too Many Requests)")
    page = await visitor.open(LESSON)
    refused = 0

    async def refuse_twice(route: Route) -> None:
        nonlocal refused
        refused += 1
        if refused > 2:
            await route.continue_()
        else:
            await route.fulfill(status=429, json={"error": {"code": "too_many", "message": "Wait a little."}})

    await page.route("**/stream?after=*", refuse_twice)
    cell = Instrument(page, "strategy")
    await cell.write(counting(20, 0.01))
    await cell.run()

    await cell.finished()
    assert await cell.lines() == rows(20)
    assert refused == 3


async def test_a_second_tab_sees_the_same_run(hall: Hall) -> None:
    visitor = await hall.admit()
    page = await visitor.open(LESSON)
    cell = Instrument(page, "strategy")
    await cell.write(counting(30, 0.05))
    await cell.run()
    await cell.has_row("row 3")

    other = Instrument(await visitor.open(LESSON), "strategy")

    await other.finished()
    assert await other.lines() == rows(30)
    await cell.finished()
    await cell.has_row("row 29")  # a tab behind another paints its last frame late
    assert await cell.lines() == rows(30)


async def test_a_second_run_waits_behind_the_first_says_so_and_is_stopped_with_it(hall: Hall) -> None:
    page = await (await hall.admit()).open(LESSON)
    first, second = Instrument(page, "strategy"), Instrument(page, "components")
    await first.write(counting(600, 0.1))
    await second.write("print('after')")
    await first.run()
    await first.has_row("row 0")

    await second.run()

    await expect(second.status).to_contain_text("Queued behind 1 run")
    await first.button("stop").click()
    await first.finished("interrupted")
    await second.finished("interrupted")
    assert await second.lines() == []


async def test_cells_run_in_the_order_in_which_they_were_pressed(hall: Hall) -> None:
    page = await (await hall.admit()).open(LESSON)
    cells = [Instrument(page, name) for name in ("strategy", "components", "assign", "model", "relatives")]
    for i, cell in enumerate(cells):
        await cell.write(f"order = {'order + ' if i else ''}[{i}]\nprint(order)")

    await page.evaluate("document.querySelectorAll('.cell [data-action=run]').forEach((b, i) => i < 5 && b.click())")

    await cells[-1].finished()
    assert await cells[-1].lines() == ["[0, 1, 2, 3, 4]"]


async def test_stop_ends_a_run_and_keeps_what_it_said(hall: Hall) -> None:
    page = await (await hall.admit()).open(LESSON)
    cell = Instrument(page, "strategy")
    await expect(cell.button("stop")).to_be_hidden()
    await cell.write(counting(600, 0.1))
    await cell.run()
    await cell.has_row("row 2")

    await cell.button("stop").click()

    await cell.finished("interrupted")
    assert (await cell.lines())[:3] == rows(3)


async def test_run_says_that_the_cell_is_at_work_and_the_focus_is_never_lost(hall: Hall) -> None:
    page = await (await hall.admit()).open(LESSON)
    cell = Instrument(page, "strategy")
    await expect(cell.button("run")).to_have_accessible_name("Run")
    await cell.write(counting(600, 0.1))
    await cell.button("run").press("Enter")
    await cell.has_row("row 2")

    await expect(cell.button("run")).to_have_accessible_name("Running")
    await expect(cell.button("run")).to_be_disabled()
    await expect(cell.button("run")).to_be_focused()
    await page.keyboard.press("Enter")
    await expect(page.locator("#announcements")).to_contain_text("Four replicas: still at work.")
    await assert_accessible(page, "a cell at work", "#cell-strategy")

    await cell.button("stop").press("Enter")

    await cell.finished("interrupted")
    await expect(cell.button("run")).to_be_focused()
    await expect(cell.button("run")).to_be_enabled()
    await expect(cell.button("run")).to_have_accessible_name("Run")
    runs = await page.evaluate(
        "async () => (await fetch('/runs?lesson=distributed-tensorflow/distribution-strategies')).json()"
    )
    assert len(runs["runs"]) == 1


async def test_stop_gives_up_a_run_that_the_runner_has_not_taken(hall: Hall, site: Site) -> None:
    visitor = await hall.admit()
    visitor.tolerated.append("status of 503")
    page = await visitor.open(LESSON)
    cell, other = Instrument(page, "strategy"), Instrument(page, "components")
    await other.write("print('asked')")
    site.kill_runner()
    await cell.run()
    await expect(cell.status).to_contain_text("not reachable")

    await cell.button("stop").click()
    await expect(cell.status).to_contain_text("Stopped")
    await other.run()
    site.start_runner()

    await other.finished()
    runs = await page.evaluate(
        "async () => (await fetch('/runs?lesson=distributed-tensorflow/distribution-strategies')).json()"
    )
    assert [run["cell"] for run in runs["runs"]] == ["components"]
    await expect(cell.root).to_have_attribute("data-state", "idle")


async def test_run_all_runs_in_order_and_ends_at_an_error(hall: Hall) -> None:
    page = await (await hall.admit()).open(LESSON)
    first, second, third = (Instrument(page, name) for name in ("strategy", "components", "assign"))
    await first.write("print('one')")
    await second.write("1 / 0")
    await third.write("print('never')")

    await page.locator("[data-action=run-all]").click()

    await first.finished()
    await second.finished("error")
    await expect(page.locator("[data-action=run-all]")).to_have_attribute("aria-pressed", "false")
    await expect(third.root).to_have_attribute("data-state", "idle")


async def test_restart_forgets_the_variables(hall: Hall) -> None:
    page = await (await hall.admit()).open(LESSON)
    cell = Instrument(page, "strategy")
    await cell.write("kept = 41")
    await cell.run()
    await cell.finished()

    await page.locator("#session-restart").click()
    await expect(page.locator("#session")).to_have_attribute("data-state", "idle")
    await cell.write("kept + 1")
    await cell.run()

    await cell.finished("error")
    await expect(cell.status).to_contain_text("NameError")


async def test_the_loss_of_the_runner_is_said_and_the_next_run_works(hall: Hall, site: Site) -> None:
    visitor = await hall.admit()
    visitor.tolerated.append("status of 503")
    page = await visitor.open(LESSON)
    cell, other = Instrument(page, "strategy"), Instrument(page, "components")
    await cell.write(counting(600, 0.1))
    await cell.run()
    await cell.has_row("row 2")

    site.kill_runner()
    await other.write("print('back')")
    await other.run()
    await expect(page.locator("#session")).to_have_attribute("data-state", "down")
    site.start_runner()

    await cell.finished("lost")
    await expect(cell.status).to_contain_text("Lost: the runner restarted; run it again")
    await expect(cell.status.get_by_role("button", name="Run again")).to_be_visible()
    await other.finished()
    assert await other.lines() == ["back"]


@pytest.mark.slow
async def test_the_training_loop_on_fashion_mnist_survives_a_reload(hall: Hall) -> None:
    page = await (await hall.admit()).open(LESSON.replace("distribution-strategies", "custom-training-loop"))
    for name in ("setup", "data", "distribute", "model", "steps"):
        await Instrument(page, name).run()
    loop = Instrument(page, "train")
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
    assert len(shown) > 5
    assert len(set(shown)) == len(shown)


async def test_a_page_opened_while_the_server_is_away_recovers(hall: Hall, site: Site) -> None:
    visitor = await hall.admit()
    visitor.tolerated += SERVER_AWAY
    page = await visitor.open(LESSON)
    cell = Instrument(page, "strategy")
    site.kill_web()

    await cell.run()

    await expect(cell.status).to_contain_text("trying again")
    await asyncio.to_thread(site.start_web)
    await cell.finished()
    assert await cell.lines() == ["Replicas: 4"]
