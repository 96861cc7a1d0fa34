"""Downloads of a lesson, with the original code or with the learner's code and outputs."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Query
from starlette.convertors import Convertor, register_url_convertor
from starlette.requests import Request
from starlette.responses import Response

from app.accounts.dependencies import OptionalLearnerId
from app.db import Database
from app.errors import RequestTooLarge
from app.exports.latest_runs import CellRun, latest_runs_by_cell
from app.i18n import N_
from app.lessons.dependencies import CatalogDep
from app.lessons.model import Lesson
from app.lessons.url_paths import LESSON_PATH
from app.runs.lesson_lookup import LessonLookupDep
from app.runs.models import ScratchCell
from app.runs.scratch_cells import in_page_order, list_scratch_cells
from app.web.access import Access
from app.web.dependencies import AppKey, DatabaseDep, SettingsDep
from app.web.languages import LANGUAGE_PREFIX

router = APIRouter(prefix=LANGUAGE_PREFIX, tags=[Access.learner])

_PLAYGROUND = "~playground/mine"
ScratchByCell = Mapping[str, Sequence[ScratchCell]]
"""The learner's own cells of a lesson, by the name of the cell that they follow."""
MAX_CONVERTED_BYTES = 16_000_000
"""Larger notebooks are not converted to other formats."""
ExportFormat = Literal["ipynb", "html", "py", "markdown"]
_MEDIA_TYPES: Mapping[ExportFormat, str] = {
    "ipynb": "application/x-ipynb+json",
    "html": "text/html; charset=utf-8",
    "py": "text/x-python; charset=utf-8",
    "markdown": "text/markdown; charset=utf-8",
}
EXPORT_LOCK = AppKey[asyncio.Lock]("export_lock")
"""Held while a learner's outputs are loaded and converted, so that waiting requests hold none in memory."""
ExportLockDep = Annotated[asyncio.Lock, Depends(EXPORT_LOCK.from_request)]
_EXECUTOR = ThreadPoolExecutor(1, "export")
"""A large notebook takes seconds of CPU time; work in other threads must not wait for it."""


class ExportTooLarge(RequestTooLarge):
    """The outputs are too large for any format but the notebook."""

    message = N_("Your outputs are too large for this format. Download the notebook instead.")


class ExportFormatConvertor(Convertor[str]):
    """Matches the file extensions of downloads; ``.md`` is the lesson's source."""

    regex = "ipynb|html|py|markdown"

    def convert(self, value: str) -> str:
        return value

    def to_string(self, value: str) -> str:
        return value


register_url_convertor("form", ExportFormatConvertor())


@router.get(f"{LESSON_PATH}.{{form:form}}", name="export")
async def download(
    request: Request,
    lang: str,
    course: str,
    slug: str,
    form: ExportFormat,
    learner: OptionalLearnerId,
    catalog: CatalogDep,
    db: DatabaseDep,
    exporting: ExportLockDep,
    settings: SettingsDep,
    what: Annotated[Literal["original", "mine"], Query(alias="with")] = "original",
) -> Response:
    lesson = catalog.lesson(course, slug, lang)
    origin = settings.public_url or str(request.base_url).rstrip("/")
    page = origin + request.app.url_path_for("lesson", lang=lang, course=course, slug=slug)
    if what == "mine" and learner is not None:
        body = await _export_work(db, exporting, learner, lesson, page, form)
    else:
        body = await _convert_in_thread(form, lesson, page, {}, {})
    return _file_response(body, lesson.slug, form, private=what == "mine")


@router.get("/playground.{form:form}", name="export_playground")
async def download_playground(
    request: Request,
    lang: str,
    form: ExportFormat,
    learner: OptionalLearnerId,
    lookup: LessonLookupDep,
    db: DatabaseDep,
    exporting: ExportLockDep,
    settings: SettingsDep,
) -> Response:
    lesson = await lookup.lesson(_PLAYGROUND)
    origin = settings.public_url or str(request.base_url).rstrip("/")
    page = f"{origin}/{lang}/playground"
    body = await _export_work(db, exporting, learner or "", lesson, page, form)
    return _file_response(body, "playground", form, private=True)


async def _export_work(
    db: Database, exporting: asyncio.Lock, learner: str, lesson: Lesson, page: str, form: ExportFormat
) -> bytes:
    """The lesson with what the learner has run and added."""
    async with exporting:  # waiting requests hold no outputs in memory
        async with db.session() as session:
            runs = await latest_runs_by_cell(session, learner, lesson.key)
            scratch = in_page_order(await list_scratch_cells(session, learner, lesson.key), lesson)
        return await _convert_in_thread(form, lesson, page, runs, scratch)


def _file_response(body: bytes, name: str, form: ExportFormat, *, private: bool) -> Response:
    ending = "md" if form == "markdown" else form
    headers = {
        "content-disposition": f'attachment; filename="{name}.{ending}"',
        "cache-control": "private, no-store" if private else "no-cache",
    }
    return Response(body, media_type=_MEDIA_TYPES[form], headers=headers)


async def _convert_in_thread(
    form: ExportFormat, lesson: Lesson, page: str, runs: Mapping[str, CellRun], scratch: ScratchByCell
) -> bytes:
    loop = asyncio.get_running_loop()
    return await loop.run_in_executor(_EXECUTOR, _export_body, form, lesson, page, runs, scratch)


def _export_body(
    form: ExportFormat, lesson: Lesson, page: str, runs: Mapping[str, CellRun], scratch: ScratchByCell
) -> bytes:
    from app.exports.notebook import build_notebook, dump_notebook  # nbformat takes 0.2 s, so not at the start

    made = build_notebook(lesson, page, runs, scratch)
    text = dump_notebook(made)
    if form == "ipynb":
        return text.encode()
    if len(text) > MAX_CONVERTED_BYTES:
        raise ExportTooLarge
    from app.exports.convert import CONVERTERS  # nbconvert takes a second and 25 MB, so not at the start

    return CONVERTERS[form](made).encode()
