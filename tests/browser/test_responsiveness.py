"""A lot of output and many metrics: the page stays responsive."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import pytest
from playwright.async_api import Browser, Page, Route, expect

from tests.browser.cell_page_object import CellPageObject
from tests.browser.conftest import VisitorFactory
from tests.browser.test_visualizations import REPORT

pytestmark = pytest.mark.long
LESSON = "/en/courses/distributed-tensorflow/distribution-strategies"
MOST = 1 / 4
"""Of the page's work that one task may do, in which the page answers nobody. A share is the same on a slow machine."""
METRICS = """
for step in range(8_000):
    metric(step, loss=1 + math.sin(step) + (step == 3333) * 50, accuracy=step / 8_000)
"""
LANES = """
for block in range(250):
    for worker in range(8):
        text = "".join(f"step {block * 5 + i}: loss {1 / (1 + block):.4f}\\n" for i in range(5))
        get_ipython().kernel.publish("stream", {"name": "stdout", "text": text}, f"worker {worker}")
"""


@dataclass
class Recording:
    """Chromium's trace of a page."""

    trace: bytes = b""

    @property
    def longest_share(self) -> float:
        """The longest task of the page's main thread, in CPU time."""
        events: list[dict[str, Any]] = json.loads(self.trace)["traceEvents"]
        main = {(e["pid"], e["tid"]) for e in events if e["ph"] == "M" and e["args"].get("name") == "CrRendererMain"}
        mine = [e for e in events if (e["pid"], e["tid"]) in main and e["name"].endswith("RunTask")]
        took = [e["tdur"] for e in mine if "tdur" in e]
        assert len(took) > 100, "what was recorded says nothing about tasks"
        print(f"longest task: {max(took) / 1000:.0f} of {sum(took) / 1000:.0f} ms in {len(took)}")
        return float(max(took) / sum(took))


@asynccontextmanager
async def recorded(chromium: Browser, page: Page) -> AsyncIterator[Recording]:
    """Trace the page during the block."""
    recording = Recording()
    await chromium.start_tracing(page=page, categories=["toplevel", "disabled-by-default-devtools.timeline"])
    try:
        yield recording
    finally:
        recording.trace = await chromium.stop_tracing()


async def test_thousands_of_numbers_come_without_a_pause_and_few_are_drawn(
    hall: VisitorFactory, chromium: Browser
) -> None:
    cell = await shown_without_a_pause(hall, chromium, METRICS, ".legend li:has-text('accuracy 0.9999')")

    path = await cell.root.locator(".line .stroke").first.get_attribute("d") or ""
    assert path.count(" ") < 3_000
    assert "the highest 5" in (await cell.root.locator(".plot").first.get_attribute("aria-label") or "")


async def test_many_lanes_come_without_a_pause(hall: VisitorFactory, chromium: Browser) -> None:
    await shown_without_a_pause(hall, chromium, LANES, ".run-lane .row:has-text('step 1249')")


async def shown_without_a_pause(hall: VisitorFactory, chromium: Browser, code: str, last: str) -> CellPageObject:
    """Run the code, reload the page, and check that no task blocks it until all output is there."""
    page = await (await hall.admit()).open(LESSON)
    cell = CellPageObject(page, "strategy")

    async def all_is_there() -> None:
        await cell.finished(timeout_s=180)  # the supervisor reads a flood in its share of the time only
        await expect(cell.root.locator(last).first).to_be_attached(timeout=60_000)

    await cell.write(REPORT + code)
    async with recorded(chromium, page) as coming:
        await cell.run()
        await all_is_there()
    come = asyncio.Event()

    async def hold(route: Route) -> None:
        await come.wait()
        await route.continue_()

    await page.route("**/runs?lesson=*", hold)
    await page.reload()
    await page.evaluate("document.fonts.ready")
    async with recorded(chromium, page) as restored:
        come.set()
        await all_is_there()

    assert max(coming.longest_share, restored.longest_share) < MOST
    return cell
