"""``Download notebook``: the lesson as an ``.ipynb`` file, as it is written or as the learner ran it."""

from __future__ import annotations

import asyncio
from typing import Annotated, Literal

from fastapi import APIRouter, Query
from starlette.requests import Request
from starlette.responses import Response

from app.accounts.current import KnownLearner
from app.exports.notebook import as_text, notebook
from app.exports.service import runs_by_cell
from app.lessons.addresses import LESSON
from app.lessons.catalog import TheCatalog
from app.runs.desk import TheDesk
from app.web.languages import PREFIX

router = APIRouter(prefix=PREFIX)

_TYPE = "application/x-ipynb+json"


@router.get(f"{LESSON}.ipynb", name="notebook")
async def download_notebook(
    request: Request,
    lang: str,
    course: str,
    slug: str,
    learner: KnownLearner,
    catalog: TheCatalog,
    desk: TheDesk,
    what: Annotated[Literal["original", "mine"], Query(alias="with")] = "original",
) -> Response:
    lesson = catalog.lesson(course, slug, lang)
    runs = {}
    if what == "mine" and learner is not None:
        async with desk.db.session() as session:
            runs = await runs_by_cell(session, learner, lesson.key)
    origin = request.app.state.settings.public_url or str(request.base_url).rstrip("/")
    page = origin + request.app.url_path_for("lesson", lang=lang, course=course, slug=slug)
    body = await asyncio.to_thread(lambda: as_text(notebook(lesson, page, runs)))
    headers = {
        "content-disposition": f'attachment; filename="{lesson.slug}.ipynb"',
        "cache-control": "private, no-store" if what == "mine" else "no-cache",
    }
    return Response(body, media_type=_TYPE, headers=headers)
