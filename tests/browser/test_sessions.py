"""The life of a session as its learner sees it: warned of, kept, ended, queued, lost; and the limits it meets."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page, expect

from tests.browser.conftest import Hall
from tests.browser.instrument import Instrument
from tests.browser.site import Site

LESSON = "/{}/courses/distributed-tensorflow/distribution-strategies"
SHOTS = os.environ.get("LOCKSTEP_TEST_SCREENSHOTS")


@pytest.fixture(scope="module")
def brief_site() -> Iterator[Site]:
    """A site whose sessions end soon and may not use much; it has a place for each test here."""
    limits = {"limits__run_s": "4", "limits__memory_mb": "400", "limits__output_mb": "1"}
    with Site(idle_s="25", warm_kernels="1", **limits) as site:
        yield site


@pytest.fixture
def narrow_site() -> Iterator[Site]:
    """A site with one place, free again some seconds after its learner has done nothing."""
    with Site(max_sessions="1", idle_s="10", warm_kernels="1") as site:
        yield site


@asynccontextmanager
async def hall_of(chromium: Browser, site: Site) -> AsyncIterator[Hall]:
    """Visitors of that site, whose browsers complain of nothing."""
    hall = Hall(chromium, site)
    yield hall
    for visitor in hall.visitors:
        await visitor.context.close()
    assert [text for visitor in hall.visitors for text in visitor.unexpected()] == []


@pytest_asyncio.fixture(loop_scope="session")
async def guests(chromium: Browser, brief_site: Site) -> AsyncIterator[Hall]:
    async with hall_of(chromium, brief_site) as hall:
        yield hall


@pytest_asyncio.fixture(loop_scope="session")
async def crowd(chromium: Browser, narrow_site: Site) -> AsyncIterator[Hall]:
    async with hall_of(chromium, narrow_site) as hall:
        yield hall


async def shoot(page: Page, name: str) -> None:
    if SHOTS:
        await page.screenshot(path=Path(SHOTS) / f"{name}.png")


async def accessible(page: Page) -> None:
    """axe finds nothing in the session card and the cells' status lines."""
    await page.evaluate((Path(__file__).parents[2] / "node_modules/axe-core/axe.min.js").read_text())
    found = await page.evaluate("axe.run('#session').then(r => r.violations.map(v => v.id + ': ' + v.help))")
    assert found == []


@pytest.mark.parametrize(
    ("language", "warning", "keep"),
    [
        ("en", "This session ends in less than a minute because nothing ran", "Keep it"),
        ("ko", "이 세션이 곧 끝납니다", "세션 유지"),
        ("zh", "此会话即将结束", "保留会话"),
    ],
)
async def test_a_warning_comes_without_taking_the_focus_and_can_be_answered(
    guests: Hall, language: str, warning: str, keep: str
) -> None:
    phone = language == "ko"
    visitor = await guests.admit(width=390 if phone else 1280, dark=language == "zh")
    page = await visitor.open(LESSON.format(language))
    cell = Instrument(page, "strategy")
    await cell.write("x = 1")
    await cell.run()
    await cell.finished()
    focused = await page.evaluate("document.activeElement.className")

    notice = page.get_by_role("status").filter(has_text=warning)
    await expect(notice).to_be_visible()
    assert await page.evaluate("document.activeElement.className") == focused
    await expect(notice).to_be_in_viewport()
    await shoot(page, f"warning-{language}")
    await accessible(page)

    async with page.expect_response(lambda answer: "/session/keep" in answer.url) as answer:
        await page.get_by_role("button", name=keep).press("Enter")
    assert (await answer.value).status == 200
    await cell.write("print(x)")
    await cell.run()
    await cell.has_row("1")
    await page.close()


