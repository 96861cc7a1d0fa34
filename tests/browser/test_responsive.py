"""Much output and many numbers: the page answers all the while."""

from __future__ import annotations

import pytest
from playwright.async_api import expect

from tests.browser.conftest import Hall
from tests.browser.instrument import Instrument
from tests.browser.test_seeing import REPORT

LESSON = "/en/courses/distributed-tensorflow/distribution-strategies"
LONGEST_MS = 200
"""A quiet machine stays below 100; one that does other work besides stops the browser in the middle of a task."""
WATCH = """
window.longest = 0;
new PerformanceObserver((list) => {
  for (const { duration } of list.getEntries()) window.longest = Math.max(window.longest, duration);
}).observe({ type: "longtask" });
"""
METRICS = """
for step in range(19_000):
    metric(step, loss=1 + math.sin(step / 500) + step % 7 / 100, accuracy=step / 19_000)
"""
LANES = """
for block in range(250):
    for worker in range(8):
        text = "".join(f"step {block * 5 + i}: loss {1 / (1 + block):.4f}\\n" for i in range(5))
        get_ipython().kernel.publish("stream", {"name": "stdout", "text": text}, f"worker {worker}")
"""


@pytest.mark.parametrize(
    ("code", "last"),
    [(METRICS, ".label text:has-text('accuracy 0.9999')"), (LANES, ".run-lane .row:has-text('step 1249')")],
    ids=["19,000 numbers", "10,000 lines in 8 lanes"],
)
async def test_no_task_keeps_the_page_from_answering(hall: Hall, code: str, last: str) -> None:
    visitor = await hall.admit()
    page = await visitor.page()
    await page.add_init_script(WATCH)
    await page.goto(visitor.site.url(LESSON))
    cell = Instrument(page, "strategy")
    await cell.write(REPORT + code)
    await cell.run()
    await expect(cell.root).to_have_attribute("data-state", "running")
    await page.evaluate("window.longest = 0")

    await cell.finished()
    await expect(cell.root.locator(last).first).to_be_attached()
    assert await page.evaluate("window.longest") < LONGEST_MS

    await page.reload()
    await cell.finished()
    await expect(cell.root.locator(last).first).to_be_attached()
    assert await page.evaluate("window.longest") < LONGEST_MS
