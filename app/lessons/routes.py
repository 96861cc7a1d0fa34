"""The pages of lessons: home, course map, lesson, its source and its files.

Only drafts and the errors in lesson files depend on the viewer. While there are any, pages are rendered separately for
instructors, who can see them. Others get cached pages.

Contexts of the templates. Each also has ``mistakes``: the errors in the files, if the viewer may see them.

``lessons/home.html``
    ``outlines``: an Outline for each course; ``about``: the outlines to introduce, None for Lockstep's own course;
    ``start``: the first lesson, or None; ``sample`` and ``sample_cell``: a lesson and a cell of it to try out, if there
    is one on several devices, or None; ``machines``: labels of machines, by topology.
``lessons/course.html``
    ``outline``.
``lessons/lesson.html``
    ``lesson``, ``outline``, ``previous`` and ``next`` (Lesson or None), ``machines``: labels by topology.
    If ``lesson.language`` is not ``lang``, there is no translation and the page says so.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from app.lessons.assets import LessonAsset, read_asset, read_cover
from app.lessons.catalog import CatalogView
from app.lessons.dependencies import CatalogDep
from app.lessons.errors import LessonMoved
from app.lessons.machine_labels import lesson_machine_labels
from app.lessons.model import Cell, CellTag, Lesson, LessonStatus
from app.lessons.navigation import format_mistakes
from app.lessons.source_links import source_links
from app.lessons.url_paths import LESSON_PATH
from app.settings import Settings
from app.web.access import Access
from app.web.dependencies import SettingsDep
from app.web.languages import LANGUAGE_PREFIX
from app.web.rendering import render_cached_page, render_private_page

_ASSET_POLICY = "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:; frame-ancestors 'self'"
"""A picture may be an SVG with a script: opened by itself, it gets no rights."""


_OWN_COURSE = "distributed-tensorflow"
"""The course that the words on the home page are about. A site without it shows those of its own courses."""
router = APIRouter(prefix=LANGUAGE_PREFIX, tags=[Access.public])


@router.get("/", name="home")
async def home(request: Request, lang: str, catalog: CatalogDep) -> Response:
    return _lesson_page_response(request, catalog, "lessons/home.html", lambda: _home_context(catalog, lang))


@router.get("/courses/{course:slug}", name="course")
async def course_map(request: Request, lang: str, course: str, catalog: CatalogDep) -> Response:
    outline = catalog.outline(course, lang)
    return _lesson_page_response(
        request,
        catalog,
        "lessons/course.html",
        lambda: {"outline": outline, "mistakes": format_mistakes(catalog, course)},
    )


@router.get("/courses/{course:slug}/cover.png", name="course_cover")
async def course_cover(request: Request, lang: str, course: str, catalog: CatalogDep) -> Response:
    cover = await asyncio.to_thread(read_cover, catalog.course(course, lang))
    return _file_response(request, cover)


@router.get(LESSON_PATH, name="lesson")
async def lesson_page(
    request: Request, lang: str, course: str, slug: str, catalog: CatalogDep, settings: SettingsDep
) -> Response:
    lesson = catalog.lesson(course, slug, lang)
    return _lesson_page_response(
        request, catalog, "lessons/lesson.html", lambda: _lesson_context(catalog, lesson, lang, settings)
    )


@router.get(f"{LESSON_PATH}.md", name="lesson_source")
async def lesson_source(request: Request, lang: str, course: str, slug: str, catalog: CatalogDep) -> Response:
    lesson = catalog.lesson(course, slug, lang)
    source = LessonAsset(lesson.source.encode(), "text/markdown; charset=utf-8", f'"{lesson.source_digest}"')
    return _file_response(request, source, draft=lesson.status is LessonStatus.draft)


@router.get(f"{LESSON_PATH}/cover.png", name="lesson_cover")
async def lesson_cover(request: Request, lang: str, course: str, slug: str, catalog: CatalogDep) -> Response:
    lesson = catalog.lesson(course, slug, lang)
    cover = await asyncio.to_thread(read_cover, lesson)
    return _file_response(request, cover, draft=lesson.status is LessonStatus.draft)


@router.get(f"{LESSON_PATH}/assets/{{name:path}}", name="lesson_asset")
async def lesson_asset(request: Request, lang: str, course: str, slug: str, name: str, catalog: CatalogDep) -> Response:
    lesson = catalog.lesson(course, slug, lang)
    asset = await asyncio.to_thread(read_asset, lesson, name)
    return _file_response(request, asset, draft=lesson.status is LessonStatus.draft)


async def redirect_to_moved_lesson(request: Request, error: Exception) -> Response:
    """Redirect from a former address of a lesson, or of anything below it, to the present one."""
    assert isinstance(error, LessonMoved)
    before, after = (f"/courses/{error.course}/{slug}" for slug in (error.former, error.slug))
    url = request.url.replace(scheme="", netloc="", path=request.url.path.replace(before, after, 1))
    # Browsers keep a permanent redirect, but ask again: the author may use the slug for another lesson.
    return RedirectResponse(str(url), status_code=308, headers={"cache-control": "no-cache"})


def _lesson_page_response(
    request: Request, catalog: CatalogView, template: str, context: Callable[[], Mapping[str, Any]]
) -> Response:
    """A cached page, the same for everyone; pages with drafts are never cached."""
    if catalog.shows_drafts:
        return render_private_page(request, template, **context())
    return render_cached_page(request, template, context)


def _home_context(catalog: CatalogView, language: str) -> Mapping[str, Any]:
    outlines = [catalog.outline(course.slug, language) for course in catalog.courses(language)]
    lessons = [entry.lesson for outline in outlines for entry in outline.lessons if entry.lesson]
    samples = [(lesson, cell) for lesson in lessons if (cell := _first_runnable_cell(lesson))]
    distributed = (found for found in samples if found[1].topology != "cpu")
    sample, cell = next(distributed, samples[0] if samples else (None, None))
    machines = lesson_machine_labels(sample) if sample else {}
    return {
        "outlines": outlines,
        "about": None if any(outline.course.slug == _OWN_COURSE for outline in outlines) else outlines,
        "start": lessons[0] if lessons else None,
        "sample": sample,
        "sample_cell": cell,
        "machines": machines,
        "mistakes": format_mistakes(catalog),
    }


def _first_runnable_cell(lesson: Lesson) -> Cell | None:
    idle = {CellTag.remove_cell, CellTag.skip_execution, CellTag.raises_exception, CellTag.exercise}
    return next((cell for cell in lesson.cells if not cell.tags & idle), None)


def _lesson_context(catalog: CatalogView, lesson: Lesson, language: str, settings: Settings) -> Mapping[str, Any]:
    before, after = catalog.neighbours(lesson, language)
    return {
        "lesson": lesson,
        "outline": catalog.outline(lesson.course, language),
        "previous": before,
        "next": after,
        "machines": lesson_machine_labels(lesson),
        "mistakes": format_mistakes(catalog, lesson.course, lesson.slug),
        "links": source_links(lesson, settings, catalog.origin(lesson.course)),
        "has_pdf": settings.pdf_browser is not None,
    }


def _file_response(request: Request, file: LessonAsset, *, draft: bool = False) -> Response:
    kept = "no-store" if draft else "no-cache"
    headers = {"cache-control": kept, "etag": file.etag, "content-security-policy": _ASSET_POLICY}
    if file.etag in request.headers.get("if-none-match", ""):
        return Response(status_code=304, headers=headers)
    return Response(file.body, media_type=file.media_type, headers=headers)
