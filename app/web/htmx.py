"""The headers of htmx, by name."""

from __future__ import annotations

from starlette.requests import Request


def by_htmx(request: Request) -> bool:
    """True if htmx asks, so that a fragment is wanted rather than a page."""
    return request.headers.get("hx-request") == "true"
