"""The route of a request, for middleware around the router: what lies between may pass on a copy of the scope."""

from __future__ import annotations

from dataclasses import dataclass

from starlette.routing import BaseRoute
from starlette.types import ASGIApp, Receive, Scope, Send

_SCOPE_KEY = "lockstep.matched_route"
_UNMATCHED = "unmatched"
"""The template of a request that no route has: its path can be anything."""


@dataclass(slots=True)
class MatchedRoute:
    """Filled in once the route is known."""

    template: str = _UNMATCHED
    """The route's path with the names of its parameters: ``/{lang}/courses/{course}``."""


def expect_route(scope: Scope) -> MatchedRoute:
    """Let ``note_route`` fill in the route of this request."""
    matched: MatchedRoute = scope.setdefault(_SCOPE_KEY, MatchedRoute())
    return matched


def note_route(scope: Scope, route: BaseRoute | None) -> None:
    """Fill in the route, if anyone expects it."""
    matched: MatchedRoute | None = scope.get(_SCOPE_KEY)
    if matched is None:
        return
    if template := getattr(route, "path_format", ""):
        matched.template = template
    elif "app_root_path" in scope:  # FastAPI's router, unlike Starlette's, does not name a mount
        matched.template = scope["root_path"].removeprefix(scope["app_root_path"]) + "/{path}"


class RouteNoter:
    """The innermost middleware: notes the route that the router has found."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await self._app(scope, receive, send)
        finally:
            note_route(scope, scope.get("route"))
