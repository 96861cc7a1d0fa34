"""What search engines ask for: ``robots.txt``, and a sitemap of the lessons in all languages."""

from __future__ import annotations

from collections.abc import Iterator

from fastapi import APIRouter
from markupsafe import escape
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from app import i18n
from app.errors import NotFound
from app.lessons.catalog import CatalogView
from app.lessons.dependencies import CatalogDep
from app.lessons.model import LessonStatus
from app.web.access import Access
from app.web.dependencies import SETTINGS

router = APIRouter(tags=[Access.public])
_CACHED = {"cache-control": "no-cache"}


@router.get("/robots.txt", name="robots")
async def robots(request: Request) -> Response:
    """Everything that is public may be read. Private pages answer nobody without a sign-in."""
    lines = ["User-agent: *", "Allow: /"]
    if public_url := SETTINGS.get(request.app).public_url:
        lines.append(f"Sitemap: {public_url}{request.app.url_path_for('sitemap')}")
    return PlainTextResponse("\n".join(lines) + "\n", headers=_CACHED)


@router.get("/sitemap.xml", name="sitemap")
async def sitemap(request: Request, catalog: CatalogDep) -> Response:
    """Home, playground, courses and published lessons. Without a public URL there is none: no page has an address."""
    public_url = SETTINGS.get(request.app).public_url
    if not public_url:
        raise NotFound
    xml = "".join(_url_elements(public_url, list(_paths(request, catalog))))
    head = '<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9" xmlns:xhtml="http://www.w3.org/1999/xhtml">'
    body = f'<?xml version="1.0" encoding="UTF-8"?>\n{head}\n{xml}</urlset>\n'
    return Response(body, media_type="application/xml", headers=_CACHED)


def _paths(request: Request, catalog: CatalogView) -> Iterator[str]:
    """The paths of pages, without their language."""
    path_of = request.app.url_path_for
    language = i18n.DEFAULT_LANGUAGE
    found = [path_of("home", lang=language), path_of("playground", lang=language)]
    for course in catalog.courses(language):
        found.append(path_of("course", lang=language, course=course.slug))
        lessons = catalog.outline(course.slug, language).lessons
        found += [
            path_of("lesson", lang=language, course=course.slug, slug=entry.slug)
            for entry in lessons
            if entry.lesson is not None and entry.lesson.status is not LessonStatus.draft
        ]
    for path in found:
        yield path.removeprefix(f"/{language}")


def _url_elements(public_url: str, paths: list[str]) -> Iterator[str]:
    for path in paths:
        links = [(language.code, f"{public_url}/{language.code}{path}") for language in i18n.LANGUAGES]
        links.append(("x-default", f"{public_url}/{i18n.DEFAULT_LANGUAGE}{path}"))
        alternates = "".join(
            f'<xhtml:link rel="alternate" hreflang="{code}" href="{escape(url)}"/>' for code, url in links
        )
        for _, url in links[:-1]:
            yield f"<url><loc>{escape(url)}</loc>{alternates}</url>\n"
