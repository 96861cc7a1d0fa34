"""Who may use a route. Every feature says it for each of its routes; nothing is open by default."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from starlette.requests import Request

from app.web.dependencies import AppKey


class Access(StrEnum):
    """Who a route is for."""

    public = "public"
    """The same for everyone."""
    learner = "learner"
    """Shows or changes only what belongs to the learner who asks, with or without an account; others' is not found."""
    account = "account"
    """The same, for who is signed in."""
    instructor = "instructor"
    admin = "admin"


ROUTE_ACCESS = AppKey[Mapping[str, Access]]("route_access")
"""Who each route is for, by the name of the route: what the features say, put together."""


def route_access(request: Request) -> Access | None:
    """Who the route of a request is for; None where no route was found."""
    return ROUTE_ACCESS.get(request.app).get(getattr(request.scope.get("route"), "name", ""))
