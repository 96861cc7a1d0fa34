"""The root URL of the site."""

from __future__ import annotations

from app.feature import Feature
from app.web.root import router

FEATURE = Feature(
    name="web",
    routers=(router,),
)
