"""What a feature adds to the application, in one record.

Each feature's package has a ``feature.py`` with a record named ``FEATURE``, and ``app.main`` lists the records. Two
things need no entry here because they are found by their location: tables in ``models.py`` and templates in
``templates/``.

``setup`` and ``lifespan`` share objects with routes through an ``AppKey``. The application calls ``setup`` of every
feature, then the functions here that take it, then enters each ``lifespan`` in the order of the list. On shutdown, it
closes the bus and then leaves each ``lifespan`` in reverse order.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Any

from fastapi import APIRouter, FastAPI
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute

from app.accounts.cleanup import CleanupTask
from app.accounts.merge import Merger
from app.accounts.page_pieces import PagePiece
from app.accounts.personal_data import AfterErasure, Eraser, Exporter
from app.accounts.visitor_retention import RetentionRule
from app.errors import LockstepError
from app.lessons.renaming import Renamer
from app.notifications.views import Describers
from app.runs.judgements import RunHook
from app.runs.lesson_lookup import LessonSource
from app.web.access import access_of
from app.web.rendering import NavItem

ExceptionHandler = Callable[[Request, Exception], Awaitable[Response]]


@dataclass(frozen=True, kw_only=True)
class Feature:
    """What one feature adds.

    Raises:
        ValueError: a route does not say who may use it.
    """

    name: str

    # --- routes ---
    routers: Sequence[APIRouter] = ()
    """Their routes are tried in this order. Each has one ``Access`` among its tags."""
    csrf_exempt_paths: Sequence[str] = ()
    """Patterns of paths that other sites may post to."""
    health_check_paths: Sequence[str] = ()
    """Paths that probes may request by the address of this server instead of its name."""
    open_in_maintenance: Sequence[str] = ()
    """Patterns of paths that everyone may post to during maintenance."""
    exception_handlers: Mapping[type[Exception], ExceptionHandler] = field(default_factory=dict)

    # --- pages ---
    navigation: Callable[[Request], Sequence[NavItem]] = lambda _request: ()
    """Links in the top bar."""
    draft_policy: Callable[[Request], Awaitable[bool]] | None = None
    """Tells whether a request may see drafts of lessons. Exactly one feature has it."""
    page_pieces: Callable[[FastAPI], Sequence[PagePiece]] = lambda _app: ()
    """What every page shows of its viewer. A piece can contain those of earlier features."""
    error_context: Callable[[Request, LockstepError], Mapping[str, Any]] = lambda _request, _error: {}
    """Values for the template of error pages."""

    # --- shared objects and jobs ---
    setup: Callable[[FastAPI], None] = lambda _app: None
    """Creates objects that need no event loop."""
    lifespan: Callable[[FastAPI], AbstractAsyncContextManager[None]] | None = None
    """Creates other objects, and runs background tasks while the application serves requests."""
    cleanup_tasks: Callable[[FastAPI], Sequence[CleanupTask]] = lambda _app: ()
    """Delete expired data every hour."""

    # --- runs ---
    run_hooks: Callable[[FastAPI], Sequence[RunHook]] = lambda _app: ()
    """Called when events of runs are stored."""

    renamers: Sequence[Renamer] = ()
    """Move learners' work when a lesson, a cell or a question has a new name."""
    lesson_sources: Mapping[str, LessonSource] = field(default_factory=dict)
    """Lessons that are not in the catalog, by the first part of their keys: a word that no course can be called."""

    # --- personal data ---
    exporters: Mapping[str, Exporter] = field(default_factory=dict)
    """An account's data, by its name in the document that the owner downloads."""
    erasers: Sequence[Eraser] = ()
    """Called when an account is deleted."""
    after_erasure: Callable[[FastAPI], Sequence[AfterErasure]] = lambda _app: ()
    """Called once that is committed."""
    mergers: Callable[[FastAPI], Sequence[Merger]] = lambda _app: ()
    """Called when a visitor signs in to an account."""
    retention_rules: Sequence[RetentionRule] = ()
    """Data of visitors, to be deleted when they stop coming."""

    # --- notifications ---
    describers: Callable[[FastAPI], Describers] = lambda _app: {}
    """Describe notifications, by kind."""

    def __post_init__(self) -> None:
        for route in self.routes:
            access_of(route)

    @property
    def routes(self) -> list[BaseRoute]:
        return [route for router in self.routers for route in router.routes]
