"""Is it alive, and is it ready? The second says what is missing."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import JSONResponse

from app.health.checks import check_database, check_lessons, check_runner

router = APIRouter()


@router.get("/healthz", name="healthz")
async def healthz() -> JSONResponse:
    return JSONResponse({"status": "ok"}, headers={"cache-control": "no-store"})


@router.get("/readyz", name="readyz")
async def readyz(request: Request) -> JSONResponse:
    state = request.app.state
    checks = [await check_database(state.db), await check_runner(state.desk.runner), check_lessons(state.catalog)]
    ready = all(check.ok for check in checks)
    body: dict[str, Any] = {
        "status": "ready" if ready else "not ready",
        "missing": [check.name for check in checks if not check.ok],
        "checks": {check.name: {"ok": check.ok, "detail": check.detail} for check in checks},
    }
    return JSONResponse(body, 200 if ready else 503, headers={"cache-control": "no-store"})
