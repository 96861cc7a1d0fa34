"""The life of a session as its learner sees it: warnings, keeping, ending, queuing, losing; and its limits.

Only the long tests have it: it takes a site and a runner with low limits of its own.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import pytest
import pytest_asyncio
from playwright.async_api import Browser, expect

from tests.browser.accessibility import PHONE, assert_readable_in_both_themes, take_picture
from tests.browser.cell_page_object import CellPageObject, skip_predictions
from tests.browser.conftest import VisitorFactory
from tests.browser.loopback import Loopback
from tests.browser.site import Site

pytestmark = pytest.mark.long

LESSON = "/{}/courses/distributed-tensorflow/distribution-strategies"


@pytest.fixture(scope="module")
def narrow_site(network: Loopback) -> Iterator[Site]:
    """A site with one place and low limits. Its sessions are about to end from the first minute on, and end soon
    after they are idle, but not while a slow machine looks at them."""
    with Site(
        network=network,
        max_sessions="1",
        idle_s="40",
        warm_kernels="1",
        limits__run_s="4",
        limits__memory_mb="400",
        limits__output_mb="1",
    ) as site:
        yield site


@asynccontextmanager
async def hall_of(chromium: Browser, site: Site) -> AsyncIterator[VisitorFactory]:
    """Visitors of that site, without errors in their browsers."""
    hall = VisitorFactory(chromium, site)
    yield hall
    for visitor in hall.visitors:
        await visitor.context.close()
    assert [text for visitor in hall.visitors for text in visitor.unexpected()] == []


@pytest_asyncio.fixture(loop_scope="session")
async def crowd(chromium: Browser, narrow_site: Site) -> AsyncIterator[VisitorFactory]:
    async with hall_of(chromium, narrow_site) as hall:
        yield hall


async def test_a_warning_comes_without_taking_the_focus_and_can_be_answered(crowd: VisitorFactory) -> None:
    visitor = await crowd.admit()
    page = await visitor.open(LESSON.format("en"))
    cell = CellPageObject(page, "strategy")
    await cell.write("x = 1")
    await cell.run()
    await cell.finished()
    focused = await page.evaluate("document.activeElement.className")

    warning = "This session ends in less than a minute because nothing is running"
    notice = page.get_by_role("status").filter(has_text=warning)
    await expect(notice).to_be_visible()
    assert await page.evaluate("document.activeElement.className") == focused
    await expect(notice).to_be_in_viewport()
    await assert_readable_in_both_themes(page, "the warning", "#session")

    async with page.expect_response(lambda answer: "/session/keep" in answer.url) as answer:
        await page.get_by_role("button", name="Keep session").press("Enter")
    assert (await answer.value).status == 200
    await cell.write("print(x)")
    await cell.run()
    await cell.has_row("1")

    for language, words in (("ko", "이 세션이 곧 끝납니다"), ("zh", "此会话即将结束")):
        await page.goto(visitor.site.url(LESSON.format(language)))
        await page.set_viewport_size(PHONE)
        await expect(page.get_by_role("status").filter(has_text=words)).to_be_in_viewport()


async def test_the_end_is_said_and_what_the_next_run_does(crowd: VisitorFactory) -> None:
    page = await (await crowd.admit()).open(LESSON.format("en"))
    await skip_predictions(page)
    first, second = CellPageObject(page, "strategy"), CellPageObject(page, "components")
    await first.write("x = 1")
    await first.run()
    await first.finished()

    await expect(page.locator("#session")).to_have_attribute("data-state", "gone", timeout=120_000)
    await expect(page.locator("#session-notice")).to_contain_text("first rerun the cells that you need")
    await expect(first.root.locator(".provenance")).to_contain_text("From an earlier session")
    await take_picture(page, "ended")

    await second.write("print(x)")
    await second.run()
    await second.finished("error")
    await expect(second.status).to_contain_text("This session has not run every cell above")
    await take_picture(page, "name-error")
    await second.status.get_by_role("button", name="Run again from the first cell").click()
    await first.finished()
    await second.finished()
    assert await second.lines() == ["1"]


async def test_a_queued_learner_sees_the_position_and_starts_when_one_leaves(crowd: VisitorFactory) -> None:
    first = await (await crowd.admit()).open(LESSON.format("en"))
    second = await (await crowd.admit()).open(LESSON.format("en"))
    waiting = CellPageObject(second, "strategy")
    await waiting.write("print('my turn')")
    await skip_predictions(first)
    for cell in ("strategy", "components", "assign", "model"):  # one after the other; a run may take 4 s here
        busy = CellPageObject(first, cell)
        await busy.write("import time\nprint('going', flush=True)\ntime.sleep(3)")
        await busy.run()
    await CellPageObject(first, "strategy").has_row("going")
    await waiting.run()

    await expect(waiting.status).to_contain_text("Queued: position 1")
    await expect(second.locator(".session-state")).to_contain_text("Waiting for a free slot: position 1")
    await take_picture(second, "queued")
    await waiting.has_row("my turn", timeout_s=60)


@pytest.mark.parametrize(
    ("language", "told", "width"),
    [
        ("en", "ended to make room for someone", 1280),
        ("ko", "자리를 내주었습니다", 360),
    ],
)
async def test_whoever_gives_way_is_told_at_once_and_without_a_reload(
    crowd: VisitorFactory, language: str, told: str, width: int
) -> None:
    first = await (await crowd.admit(width=width)).open(LESSON.format(language))
    second = await (await crowd.admit()).open(LESSON.format("en"))
    done, waiting = CellPageObject(first, "strategy"), CellPageObject(second, "strategy")
    await done.write("x = 1")
    await done.run()
    await done.finished()
    notice = first.get_by_role("status").filter(has_text=told)

    await waiting.write("print('my turn')")
    await waiting.run()
    await waiting.has_row("my turn")
    await expect(notice).to_be_visible()
    await expect(notice).to_be_in_viewport()
    await take_picture(first, "evicted")
    await assert_readable_in_both_themes(first, "a session that gave way", "#session")
    await expect(first.locator("#session")).to_have_attribute("data-state", "gone")


@pytest.mark.parametrize(
    ("language", "code", "outcome", "words"),
    [
        ("en", "while True: pass", "timeout", ["time limit 4 s", "make the loop shorter"]),
        ("ko", "x = bytearray(2_000_000_000)\nx[::4096] = b'1' * len(x[::4096])", "memory", ["메모리 제한 400 MiB"]),
        ("zh", "while True: print('x' * 1000)", "output", ["输出上限 1 MiB", "请"]),
    ],
)
async def test_a_limit_is_named_with_its_value_and_what_to_try(
    crowd: VisitorFactory, language: str, code: str, outcome: str, words: list[str]
) -> None:
    page = await (await crowd.admit()).open(LESSON.format(language))
    cell = CellPageObject(page, "strategy")
    await cell.write(code)
    await cell.run()
    await cell.finished(outcome, timeout_s=60)
    for piece in words:
        await expect(cell.status).to_contain_text(piece)
    await take_picture(page, "limit")
