"""Access of routes: each route, or its router, has one ``Access`` among its tags. Nothing is open by default."""

from __future__ import annotations

from enum import StrEnum

from starlette.requests import Request
from starlette.routing import BaseRoute


class Access(StrEnum):
    """Who may use a route."""

    public = "public"
    """The same for everyone."""
    learner = "learner"
    """Shows or changes only what belongs to the learner, with or without an account; everything else is not found."""
    token = "token"  # noqa: S105 - a kind of access
    """For programs with an API token of an account: shows only what belongs to it, or what its pages of groups show."""
    account = "account"
    """Like ``learner``, but only for accounts that are signed in."""
    instructor = "instructor"
    admin = "admin"


def access_of(route: BaseRoute) -> Access:
    """The access of a route. Raises ValueError if the route has no access, or more than one."""
    found = [tag for tag in getattr(route, "tags", ()) if isinstance(tag, Access)]
    if len(found) != 1:
        raise ValueError(f"the route {getattr(route, 'name', route)} needs exactly one Access among its tags")
    return found[0]


def is_public(request: Request) -> bool:
    """Whether the request's route is public. No route is not."""
    return Access.public in getattr(request.scope.get("route"), "tags", ())
