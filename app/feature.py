"""What a feature adds to the application, in one record.

Each feature's package has a ``feature.py`` with its record, ``FEATURE``, and ``app.main`` lists the records. Two things
need no entry here because they are found by their place: tables in ``models.py``, and templates in ``templates/``.

``setup`` and ``lifespan`` share objects with routes through an ``AppKey``. The application calls ``setup`` of every
feature, then the functions here that take it, then enters each ``lifespan`` in the order of the list. When the server
shuts down, it closes the bus and then leaves each ``lifespan`` in the reverse order.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Any

from fastapi import APIRouter, FastAPI
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from app.accounts.cleanup import CleanupTask
from app.accounts.merge import Merger
from app.accounts.personal_data import Eraser, Exporter
from app.accounts.visitor_retention import RetentionRule
from app.errors import LockstepError
from app.notifications.views import Describers
from app.web.access import Access
from app.web.rendering import NavItem

ExceptionHandler = Callable[[Request, Exception], Awaitable[Response]]


@dataclass(frozen=True, kw_only=True)
class Feature:
    """What one feature adds.

    Raises:
        ValueError: ``access`` leaves out a route of the feature, or names one that it does not have.
    """

    name: str

    # --- routes ---
    routers: Sequence[APIRouter] = ()
    """The application tries their routes in this order."""
    access: Mapping[str, Access] = field(default_factory=dict)
    """Who each route is for, by the name of the route."""
    csrf_exempt_paths: Sequence[str] = ()
    """Patterns of paths that other sites may post to."""
    exception_handlers: Mapping[type[Exception], ExceptionHandler] = field(default_factory=dict)

    # --- pages ---
    navigation: Callable[[Request], Sequence[NavItem]] = lambda _request: ()
    """Links of the top bar."""
    draft_policy: Callable[[Request], Awaitable[bool]] | None = None
    """Tells whether a request may see drafts of lessons. Exactly one feature has it."""
    error_context: Callable[[Request, LockstepError], Mapping[str, Any]] = lambda _request, _error: {}
    """Values for the template of error pages."""

    # --- shared objects and jobs ---
    setup: Callable[[FastAPI], None] = lambda _app: None
    """Creates objects that need no event loop."""
    lifespan: Callable[[FastAPI], AbstractAsyncContextManager[None]] | None = None
    """Creates the other objects and runs jobs while the application serves."""
    cleanup_tasks: Callable[[FastAPI], Sequence[CleanupTask]] = lambda _app: ()
    """Delete what has been kept long enough, every hour."""

    # --- personal data ---
    exporters: Mapping[str, Exporter] = field(default_factory=dict)
    """Data of an account, by its name in the document that the account's owner downloads."""
    erasers: Sequence[Eraser] = ()
    """Called when an account is deleted."""
    mergers: Callable[[FastAPI], Sequence[Merger]] = lambda _app: ()
    """Called when a visitor signs in to an account."""
    retention_rules: Sequence[RetentionRule] = ()
    """What is kept of a visitor, and deleted once they no longer come."""

    # --- notifications ---
    describers: Callable[[FastAPI], Describers] = lambda _app: {}
    """Say what notifications are about, by kind."""

    def __post_init__(self) -> None:
        names = {route.name for route in self.routes if isinstance(route, Route)}
        if names != set(self.access):
            wrong = sorted(names ^ set(self.access))
            raise ValueError(f"feature {self.name}: these routes and 'access' differ: {', '.join(wrong)}")

    @property
    def routes(self) -> list[BaseRoute]:
        """The routes of all its routers."""
        return [route for router in self.routers for route in router.routes]


def route_access_of(features: Iterable[Feature]) -> dict[str, Access]:
    """Who each route of some features is for."""
    return {name: access for feature in features for name, access in feature.access.items()}
