"""One request for all that a page shows of its viewer."""

from __future__ import annotations

from app.feature import Feature
from app.pieces.routes import router

FEATURE = Feature(name="pieces", routers=(router,))
