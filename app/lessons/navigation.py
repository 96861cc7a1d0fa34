"""What other pages show of the catalog: links in the top bar, and outlines on error pages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from starlette.requests import Request

from app import i18n
from app.errors import LockstepError
from app.lessons.dependencies import request_catalog
from app.web.rendering import NavItem


def course_links(request: Request) -> list[NavItem]:
    lang = i18n.current_language()
    path = request.url.path
    addresses = [
        (course.title, str(request.app.url_path_for("course", lang=lang, course=course.slug)))
        for course in request_catalog(request).courses(lang)
    ]
    return [NavItem(title, url, path == url or path.startswith(f"{url}/")) for title, url in addresses]


def course_outlines(request: Request, _error: LockstepError) -> Mapping[str, Any]:
    catalog = request_catalog(request)
    lang = i18n.current_language()
    return {"courses": [catalog.outline(course.slug, lang) for course in catalog.courses(lang)]}
