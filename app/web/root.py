"""The root URL: redirects to the home page in the best language."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import RedirectResponse

from app import i18n
from app.web.access import Access

router = APIRouter(tags=[Access.public])


@router.get("/", name="root")
async def root() -> RedirectResponse:
    headers = {"vary": "accept-language, cookie", "cache-control": "no-store"}
    return RedirectResponse(f"/{i18n.current_language()}/", 302, headers)
