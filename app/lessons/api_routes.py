"""Courses and lessons in the API: what everyone may read, so without a token. Drafts are not found."""

from __future__ import annotations

import hashlib
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from app.lessons.catalog import Outline
from app.lessons.dependencies import WholeCatalogDep
from app.lessons.model import Cell, Course, Lesson
from app.web.access import Access
from app.web.api import ApiLanguage, ApiModel, api_router, problem_responses

router = api_router(Access.public, "Courses")

_CACHE = {"cache-control": "no-cache"}


class CourseSummaryOut(ApiModel):
    slug: str
    title: str
    summary: str


class CoursesOut(ApiModel):
    items: list[CourseSummaryOut]


class LessonSummaryOut(ApiModel):
    """A lesson in the outline of its course."""

    slug: str
    title: str
    summary: str
    minutes: int
    language: str
    """The one that was asked for, or `en` if the lesson is not translated."""


class ModuleOut(ApiModel):
    slug: str
    title: str
    lessons: list[LessonSummaryOut]


class CourseOut(CourseSummaryOut):
    """A course with its modules and lessons, in order."""

    modules: list[ModuleOut]


class CellOut(ApiModel):
    """A code cell of a lesson."""

    name: str
    title: str
    code: str
    """For an exercise, the code to start from."""
    topology: str
    """The machine: `gpu:4`, for example."""
    keras: int
    exercise: bool


class LessonOut(LessonSummaryOut):
    """A lesson with its cells. The page, and its source, are below `url`."""

    url: str
    cells: list[CellOut]


@router.get("/courses", name="api_courses", responses=problem_responses(422))
async def list_courses(catalog: WholeCatalogDep, response: Response, language: ApiLanguage = "en") -> CoursesOut:
    """All courses. This needs no token."""
    response.headers.update(_CACHE)
    return CoursesOut(items=[CourseSummaryOut(**_course(course)) for course in catalog.courses(language)])


@router.get("/courses/{course}", name="api_course", responses=problem_responses(404, 422))
async def show_course(
    catalog: WholeCatalogDep, response: Response, course: str, language: ApiLanguage = "en"
) -> CourseOut:
    """A course with its modules and lessons. This needs no token."""
    response.headers.update(_CACHE)
    outline = catalog.outline(course, language)
    return CourseOut(**_course(outline.course), modules=_modules(outline))


@router.get(
    "/courses/{course}/lessons/{slug}",
    name="api_lesson",
    response_model=LessonOut,
    responses={
        304: {"description": "Not changed since the `ETag` in `If-None-Match`."},
        **problem_responses(404, 422, 503),
    },
)
async def show_lesson(
    request: Request,
    catalog: WholeCatalogDep,
    response: Response,
    course: str,
    slug: str,
    language: ApiLanguage = "en",
) -> LessonOut | Response:
    """A lesson with its cells. Former slugs find it, too. This needs no token."""
    lesson = catalog.lesson(course, slug, language)
    url = request.app.url_path_for("lesson", lang=language, course=lesson.course, slug=lesson.slug)
    shown = LessonOut(**_lesson(lesson), url=str(url), cells=[_cell(cell) for cell in lesson.cells])
    # Not the digest of its source: cells of a translation have the code of the original.
    headers = {**_CACHE, "etag": f'"{hashlib.sha256(shown.model_dump_json().encode()).hexdigest()}"'}
    if headers["etag"] in request.headers.get("if-none-match", ""):
        return Response(status_code=304, headers=headers)
    response.headers.update(headers)
    return shown


def _course(course: Course) -> dict[str, str]:
    return {"slug": course.slug, "title": course.title, "summary": course.summary}


def _modules(outline: Outline) -> list[ModuleOut]:
    return [
        ModuleOut(
            slug=module.slug,
            title=module.title,
            lessons=[LessonSummaryOut(**_lesson(entry.lesson)) for entry in module.lessons if entry.lesson],
        )
        for module in outline.modules
    ]


def _lesson(lesson: Lesson) -> dict[str, Any]:
    return {name: getattr(lesson, name) for name in ("slug", "title", "summary", "minutes", "language")}


def _cell(cell: Cell) -> CellOut:
    facts = {name: getattr(cell, name) for name in ("name", "title", "code", "topology", "keras")}
    return CellOut(**facts, exercise=cell.exercise is not None)
