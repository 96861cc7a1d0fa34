"""Output of workers and replicas in lanes, and the choice of a machine."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path

import pytest
from playwright.async_api import Browser, Locator, Page, Route, expect

from tests.browser.accessibility import assert_accessible, assert_fits, assert_readable_in_both_themes
from tests.browser.cell_page_object import CellPageObject, skip_predictions
from tests.browser.conftest import VisitorFactory
from tests.browser.loopback import Loopback
from tests.browser.network_control import hold_requests, wait_for_requests
from tests.browser.polling import wait_until
from tests.browser.site import Site
from tests.factories import course

LESSON = "/en/courses/distributed-tensorflow/distribution-strategies"
FRONT_PAGE = "/en/"
"""It has the same cell as the lesson, and a browser draws it faster: for what does not depend on the layout."""
OVER = """async () => {
    const { runs } = await (await fetch("/runs?lesson=distributed-tensorflow/distribution-strategies")).json();
    return runs.every(run => run.outcome !== null);
}"""
SPEAKING = """\
def say(lane, text):
    content = {"name": "stdout", "text": text}
    get_ipython().kernel.publish("stream", content, lane)

print("before", flush=True)
for step in range(3):
    for i in (1, 0):
        say(f"replica {i}", f"step {step} of {i}\\n")
print("after", flush=True)
"""


FAILED_LINE = 'print("after", flush=True)'
FRAME = f"Cell In[1], line {SPEAKING.split(chr(10)).index(FAILED_LINE) + 1}\n{FAILED_LINE}"
FAILING = f"""\
{SPEAKING}
from runners.guest.reporting import publisher

class ClusterError(ValueError):
    def _render_traceback_(self):
        return []

ClusterError.__name__ = "ValueError"
error = {{"ename": "ValueError", "evalue": "PerReplica", "traceback": [{FRAME!r}, "ValueError: PerReplica"]}}
get_ipython().kernel.publish("error", error, "replica 1")
publisher.notice("keras-2-for-fit", "replica 1")
raise ClusterError("PerReplica")
"""


async def speak(page: Page, code: str = SPEAKING, outcome: str = "ok") -> CellPageObject:
    """A cell in which two replicas have printed."""
    cell = CellPageObject(page, "strategy")
    await cell.write(code)
    await cell.run()
    await cell.finished(outcome)
    return cell


async def until_runs_are_over(page: Page) -> None:
    """Wait until the server has ended every run of the lesson and the page has noticed it."""
    async with asyncio.timeout(20):
        while not await page.evaluate(OVER):  # noqa: ASYNC110 - the server only answers questions
            await asyncio.sleep(0.05)
    await wait_for_requests(page)


def lane(cell: CellPageObject, name: str) -> Locator:
    return cell.root.get_by_role("group", name=name, exact=True)


def view(cell: CellPageObject, name: str) -> Locator:
    return cell.root.get_by_role("group", name="Output view").get_by_role("radio", name=name)


async def test_replica_output_is_in_lanes_between_the_cells_own_output(hall: VisitorFactory) -> None:
    page = await (await hall.admit()).open(FRONT_PAGE)
    states: list[str | None] = []

    async def come_late(route: Route) -> None:
        await until_runs_are_over(page)
        states.append(await page.locator("#cell-strategy").get_attribute("data-state"))
        await route.continue_()

    await page.route("**/lanes-*.js", come_late)
    cell = await speak(page)

    assert states in (["waiting"], ["running"]), "the end was shown before the script that paints lanes had come"
    assert await lane(cell, "replica 0").locator(".row").all_text_contents() == [f"step {i} of 0" for i in range(3)]
    assert await lane(cell, "replica 1").locator(".row").all_text_contents() == [f"step {i} of 1" for i in range(3)]
    assert await cell.root.locator(".run-lane .lane-name").all_text_contents() == ["replica 0", "replica 1"]
    assert await cell.root.locator(".stretch").all_text_contents() == ["before", "after"]
    await assert_readable_in_both_themes(cell.page, "lanes", "#cell-strategy")


async def test_lanes_can_be_one_list_and_the_choice_is_kept(hall: VisitorFactory) -> None:
    page = await (await hall.admit()).open(FRONT_PAGE)
    cell = await speak(page)

    await expect(view(cell, "Lanes")).to_be_checked()
    await view(cell, "Lanes").press("ArrowRight")
    for _ in range(2):
        await expect(view(cell, "One list")).to_be_checked()
        await expect(cell.rows).to_have_count(8)
        lines = await cell.root.locator(".output .rows > *").all_text_contents()
        assert (lines[0], lines[-1]) == ("before", "after")
        assert sorted(lines[1:-1]) == sorted(f"replica {r}step {i} of {r}" for i in range(3) for r in range(2))
        await page.reload()
        await cell.finished()

    await assert_accessible(page, "one list", "#cell-strategy")
    await view(cell, "Lanes").check()
    await expect(lane(cell, "replica 1")).to_be_visible()


async def test_on_a_phone_one_lane_is_open_and_a_hint_in_another_is_in_sight(hall: VisitorFactory) -> None:
    page = await (await hall.admit(width=390, height=844)).open(FRONT_PAGE)
    cell = await speak(page, FAILING, "error")

    await expect(cell.root.locator(".error-line")).to_have_text(FAILED_LINE)
    await expect(cell.status.locator(".advice")).to_contain_text("Use Keras 2")
    await expect(page.locator("#announcements")).to_contain_text("Use Keras 2")
    await expect(lane(cell, "replica 0").locator("summary")).to_be_visible()
    opened = [await lane(cell, f"replica {i}").get_attribute("open") is not None for i in range(2)]
    assert sorted(opened) == [False, True]
    await lane(cell, f"replica {opened.index(False)}").locator("summary").tap()
    await expect(cell.root.locator(".run-lane[open]")).to_have_count(2)
    await assert_fits(page)


async def test_a_very_long_lane_is_folded_and_ends_in_sight(hall: VisitorFactory) -> None:
    code = """\
