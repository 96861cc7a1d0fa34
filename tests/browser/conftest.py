"""Real pages in a real Chromium: one application with its runner for all tests, and a new profile for each."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import TypedDict
from urllib.parse import urlsplit

import pytest
import pytest_asyncio
from playwright.async_api import Browser, BrowserContext, Page, ViewportSize, async_playwright, expect
from pytest_asyncio import is_async_test

from tests.browser.accessibility import WINDOWED
from tests.browser.loopback import Loopback
from tests.browser.site import Site
from tests.browser.slowness import delay_requests, lengthen_presses, slow_down

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
_ARGUMENTS = [
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
_PATIENCE_MS = 20_000
"""For anything that a page is to show or do; on an idle machine it takes a moment."""
expect.set_options(timeout=_PATIENCE_MS)


def program(*, whole: bool = False) -> str | None:
    """The leanest Chromium of this machine: a whole one draws windows that nobody sees, at five times the CPU time.

    ``whole``: one with all that people have, such as the memory from which Back takes pages.
    """
    names = ["chromium", "chromium-browser", "google-chrome"]
    return next(filter(None, map(shutil.which, names if whole else ["chromium-headless-shell", *names])), None)


@pytest.hookimpl(tryfirst=True)  # before -m chooses
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """One event loop for all tests here: they share the browser. Mark those with more windows in the long tests."""
    for item in items:
        if HERE in item.path.parents and is_async_test(item):
            item.add_marker(pytest.mark.asyncio(loop_scope="session"), append=False)
            assert isinstance(item, pytest.Function)
            if not WINDOWED.isdisjoint(item.function.__code__.co_names):
                item.add_marker("windows")


@pytest.fixture(scope="package")
def network() -> Iterator[Loopback]:
    """The network of the browser and the sites."""
    network = Loopback()
    yield network
    network.close()


@pytest.fixture(scope="package")
def site(network: Loopback) -> Iterator[Site]:
    """The application on its own port, with its runner."""
    if not (ROOT / "app/web/static/dist/app.js").is_file():
        subprocess.run(["npm", "run", "--silent", "build"], cwd=ROOT, check=True)
    with Site(network=network) as site:
        yield site


@pytest_asyncio.fixture(scope="package", loop_scope="session")
async def chromium(network: Loopback) -> AsyncIterator[Browser]:
    """The browser of this machine."""
    path = program()
    if path is None:
        if os.environ.get("CI"):
            pytest.fail("there is no Chromium on this machine, and CI must not pass without its browser tests")
        pytest.skip("there is no Chromium on this machine")
    lengthen_presses()
    arguments = [*_ARGUMENTS, "--no-sandbox"] if os.geteuid() == 0 else _ARGUMENTS
    with network.entered():
        playwright = await async_playwright().start()
    browser = await playwright.chromium.launch(executable_path=path, args=arguments)
    yield browser
    await browser.close()
    await playwright.stop()


class Visitor:
    """A person with a browser of their own; records everything that must never happen."""

    def __init__(self, context: BrowserContext, site: Site) -> None:
        self.context = context
        self.site = site
        self.complaints: list[str] = []
        self.elsewhere: list[str] = []
        self.refused: list[str] = []
        """Addresses that were answered with an error; said where a complaint is."""
        self.tolerated: list[str] = []
        """Pieces of console messages that a test expects."""

    async def page(self) -> Page:
        """A new tab."""
        page = await self.context.new_page()
        await slow_down(page)
        page.on("console", lambda message: self._note(message.type, message.text))
        page.on("pageerror", lambda error: self._note("error", str(error)))
        page.on("response", lambda response: self.refused.append(response.url) if response.status >= 400 else None)
        page.on("request", lambda request: self._look(request.url))
        return page

    async def open(self, path: str) -> Page:
        """Open one of our pages in a new tab, and wait for its script."""
        page = await self.page()
        await page.goto(self.site.url(path))
        return page

    def _note(self, kind: str, text: str) -> None:
        if kind in ("error", "warning"):
            self.complaints.append(text)

    def _look(self, url: str) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("data", "blob", "about") and parts.netloc not in self.site.hosts:
            self.elsewhere.append(url)

    def unexpected(self) -> list[str]:
        """The unexpected complaints."""
        found = [text for text in self.complaints if not any(piece in text for piece in self.tolerated)]
        return found and [*found, *self.refused]


class Window(TypedDict, total=False):
    """Properties of a visitor's browser: window size, color scheme, scripts, reduced motion."""

    width: int
    height: int
    dark: bool
    script: bool
    still: bool


class VisitorFactory:
    """Creates visitors, and checks on them at the end of the test."""

    def __init__(self, chromium: Browser, site: Site) -> None:
        self._chromium = chromium
        self._site = site
        self.visitors: list[Visitor] = []

    async def admit(
        self, *, width: int = 1280, height: int = 900, dark: bool = False, script: bool = True, still: bool = True
    ) -> Visitor:
        """Create a visitor with a window of that size; a narrow one is a phone."""
        phone = width < 600
        context = await self._chromium.new_context(
            viewport=ViewportSize(width=width, height=height),
            color_scheme="dark" if dark else "light",
            java_script_enabled=script,
            is_mobile=phone,
            has_touch=phone,
            reduced_motion="reduce" if still else "no-preference",
        )
        context.set_default_timeout(_PATIENCE_MS)
        await delay_requests(context)
        visitor = Visitor(context, self._site)
        self.visitors.append(visitor)
        return visitor


@pytest_asyncio.fixture(loop_scope="session")
async def hall(chromium: Browser, site: Site) -> AsyncIterator[VisitorFactory]:
    """Visitors of one test. There must be no console errors, policy violations or requests to other hosts."""
    hall = VisitorFactory(chromium, site)
    yield hall
    for visitor in hall.visitors:
        await visitor.context.close()
    await site.end_sessions()
    assert [text for visitor in hall.visitors for text in visitor.unexpected()] == []
    assert [url for visitor in hall.visitors for url in visitor.elsewhere] == []
