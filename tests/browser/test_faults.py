"""A cluster on the page: picked, heard in lanes, and one of its workers killed and started again."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.async_api import expect

from tests.browser.conftest import Hall
from tests.browser.instrument import Instrument
from tests.browser.site import Site
from tests.browser.test_pages import violations
from tests.factories.course import LESSON, add_choice, write_course

PAGE = f"/en/courses/{LESSON}"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """An application of its own, whose lesson offers a cluster."""
    lessons: Path = write_course(tmp_path_factory.mktemp("lessons"))
    add_choice(lessons)
    with Site(lessons_dir=str(lessons)) as site:
        yield site


async def test_a_worker_is_killed_from_the_page_and_started_again(hall: Hall) -> None:
    page = await (await hall.admit()).open(PAGE)
    cell = Instrument(page, "choice")
    await cell.root.get_by_role("button", name="Change the machine:").click()
    await cell.root.get_by_role("radio", name="2 workers with 2 GPUs each, simulated").check()
    await cell.run()
    await cell.finished()
    await expect(cell.root.get_by_role("group", name="worker 1", exact=True).locator(".row")).to_have_text(["choice"])
    processes = page.get_by_role("group", name="Its processes")
    worker, said = processes.get_by_role("listitem").filter(has_text="worker 1"), processes.get_by_role("status")

    await processes.get_by_role("button", name="Kill: worker 1").click()

    await expect(said).to_have_text("worker 1 was killed.")
    await expect(worker).to_contain_text("ended")
    assert await violations(page) == []
    await processes.get_by_role("button", name="Start again: worker 1").click()
    await expect(said).to_have_text("worker 1 starts again.")
    await expect(worker).to_contain_text("running", timeout=30_000)
    await page.get_by_label("Kill, pause or slow down at step").fill("1000")
    await processes.get_by_role("button", name="Pause: worker 1").click()
    await expect(said).to_have_text("worker 1 will be paused at step 1,000.")
