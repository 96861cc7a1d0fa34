"""Controls a page's requests: loses responses, and waits for earlier requests."""

from __future__ import annotations

import asyncio

from playwright.async_api import Page, Request, Route


async def hold_requests(page: Page, addresses: str) -> asyncio.Event:
    """Hold requests to these addresses until the event that is returned is set."""
    released = asyncio.Event()

    async def hold(route: Route) -> None:
        await released.wait()
        await route.continue_()

    await page.route(addresses, hold)
    return released


def requests_to(page: Page, address: str, method: str = "GET") -> list[str]:
    """The URLs of requests from now on that contain this address."""
    urls: list[str] = []
    page.on("request", lambda each: urls.append(each.url) if address in each.url and each.method == method else None)
    return urls


async def drop_responses(page: Page, addresses: str) -> None:
    """Let requests to this address arrive, but lose the responses until the page is unrouted."""

    async def lose(route: Route, request: Request) -> None:
        if request.method != "POST":
            await route.continue_()
            return
        await route.fetch(max_redirects=0)
        await route.abort("connectionreset")

    await page.route(addresses, lose)


async def wait_for_requests(page: Page) -> None:
    """Wait until earlier requests of the page are handled: one more request is answered and rendered."""
    await page.evaluate("fetch('/healthz').then(() => new Promise((done) => requestAnimationFrame(() => done())))")
