"""Renders pages and fragments: Jinja templates with the texts, URLs and languages that all of them need.

A page contains nothing about its viewer: that comes as fragments and JSON. So a page can be cached for everyone,
compressed (``render_cached_page``).

All templates have ``lang``, ``url_for(route, **parts)`` (a path), ``static(path)``, ``request``,
``topology_icon(topology)``, the filters of the language (``number``, ``percent``, ``date``, ``day_and_month``,
``date_and_time``, ``relative_time``), ``escape_bidi`` for user-written text, and gettext. Templates of whole pages also
have ``languages`` (``code, name, url, current``), ``canonical`` (``url, default_url``: the page's address for search
engines, if it is for everyone and the site has a public URL; else None), ``navigation`` (``label, url, current``),
``banners`` (sentences) and ``documented`` (this server has the documentation at /docs/).
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from jinja2 import ChoiceLoader, Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from app import i18n
from app.errors import LockstepError
from app.web.access import is_public
from app.web.assets import Assets, docs_built
from app.web.dependencies import SETTINGS, AppKey
from app.web.gzip_parts import Frame, KeptPart, html_response
from app.web.languages import canonical_address, language_alternates
from app.web.page_cache import PageCache
from app.web.security_headers import NO_STORE
from app.web.topology_icon import topology_icon
from app.web.user_text import code_spans, escape_bidi_controls

_APP_ROOT = Path(__file__).parents[1]
_MARK = secrets.token_hex(16)
"""Encloses the name of a slot. Nobody can write it: it is new in each process."""
_SLOT = re.compile(f"{_MARK}-(.+?)-{_MARK}")


@dataclass(frozen=True, slots=True)
class NavItem:
    """A link in the top bar."""

    label: str
    url: str
    current: bool


@dataclass(frozen=True, slots=True)
class PageShell:
    """What surrounds the content of every page."""

    assets: Assets
    cache: PageCache
    navigation: Callable[[Request], Sequence[NavItem]]
    """The links in the top bar."""
    banners: Callable[[], Sequence[str]]
    """Sentences at the top of every page, such as that the site is under maintenance."""
    error_context: Callable[[Request, LockstepError], Mapping[str, Any]]
    """Extra values for error pages, such as the outlines of courses."""


PAGE_SHELL = AppKey[PageShell]("page_shell")


def render_page(request: Request, template: str, http_status: int = 200, /, **context: Any) -> HTMLResponse:
    """Render a whole page."""
    html = _render_template(
        request, template, _layout_context(request, request.url.query, indexable=http_status == 200) | context
    )
    return HTMLResponse(html, http_status, {"cache-control": "no-cache"})


def render_fragment(request: Request, template: str, http_status: int = 200, /, **context: Any) -> HTMLResponse:
    """Render a fragment for htmx, which browsers do not cache."""
    headers = {**NO_STORE, "vary": "hx-request"}
    return HTMLResponse(_render_template(request, template, context), http_status, headers)


def render_part(request: Request, template: str, /, **context: Any) -> Markup:
    """Render a part of a page, as HTML."""
    return Markup(_render_template(request, template, context))  # noqa: S704 - Jinja escapes what needs it


def parts_response(request: Request, parts: Sequence[bytes | KeptPart]) -> Response:
    """A fragment for htmx that consists of these parts."""
    return html_response(parts, request.headers, {**NO_STORE, "vary": "hx-request"})


def render_frame(request: Request, template: str, slots: Collection[str], /, **context: Any) -> Frame:
    """Render a fragment with slots: names of the context that each response fills with HTML of its own."""
    html = _render_template(request, template, {**context, **{name: slot_mark(name) for name in slots}})
    parts = _SLOT.split(html)
    return Frame(tuple(part if number % 2 else KeptPart(part.encode()) for number, part in enumerate(parts)))


def slot_mark(name: str) -> str:
    """What stands for a slot while a frame is rendered."""
    return f"{_MARK}-{name}-{_MARK}"


def frame_response(request: Request, frame: Frame, **slots: bytes | KeptPart) -> Response:
    """A fragment for htmx: a frame with its slots filled."""
    return parts_response(request, frame.filled(**slots))


def render_private_page(request: Request, template: str, http_status: int = 200, /, **context: Any) -> HTMLResponse:
    """Render a page with private content, which browsers do not cache."""
    answer = render_page(request, template, http_status, **context)
    answer.headers.update({**NO_STORE, "vary": "hx-request"})
    return answer


def render_page_or_fragment(
    request: Request, part: str, whole: str, http_status: int = 200, /, **context: Any
) -> HTMLResponse:
    """Render ``part`` for htmx, or ``whole`` for a browser without a script."""
    if is_htmx_request(request):
        return render_fragment(request, part, http_status, **context)
    return render_private_page(request, whole, http_status, **context)


def is_htmx_request(request: Request) -> bool:
    """Whether htmx requests a fragment."""
    return request.headers.get("hx-request") == "true"


def render_cached_page(request: Request, template: str, context: Callable[[], Mapping[str, Any]]) -> Response:
    """A page that is the same for everyone in one edition of the lessons and whose path includes the language.

    Adds the page to the cache, which then serves most requests before they reach this function.
    """
    cache = PAGE_SHELL.get(request.app).cache
    path = request.scope["path"]
    kept = cache.find(path) or cache.put(
        path,
        lambda: _render_template(request, template, {**_layout_context(request, "", indexable=True), **context()}),
        request.scope.get("route"),
    )
    return kept.answer(request.headers)


def _layout_context(request: Request, query: str, *, indexable: bool) -> dict[str, Any]:
    """What surrounds the content of a page. ``query`` is kept when the language changes."""
    return {
        "languages": language_alternates(request, query),
        "canonical": canonical_address(request, query) if indexable and is_public(request) else None,
        "navigation": PAGE_SHELL.get(request.app).navigation(request),
        "banners": PAGE_SHELL.get(request.app).banners(),
        "documented": docs_built(),
    }


def _render_template(request: Request, template: str, context: Mapping[str, Any]) -> str:

    def url_for(route: str, /, **parts: Any) -> str:
        return str(request.app.url_path_for(route, **parts))  # templates render a plain string faster

    everywhere = {
        "request": request,
        "lang": i18n.current_language(),
        "url_for": url_for,
        "static": PAGE_SHELL.get(request.app).assets.address,
    }
    return (
        template_environment(SETTINGS.get(request.app).environment == "development")
        .get_template(template)
        .render({**everywhere, **context})
    )


@lru_cache
def template_environment(reload: bool) -> Environment:
    """Jinja with the templates of all features; unknown names in a template are errors."""
    folders = [_APP_ROOT / "web" / "templates", *sorted(_APP_ROOT.glob("*/templates"))]
    env = Environment(
        loader=ChoiceLoader([FileSystemLoader(folder) for folder in dict.fromkeys(folders)]),
        autoescape=True,
        auto_reload=reload,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        extensions=["jinja2.ext.i18n"],
    )
    env.install_gettext_callables(i18n.gettext, i18n.ngettext, newstyle=True, pgettext=i18n.pgettext)  # type: ignore[attr-defined]
    env.globals["topology_icon"] = topology_icon
    env.filters |= {
        "number": i18n.number,
        "percent": i18n.percent,
        "date": i18n.date,
        "day_and_month": i18n.day_and_month,
        "date_and_time": i18n.date_and_time,
        "relative_time": i18n.relative_time,
        "escape_bidi": escape_bidi_controls,
        "code_spans": code_spans,
    }
    return env
