"""Downloads of a lesson, with the original code or with the learner's code and outputs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from types import MappingProxyType
from typing import Annotated, Literal, ParamSpec, TypeVar

import structlog
from fastapi import APIRouter, Depends, Query
from starlette.convertors import Convertor, register_url_convertor
from starlette.requests import Request
from starlette.responses import Response

from app.accounts.dependencies import OptionalLearnerId
from app.db import Database
from app.errors import NotFound, ServiceUnavailable
from app.exports.cache import ExportCache
from app.exports.chromium import BrowserUnavailable
from app.exports.edits import parse_edits, with_edits
from app.exports.files import (
    MEDIA_TYPES,
    CourseArchive,
    ExportFormat,
    ScratchByCell,
    file_name,
    lesson_file,
)
from app.exports.latest_runs import CellRun, latest_runs_by_cell
from app.i18n import N_
from app.lessons.dependencies import CatalogDep
from app.lessons.model import Lesson
from app.lessons.url_paths import LESSON_PATH
from app.runs.lesson_lookup import LessonLookupDep
from app.runs.scratch_cells import in_page_order, list_scratch_cells
from app.settings import Settings
from app.web.access import Access
from app.web.dependencies import AppKey, DatabaseDep, SettingsDep, site_origin
from app.web.forms import read_form
from app.web.languages import LANGUAGE_PREFIX

P = ParamSpec("P")
T = TypeVar("T")
_log = structlog.get_logger(__name__)

router = APIRouter(prefix=LANGUAGE_PREFIX, tags=[Access.learner])

_PLAYGROUND = "~playground/mine"
EXPORT_LOCK = AppKey[asyncio.Lock]("export_lock")
"""Held while a learner's outputs are loaded and converted, so that waiting requests hold none in memory."""
PDF_LOCK = AppKey[asyncio.Lock]("pdf_lock")
"""The same for PDFs, which take a browser up to two minutes."""
ARCHIVE_LOCK = AppKey[asyncio.Lock]("archive_lock")
"""Held while an archive is made, which takes minutes for hundreds of lessons."""
EXPORT_CACHE = AppKey[ExportCache]("export_cache")
ExportCacheDep = Annotated[ExportCache, Depends(EXPORT_CACHE.from_request)]
ArchiveLockDep = Annotated[asyncio.Lock, Depends(ARCHIVE_LOCK.from_request)]


def _export_lock(request: Request, form: ExportFormat) -> asyncio.Lock:
    return (PDF_LOCK if form == "pdf" else EXPORT_LOCK).get(request.app)


ExportLockDep = Annotated[asyncio.Lock, Depends(_export_lock)]
_GONE = 499
"""For the log: the reader has closed the connection."""
_EXECUTOR = ThreadPoolExecutor(1, "export")
"""A large notebook takes seconds of CPU time; work in other threads must not wait for it."""
_PDF_EXECUTOR = ThreadPoolExecutor(1, "pdf")
"""Waits for the browser, which no other download has to."""


class PdfFailed(ServiceUnavailable):
    """The browser that prints PDFs failed; the log says how."""

    message = N_("The PDF could not be made. Download the HTML page and print it.")


class ExportFormatConvertor(Convertor[str]):
    """Matches the file extensions of downloads; ``.md`` is the lesson's source."""

    regex = "ipynb|html|slides|pdf|py|markdown"

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
    cache: ExportCacheDep,
    settings: SettingsDep,
    what: Annotated[Literal["original", "mine"], Query(alias="with")] = "original",
) -> Response:
    lesson = catalog.lesson(course, slug, lang)
    page = _page_url(request, lang, course, slug)
    if what == "mine" and learner is not None:
        body = await _export_work(db, exporting, learner, lesson, page, form, settings)
    else:
        body = await _in_thread(form, _original, cache, form, lesson, page, settings)
    return _file_response(body, file_name(lesson.slug, form), MEDIA_TYPES[form], private=what == "mine")


@router.post(f"{LESSON_PATH}.{{form:form}}", name="export_edits")
async def download_with_edits(
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
) -> Response:
    """The lesson with the learner's work, and with the edits that their page has sent. Nothing is stored."""
    lesson = catalog.lesson(course, slug, lang)
    edits = parse_edits((await read_form(request)).get("edits", ""), lesson)
    page = _page_url(request, lang, course, slug)
    body = await _export_work(db, exporting, learner or "", lesson, page, form, settings, edits)
    return _file_response(body, file_name(lesson.slug, form), MEDIA_TYPES[form], private=True)


