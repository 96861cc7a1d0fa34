"""Makes the browser slow, to find what depends on the order in which things arrive. See docs/develop/tests.md."""

from __future__ import annotations

import asyncio
import os
import random
import re
from contextlib import suppress
from functools import partialmethod

from playwright.async_api import BrowserContext, Error, Keyboard, Locator, Page, Route

_LATE = os.environ.get("LOCKSTEP_TEST_LATE")
"""A regular expression: requests with such URLs are late by ``_LATE_S``."""
_LATE_S = 3.0
_SHUFFLE = os.environ.get("LOCKSTEP_TEST_SHUFFLE")
"""A seed: every request is late at random, mostly by little, at most by ``_SHUFFLE_S``."""
_SHUFFLE_S = 1.5
_SLOW_CPU = os.environ.get("LOCKSTEP_TEST_SLOW_CPU")
"""By how many times pages take longer to do what they do."""
_PRESS_MS = os.environ.get("LOCKSTEP_TEST_PRESS_MS")
"""For how long a click holds the mouse button down, and how long a key is pressed after what came before."""


async def delay_requests(context: BrowserContext) -> None:
    """Make the requests of a browser late, if the environment says so. Then nothing comes from its cache."""
    if not _LATE and not _SHUFFLE:
        return
    chance = random.Random(f"{_SHUFFLE} {os.environ['PYTEST_CURRENT_TEST']}")

    async def hold(route: Route) -> None:
        if _LATE and re.search(_LATE, route.request.url):
            await asyncio.sleep(_LATE_S)
        if _SHUFFLE:
            await asyncio.sleep(chance.random() ** 3 * _SHUFFLE_S)
        with suppress(Error):  # its page was closed
            await route.continue_()

    await context.route("**/*", hold)


async def slow_down(page: Page) -> None:
    """Make a page slow, if the environment says so."""
    if _SLOW_CPU:
        session = await page.context.new_cdp_session(page)
        await session.send("Emulation.setCPUThrottlingRate", {"rate": float(_SLOW_CPU)})


def lengthen_presses() -> None:
    """Make clicks long and let keys wait, if the environment says so."""
    if not _PRESS_MS:
        return
    press_ms = float(_PRESS_MS)
    Locator.click = partialmethod(Locator.click, delay=press_ms)  # type: ignore[assignment, method-assign]
    press = Keyboard.press

    async def press_late(keyboard: Keyboard, key: str, *, delay: float | None = None) -> None:
        await asyncio.sleep(press_ms / 1000)
        await press(keyboard, key, delay=delay)

    Keyboard.press = press_late  # type: ignore[assignment, method-assign]
