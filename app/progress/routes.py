"""Progress over HTTP, for the page's script: JSON, never kept by the browser."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query
from pydantic import TypeAdapter
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from app.accounts.current import KnownLearner
from app.db import Database
from app.lessons.catalog import TheCatalog
from app.progress.marks import Marks
from app.progress.service import TheProgress, topic
from app.progress.summary import LessonState, News
from app.web.languages import PREFIX

router = APIRouter()
localized = APIRouter(prefix=PREFIX)

_NOT_KEPT = {"cache-control": "no-store"}
_NEWS = TypeAdapter(News)
_STATES = TypeAdapter(list[LessonState])


@router.post("/progress/marks", name="progress_marks")
async def take_marks(request: Request, marks: Marks, learner: KnownLearner, progress: TheProgress) -> Response:
    if learner is None:
        return Response(status_code=204, headers=_NOT_KEPT)
    db: Database = request.app.state.db
    async with db.writing() as session:
        kept, awarded = await progress.take_marks(session, learner, marks)
    if awarded.entries:
        request.app.state.bus.wake(topic(awarded.learner_id))
    return JSONResponse({"kept": kept}, headers=_NOT_KEPT)


@router.get("/progress/news", name="progress_news")
async def news(
    request: Request,
    learner: KnownLearner,
    progress: TheProgress,
    since: Annotated[str, Query(pattern=r"^[0-9]{0,16}$")] = "",
) -> Response:
    async with request.app.state.db.session() as session:
        return _json(_NEWS.dump_python(await progress.summary.news(session, learner, since), mode="json"))


@localized.get("/progress/outline", name="progress_outline")
async def outline(
    request: Request,
    lang: str,
    learner: KnownLearner,
    catalog: TheCatalog,
    progress: TheProgress,
    course: Annotated[str, Query(max_length=80)],
) -> Response:
    catalog.course(course, lang)
    if course not in progress.terms().courses:  # it holds nothing but drafts
        return _json({"lessons": []})
    async with request.app.state.db.session() as session:
        states = await progress.summary.outline(session, learner, course)
    return _json({"lessons": _STATES.dump_python(states, mode="json")})


def _json(content: Any) -> Response:
    return JSONResponse(content, headers=_NOT_KEPT)