@router.get("/courses/{course:slug}/lessons.{form:form}.zip", name="export_course")
async def download_course(
    request: Request,
    lang: str,
    course: str,
    form: ExportFormat,
    catalog: CatalogDep,
    archiving: ArchiveLockDep,
    cache: ExportCacheDep,
    settings: SettingsDep,
) -> Response:
    """The lessons of a course as their authors wrote them, each in the reader's language if it is translated.

    Other downloads are made between two lessons, and nothing more once the reader has gone.
    """
    if form == "pdf":  # the browser would need minutes
        raise NotFound
    lessons = [entry.lesson for entry in catalog.outline(course, lang).lessons if entry.lesson is not None]
    archive = CourseArchive(form)
    async with archiving:
        for one in lessons:
            if await request.is_disconnected():
                return Response(status_code=_GONE)
            page = _page_url(request, lang, course, one.slug)
            await _in_thread(form, _add_to_archive, archive, cache, form, one, page, settings)
    return _file_response(archive.finish(), f"{course}.zip", "application/zip", private=False)


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
    page = f"{site_origin(request)}/{lang}/playground"
    body = await _export_work(db, exporting, learner or "", lesson, page, form, settings)
    return _file_response(body, file_name("playground", form), MEDIA_TYPES[form], private=True)


def _page_url(request: Request, lang: str, course: str, slug: str) -> str:
    """The full address of a lesson's page."""
    return f"{site_origin(request)}{request.app.url_path_for('lesson', lang=lang, course=course, slug=slug)}"


async def _export_work(
    db: Database,
    exporting: asyncio.Lock,
    learner: str,
    lesson: Lesson,
    page: str,
    form: ExportFormat,
    settings: Settings,
    edits: Mapping[str, str] = MappingProxyType({}),
) -> bytes:
    """The lesson with what the learner has run and added. ``edits`` are newer than that."""
    async with exporting:  # waiting requests hold no outputs in memory
        async with db.session() as session:
            runs = with_edits(await latest_runs_by_cell(session, learner, lesson.key), edits)
            scratch = in_page_order(await list_scratch_cells(session, learner, lesson.key), lesson)
        return await _in_thread(form, _make, form, lesson, page, runs, scratch, settings, False)


def _original(cache: ExportCache, form: ExportFormat, lesson: Lesson, page: str, settings: Settings) -> bytes:
    """A lesson as its author wrote it, which is the same for everyone until its file changes."""
    key = (form, lesson.key, lesson.language, lesson.digest, page)
    return cache.get(key, lambda: _make(form, lesson, page, {}, {}, settings, True))


def _add_to_archive(
    archive: CourseArchive, cache: ExportCache, form: ExportFormat, lesson: Lesson, page: str, settings: Settings
) -> None:
    archive.add(lesson, _original(cache, form, lesson, page, settings))


def _make(
    form: ExportFormat,
    lesson: Lesson,
    page: str,
    runs: Mapping[str, CellRun],
    scratch: ScratchByCell,
    settings: Settings,
    trusted: bool,
) -> bytes:
    try:
        return lesson_file(form, lesson, page, runs, scratch, browser=settings.pdf_browser, trusted=trusted)
    except BrowserUnavailable as e:
        if settings.pdf_browser is None:
            raise NotFound from e
        _log.warning("pdf_failed", lesson=lesson.key, reason=str(e))
        raise PdfFailed from e


async def _in_thread(form: ExportFormat, work: Callable[P, T], *arguments: P.args, **named: P.kwargs) -> T:
    executor = _PDF_EXECUTOR if form == "pdf" else _EXECUTOR
    return await asyncio.get_running_loop().run_in_executor(executor, partial(work, *arguments, **named))


def _file_response(body: bytes, name: str, media_type: str, *, private: bool) -> Response:
    headers = {
        "content-disposition": f'attachment; filename="{name}"',
        "cache-control": "private, no-store" if private else "no-cache",
    }
    return Response(body, media_type=media_type, headers=headers)
