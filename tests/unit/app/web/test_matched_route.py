"""The route of a request, as middleware around the router learns it."""

from __future__ import annotations

import httpx
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Mount, Route
from starlette.types import ASGIApp, Receive, Scope, Send

from app.web.matched_route import MatchedRoute, RouteNoter, expect_route


async def _noted(path: str) -> str:
    found: list[MatchedRoute] = []

    class Outside:
        def __init__(self, app: ASGIApp) -> None:
            self._app = app

        async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
            found.append(expect_route(scope))
            await self._app({**scope}, receive, send)  # as middleware does that changes something

    async def show(_: Request) -> PlainTextResponse:
        return PlainTextResponse("")

    app = Starlette(
        routes=[Route("/runs/{id:int}", show), Mount("/files", PlainTextResponse(""))],
        middleware=[Middleware(Outside), Middleware(RouteNoter)],
    )
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://test") as client:
        await client.get(path)
    return found[0].template


async def test_a_request_has_the_template_of_its_route() -> None:
    assert await _noted("/runs/5") == "/runs/{id}"
    assert await _noted("/files/a/b.js") == "/files/{path}"


async def test_a_path_without_a_route_has_none() -> None:
    assert await _noted("/runs/five") == await _noted("/elsewhere") == "unmatched"
