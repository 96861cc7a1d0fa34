"""Is it alive, and is it ready? The second says to anyone what is missing; the log says why."""

from __future__ import annotations

import asyncio
from typing import Any

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import JSONResponse

from app.health.checks import check_database, check_lessons, check_runner, run_with_timeout

router = APIRouter()


@router.get("/healthz", name="healthz")
async def healthz() -> JSONResponse:
    return JSONResponse({"status": "ok"}, headers={"cache-control": "no-store"})


@router.get("/readyz", name="readyz")
async def readyz(request: Request) -> JSONResponse:
    state = request.app.state
    asked = await asyncio.gather(
        run_with_timeout("database", check_database(state.db)),
        run_with_timeout("runner", check_runner(state.desk.runner)),
    )
    missing = [check for check in (*asked, check_lessons(state.catalog)) if not check.ok]
    refusing = [check for check in asked if check.refuses]
    state.readiness_log.note([*missing, *refusing])
    body: dict[str, Any] = {"status": "not ready" if missing else "ready", "missing": [check.name for check in missing]}
    if reasons := {check.name: check.reason for check in missing if check.reason}:
        body["reasons"] = reasons
    if refusing:
        body["refuses"] = ["runs"]
    return JSONResponse(body, 503 if missing else 200, headers={"cache-control": "no-store"})
