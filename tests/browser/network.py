"""A network that fails."""

from __future__ import annotations

from playwright.async_api import Page, Request, Route


async def lose_answers(page: Page, addresses: str) -> None:
    """What is posted there arrives, and its answer does not, until the page is unrouted."""

    async def lose(route: Route, request: Request) -> None:
        if request.method != "POST":
            await route.continue_()
            return
        await route.fetch(max_redirects=0)
        await route.abort("connectionreset")

    await page.route(addresses, lose)
