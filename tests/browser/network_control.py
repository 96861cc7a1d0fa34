"""What a page sends: answers that are lost, and the end of what was sent before."""

from __future__ import annotations

from playwright.async_api import Page, Request, Route


async def drop_responses(page: Page, addresses: str) -> None:
    """What is posted there arrives, and its answer does not, until the page is unrouted."""

    async def lose(route: Route, request: Request) -> None:
        if request.method != "POST":
            await route.continue_()
            return
        await route.fetch(max_redirects=0)
        await route.abort("connectionreset")

    await page.route(addresses, lose)


async def wait_for_requests(page: Page) -> None:
    """What the page has asked its site before now has had its turn: one more request is answered and drawn."""
    await page.evaluate("fetch('/healthz').then(() => new Promise((done) => requestAnimationFrame(() => done())))")
