"""Route dependencies for the catalog of lessons, as the viewer may see it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Annotated

from fastapi import Depends
from starlette.requests import Request

from app.lessons.catalog import Catalog, CatalogView
from app.lessons.errors import LessonMoved
from app.web.dependencies import AppKey

CATALOG = AppKey[Catalog]("catalog")
DRAFT_POLICY = AppKey[Callable[[Request], Awaitable[bool]]]("draft_policy")
"""Decides whether a request may see drafts."""


async def get_catalog(request: Request) -> CatalogView:
    """The catalog as the viewer may see it: with drafts and errors for instructors.

    Raises:
        LessonMoved: the address has a former slug of a lesson.
    """
    view = await _view(request)
    course, slug = request.path_params.get("course"), request.path_params.get("slug")
    if course and slug and (now := view.current_slug(course, slug)) != slug:
        raise LessonMoved(course, slug, now)
    return view


async def _view(request: Request) -> CatalogView:
    catalog = CATALOG.get(request.app)
    if catalog.differs_for_instructors and await DRAFT_POLICY.get(request.app)(request):
        request.state.catalog = catalog.with_drafts
        return catalog.with_drafts
    return catalog


def request_catalog(request: Request) -> CatalogView:
    """The result of ``get_catalog`` for this request; the catalog for everyone if that was not called."""
    catalog: CatalogView = getattr(request.state, "catalog", CATALOG.get(request.app))
    return catalog


CatalogDep = Annotated[CatalogView, Depends(get_catalog)]
"""The catalog for routes that show lessons."""
WholeCatalogDep = Annotated[Catalog, Depends(CATALOG.from_request)]
"""The catalog with its files and their errors: for checks, not for pages."""