async def test_the_end_is_said_and_what_the_next_run_does(guests: Hall) -> None:
    page = await (await guests.admit()).open(LESSON.format("en"))
    first, second = Instrument(page, "strategy"), Instrument(page, "components")
    await first.write("x = 1")
    await first.run()
    await first.finished()

    await expect(page.locator("#session")).to_have_attribute("data-state", "gone", timeout=60_000)
    await expect(page.locator("#session-notice")).to_contain_text("run the cells that you need again first")
    await expect(first.root.locator(".provenance")).to_contain_text("From an earlier session")
    await shoot(page, "ended")

    await second.write("print(x)")
    await second.run()
    await second.finished("error")
    await expect(second.status).to_contain_text("This session has not run every cell above")
    await shoot(page, "name-error")
    await second.status.get_by_role("button", name="Run again from the first cell").click()
    await first.finished()
    await second.finished()
    assert await second.lines() == ["1"]


async def test_a_queued_learner_sees_the_position_and_starts_when_one_leaves(crowd: Hall) -> None:
    first = await (await crowd.admit()).open(LESSON.format("en"))
    second = await (await crowd.admit()).open(LESSON.format("en"))
    busy, waiting = Instrument(first, "strategy"), Instrument(second, "strategy")
    await busy.write("import time\nprint('going', flush=True)\ntime.sleep(3.5)")
    await busy.run()
    await busy.has_row("going")
    await waiting.write("print('my turn')")
    await waiting.run()

    await expect(waiting.status).to_contain_text("Queued: position 1")
    await expect(second.locator(".session-state")).to_contain_text("Waiting for a free place: position 1")
    await shoot(second, "queued")
    await waiting.has_row("my turn", timeout_s=60)


@pytest.mark.parametrize(
    ("language", "told", "width"),
    [("en", "gave its place to someone", 1280), ("ko", "자리를 내주었습니다", 360), ("zh", "让给了正在等待的人", 1280)],
)
async def test_whoever_gives_way_is_told_at_once_and_without_a_reload(
    crowd: Hall, language: str, told: str, width: int
) -> None:
    first = await (await crowd.admit(width=width, dark=language == "zh")).open(LESSON.format(language))
    second = await (await crowd.admit()).open(LESSON.format("en"))
    done, waiting = Instrument(first, "strategy"), Instrument(second, "strategy")
    await done.write("x = 1")
    await done.run()
    await done.finished()
    notice = first.get_by_role("status").filter(has_text=told)

    await waiting.write("print('my turn')")
    await waiting.run()
    await waiting.has_row("my turn")
    await expect(notice).to_be_visible(timeout=30_000)
    await expect(notice).to_be_in_viewport()
    await shoot(first, f"gave-way-{language}")
    await accessible(first)
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
    guests: Hall, language: str, code: str, outcome: str, words: list[str]
) -> None:
    page = await (await guests.admit(dark=language == "ko")).open(LESSON.format(language))
    cell = Instrument(page, "strategy")
    await cell.write(code)
    await cell.run()
    await cell.finished(outcome, timeout_s=60)
    for piece in words:
        await expect(cell.status).to_contain_text(piece)
    await shoot(page, f"limit-{language}")


async def test_after_a_restart_of_the_runner_one_button_runs_again_from_the_first_cell(hall: Hall, site: Site) -> None:
    visitor = await hall.admit()
    visitor.tolerated.append("status of 503")
    page = await visitor.open(LESSON.format("en"))
    first, second = Instrument(page, "strategy"), Instrument(page, "components")
    await first.write("kept = 41")
    await first.run()
    await first.finished()
    await second.write("import time\nprint(kept + 1, flush=True)\nif not globals().get('short'): time.sleep(60)")
    await second.run()
    await second.has_row("42")

    site.kill_runner()
    site.start_runner()
    await second.finished("lost", timeout_s=60)
    await expect(page.locator("#session-notice")).to_contain_text("variables of earlier runs", timeout=60_000)
    await expect(second.status.get_by_role("button", name="Run again", exact=True)).to_be_visible()
    await shoot(page, "lost")

    await first.write("kept, short = 41, True")
    await second.status.get_by_role("button", name="Run again from the first cell").click()
    await first.finished()
    await second.finished(timeout_s=60)
    assert await second.lines() == ["42"]
