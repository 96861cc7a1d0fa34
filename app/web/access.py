"""Access rules of routes. Every feature declares the access of each of its routes; nothing is open by default."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from starlette.requests import Request

from app.web.dependencies import AppKey


class Access(StrEnum):
    """Who may use a route."""

    public = "public"
    """The same for everyone."""
    learner = "learner"
    """Shows or changes only what belongs to the learner, with or without an account; everything else is not found."""
    account = "account"
    """Like ``learner``, but only for accounts that are signed in."""
    instructor = "instructor"
    admin = "admin"


ROUTE_ACCESS = AppKey[Mapping[str, Access]]("route_access")
"""The access of each route, by route name, collected from all features."""


def route_access(request: Request) -> Access | None:
    """The access of the request's route; None if there is no such route."""
    return ROUTE_ACCESS.get(request.app).get(getattr(request.scope.get("route"), "name", ""))
