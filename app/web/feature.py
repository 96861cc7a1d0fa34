"""The root URL of the site, and the description of the API."""

from __future__ import annotations

from app.feature import Feature
from app.web.openapi import router as openapi_router
from app.web.root import router as root_router

FEATURE = Feature(
    name="web",
    routers=(root_router, openapi_router),
)
