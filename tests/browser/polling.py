"""Waits for what only the page's own JavaScript can tell."""

from __future__ import annotations

import asyncio

from playwright.async_api import Page


async def wait_until(page: Page, expression: str, within_s: float = 20) -> None:
    """Evaluate a JavaScript expression until it is true.

    Playwright's ``wait_for_function`` calls ``eval`` in the page for every look but the first, which the page forbids.

    Raises:
        TimeoutError: it stayed false.
    """
    async with asyncio.timeout(within_s):
        while not await page.evaluate(expression):  # noqa: ASYNC110 - nothing tells when it changes
            await asyncio.sleep(0.05)