publish = get_ipython().kernel.publish
for block in range(30):
    text = "".join(f"line {block * 200 + i}\\n" for i in range(200))
    publish("stream", {"name": "stdout", "text": text}, "worker 1")
publish("stream", {"name": "stdout", "text": "short\\n"}, "worker 0")
"""
    cell = await speak(await (await hall.admit()).open(FRONT_PAGE), code)

    long = lane(cell, "worker 1")
    await expect(long.get_by_text("line 5999", exact=True)).to_be_attached()
    below = "box => box.scrollHeight - box.clientHeight - box.scrollTop"
    assert await long.locator(".lane-box").evaluate(below) < 2
    await expect(long.locator("summary")).to_contain_text("6,000 lines")
    await expect(long.locator(".fold")).to_contain_text("lines folded")
    assert await long.locator(".row").count() < 2_500
    assert await lane(cell, "worker 0").locator(".row").all_text_contents() == ["short"]


async def test_a_learner_picks_another_machine_for_a_fresh_session(hall: VisitorFactory) -> None:
    visitor = await hall.admit()
    page = await visitor.page()
    panel = await hold_requests(page, "**/session?*")  # the first is still under way when the machine changes
    await page.goto(visitor.site.url(LESSON))
    cell = CellPageObject(page, "strategy")
    button = cell.root.get_by_role("button", name=re.compile("^Change machine:"))
    await expect(button).to_contain_text("4 GPUs, simulated")

    await button.click()
    await expect(cell.root.get_by_text("starts a new session without your variables")).to_be_visible()
    await page.evaluate(
        "document.body.addEventListener('lockstep:session', () => document.body.dataset.told = 'again')"
    )
    await cell.root.get_by_role("radio", name="2 GPUs, simulated").check()
    await expect(page.locator("#announcements")).to_contain_text("Runs on 2 GPUs, simulated from now on.")
    await wait_until(page, "document.body.dataset.told === 'again'")
    panel.set()
    await expect(page.locator("#session .session-machine .machine-words")).to_have_text("2 GPUs, simulated")
    await assert_readable_in_both_themes(page, "the choice of a machine", "#cell-strategy")
    await page.keyboard.press("Escape")
    await expect(button).to_be_focused()
    await cell.run()
    await cell.has_row("Replicas: 2")
    await cell.finished()

    await page.reload()

    await expect(button).to_contain_text("2 GPUs, simulated")
    others = page.locator(".cell:has(.machine-button)")
    machines = await others.evaluate_all("cells => cells.map(cell => cell.dataset.topology)")
    assert len(machines) > 1
    assert set(machines) == {"gpu:2"}
    await cell.finished()
    assert await cell.lines() == ["Replicas: 2"]
    await cell.write("%env TF_USE_LEGACY_KERAS=1")
    await cell.run()
    there = cell.root.get_by_role("link", name="Open the playground, paste this code, and choose it there")
    await expect(there).to_have_attribute("href", re.compile("/en/playground$"))
    await assert_readable_in_both_themes(page, "the way to Keras 2", "#cell-strategy")


@pytest.mark.long
async def test_a_learner_picks_another_version_of_keras(chromium: Browser, network: Loopback, tmp_path: Path) -> None:
    course.add_choice(course.write_course(tmp_path))
    with Site(network=network, runner=False, lessons_dir=str(tmp_path)) as site:
        page = await (visitor := await VisitorFactory(chromium, site).admit()).open(f"/en/courses/{course.LESSON}")
        cell = CellPageObject(page, "choice")
        await cell.root.get_by_role("button", name="Change machine:").click()

        await cell.root.get_by_role("radio", name="Keras 2").check()

        await expect(cell.root.locator(".machine-button")).to_contain_text("Keras 2")
        await expect(page.locator("#session .session-machine")).to_contain_text("Keras 2")
        async with page.expect_request(lambda request: request.url.endswith("/runs")) as asked:
            await cell.run()
        assert json.loads((await asked.value).post_data or "{}")["keras"] == 2
        await visitor.context.close()


@pytest.mark.long
async def test_after_another_machine_was_picked_one_button_runs_from_the_first_cell(hall: VisitorFactory) -> None:
    page = await (await hall.admit()).open(LESSON)
    await skip_predictions(page)
    first, second = CellPageObject(page, "strategy"), CellPageObject(page, "components")
    await first.write("kept = 41")
    await second.write("print(kept + 1)")
    await first.root.get_by_role("button", name="Change machine:").click()
    await first.root.get_by_role("radio", name="2 GPUs, simulated").check()
    await expect(first.root.get_by_role("button", name="Run from the first cell")).to_be_hidden()
    await second.root.get_by_role("button", name="Change machine:").click()
    await expect(second.root.get_by_text("starts a new session without your variables")).to_be_visible()
    again = second.root.get_by_role("button", name="Run from the first cell")
    await expect(again).to_be_hidden()

    await second.root.get_by_role("radio", name="4 GPUs, simulated").check()

    await expect(again).to_be_visible()
    await assert_accessible(page, "the offer to run again", "#cell-strategy")
    await again.press("Enter")
    await first.finished()
    await second.finished()
    assert await second.lines() == ["42"]
    await expect(again).to_be_hidden()
    await expect(second.root.get_by_role("button", name="Change machine:")).to_be_focused()


async def test_a_cell_says_real_only_while_its_session_does(hall: VisitorFactory) -> None:
    page = await (await hall.admit()).open(LESSON)
    words = page.locator("#cell-strategy .cell-top .machine-words").first
    panel, ask = re.compile(r"/session\?"), "document.body.dispatchEvent(new CustomEvent('lockstep:session'))"

    async def say_real(route: Route) -> None:
        answer = await route.fetch()
        body = (await answer.text()).replace("4 GPUs, simulated", "4 GPUs, real")
        await route.fulfill(response=answer, body=body)

    await page.route(panel, say_real)
    await page.evaluate(ask)
    await expect(words).to_have_text("4 GPUs, real")

    await page.unroute(panel)
    await page.evaluate(ask)
    await expect(words).to_have_text("4 GPUs, simulated")


async def test_without_a_choice_there_is_nothing_to_pick(hall: VisitorFactory) -> None:
    page = await (await hall.admit()).open("/en/")

    await expect(page.locator(".cell .machine")).to_have_count(1)
    await expect(page.locator(".picker, .machine-button")).to_have_count(0)
