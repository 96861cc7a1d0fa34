"""An instructor's open page follows the lesson's file, at the place that has changed, and shows errors in it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from playwright.async_api import Browser, expect

from app.accounts.models import Role
from tests.browser.accessibility import assert_accessible
from tests.browser.conftest import VisitorFactory
from tests.browser.loopback import Loopback
from tests.browser.signed_in_visitors import admit_signed_in
from tests.browser.site import Site
from tests.factories.course import LESSON, write_course

pytestmark = pytest.mark.long

LONG = "\n\n".join(f"Paragraph {number} of a long lesson.\n\n## Part {number}" for number in range(40))


def change(lesson: Path, old: str, new: str) -> None:
    """Save the lesson in one step: half of a file would be a change of its own, and another reload."""
    saved = lesson.with_name(".saved")
    saved.write_text(lesson.read_text().replace(old, new))
    saved.replace(lesson)


@asynccontextmanager
async def closing(hall: VisitorFactory) -> AsyncIterator[None]:
    """Close the browsers at the end, in which nothing may have gone wrong."""
    try:
        yield
    finally:
        for visitor in hall.visitors:
            await visitor.context.close()
    assert [text for visitor in hall.visitors for text in visitor.unexpected()] == []


@pytest.fixture(scope="module")
def lesson(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = write_course(tmp_path_factory.mktemp("course") / "lessons") / LESSON / "lesson.md"
    file.write_text(file.read_text() + f"\n{LONG}\n\n```{{code-cell}} python\n:name: last\n\nprint(1)\n```\n")
    return file


@pytest.fixture(scope="module")
def written_site(network: Loopback, site: Site, lesson: Path) -> Iterator[Site]:
    """A site with a lesson that the test can change."""
    with Site(network=network, runner=site, lessons_dir=str(lesson.parents[2])) as own:
        yield own


async def test_the_page_follows_the_file(chromium: Browser, written_site: Site, lesson: Path) -> None:
    hall, url = VisitorFactory(chromium, written_site), written_site.url(f"/en/courses/{LESSON}")
    async with closing(hall):
        teacher, _ = await admit_signed_in(hall, "Grace Hopper", Role.instructor)
        page = await teacher.page()
        async with page.expect_response(lambda answer: answer.request.resource_type == "fetch" and answer.url == url):
            await page.goto(url)  # and then the page asks for itself, to have something to compare with
        change(lesson, "print(1)", "print(2)")
        await expect(page.locator("#cell-last")).to_contain_text("print(2)")
        await expect(page.locator("#cell-last")).to_be_in_viewport()

        change(lesson, "Some prose.", "<b>Bold</b>")
        mistakes = page.locator(".mistakes")
        await expect(mistakes).to_contain_text("first/lesson.md:21")
        await assert_accessible(page)
        change(lesson, "<b>Bold</b>", "Mended.")
        await expect(page.locator("article")).to_contain_text("Mended.")
        await expect(mistakes).to_have_count(0)


async def test_a_learners_page_does_not_ask_for_changes(chromium: Browser, written_site: Site) -> None:
    hall = VisitorFactory(chromium, written_site)
    async with closing(hall):
        learner, _ = await admit_signed_in(hall, "Ada Byron")
        page = await learner.page()
        asked: list[str] = []
        page.on("request", lambda request: asked.append(request.url))
        await page.goto(written_site.url(f"/en/courses/{LESSON}"))
        await expect(page.locator("#account-menu")).to_have_count(1)
        await page.wait_for_load_state("load")
        assert not [url for url in asked if "lesson-changes" in url]
