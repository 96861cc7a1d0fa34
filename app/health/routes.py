"""Liveness and readiness. The response names the parts that are not ready; the log has the reasons."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

from fastapi import APIRouter, Depends
from starlette.responses import JSONResponse

from app.health.checks import ReadinessLog, check_database, check_lessons, check_runner, run_with_timeout
from app.lessons.dependencies import WholeCatalogDep
from app.web.access import Access
from app.web.dependencies import AppKey, DatabaseDep, RunnerDep
from app.web.security_headers import NO_STORE

router = APIRouter(tags=[Access.public])

READINESS_LOG = AppKey[ReadinessLog]("readiness_log")
ReadinessLogDep = Annotated[ReadinessLog, Depends(READINESS_LOG.from_request)]


@router.get("/healthz", name="healthz")
async def healthz() -> JSONResponse:
    return JSONResponse({"status": "ok"}, headers=NO_STORE)


@router.get("/readyz", name="readyz")
async def readyz(
    db: DatabaseDep, runner: RunnerDep, catalog: WholeCatalogDep, readiness_log: ReadinessLogDep
) -> JSONResponse:
    asked = await asyncio.gather(
        run_with_timeout("database", check_database(db)),
        run_with_timeout("runner", check_runner(runner)),
    )
    missing = [check for check in (*asked, check_lessons(catalog)) if not check.ok]
    refusing = [check for check in asked if check.refuses]
    readiness_log.note([*missing, *refusing])
    body: dict[str, Any] = {"status": "not ready" if missing else "ready", "missing": [check.name for check in missing]}
    if reasons := {check.name: check.reason for check in missing if check.reason}:
        body["reasons"] = reasons
    if refusing:
        body["refuses"] = ["runs"]
    return JSONResponse(body, 503 if missing else 200, headers=NO_STORE)
