"""Progress over HTTP, for page scripts: JSON that browsers do not cache."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query
from pydantic import TypeAdapter
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from app.accounts.dependencies import OptionalLearnerId
from app.lessons.dependencies import CatalogDep
from app.progress.page_piece import dump_states
from app.progress.reading_progress import ReadingReport
from app.progress.service import ProgressServiceDep
from app.progress.summary import ProgressNews
from app.web.access import Access
from app.web.dependencies import DatabaseDep
from app.web.languages import LANGUAGE_PREFIX
from app.web.security_headers import NO_STORE

router = APIRouter(tags=[Access.learner])
localized_router = APIRouter(prefix=LANGUAGE_PREFIX, tags=[Access.learner])

_NEWS_ADAPTER = TypeAdapter(ProgressNews)


@router.post("/progress/reading", name="progress_reading")
async def record_reading(
    request: Request,
    report: ReadingReport,
    learner: OptionalLearnerId,
    progress: ProgressServiceDep,
    db: DatabaseDep,
) -> Response:
    if learner is None:
        return Response(status_code=204, headers=NO_STORE)
    async with db.writing() as session:
        kept = await progress.record_reading(session, learner, report)
    return JSONResponse({"kept": kept}, headers=NO_STORE)


@router.get("/progress/news", name="progress_news")
async def show_news(
    request: Request,
    learner: OptionalLearnerId,
    progress: ProgressServiceDep,
    db: DatabaseDep,
    since: Annotated[str, Query(pattern="^[0-9]{0,16}$")] = "",
) -> Response:
    async with db.session() as session:
        return _no_store_json(
            _NEWS_ADAPTER.dump_python(await progress.summary.news(session, learner, since), mode="json")
        )


@localized_router.get("/progress/outline", name="progress_outline")
async def show_outline(
    request: Request,
    lang: str,
    learner: OptionalLearnerId,
    catalog: CatalogDep,
    progress: ProgressServiceDep,
    course: Annotated[str, Query(max_length=80)],
    db: DatabaseDep,
) -> Response:
    catalog.course(course, lang)
    if course not in progress.terms().courses:  # it has only drafts
        return _no_store_json({"lessons": []})
    async with db.session() as session:
        states = await progress.summary.outline(session, learner, course)
    return _no_store_json({"lessons": dump_states(states)})


def _no_store_json(content: Any) -> Response:
    return JSONResponse(content, headers=NO_STORE)
