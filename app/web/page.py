"""Pages and fragments: Jinja templates with the words, addresses and languages that every one of them needs.

A page holds nothing of the visitor who asks: what is theirs comes as fragments and JSON. So a page may be kept, whole
and compressed, for everyone (``kept_page``).

Every template sees ``lang``, ``url_for(route, **parts)`` (a path), ``static(path)``, ``request``,
``drawing(topology)``, the filters of the language (``number``, ``percent``, ``date``, ``day_and_month``,
``date_and_time``, ``ago``), ``with_turns_shown`` for what people wrote, and gettext. That of a whole page sees also
``languages`` (``code, name, url, current``), ``listed`` (the page is for everyone: search engines hear of its other
languages) and ``nav`` (``label, url, current``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from jinja2 import ChoiceLoader, Environment, FileSystemLoader, StrictUndefined
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from app import i18n
from app.web.access import ACCESS, Access
from app.web.drawing import drawing
from app.web.languages import alternates
from app.web.shelf import Shelf
from app.web.text import with_turns_shown

_APP = Path(__file__).parents[1]


@dataclass(frozen=True, slots=True)
class NavItem:
    """A link of the top bar."""

    label: str
    url: str
    current: bool


def page(request: Request, template: str, http_status: int = 200, /, **context: Any) -> HTMLResponse:
    """A whole page."""
    html = _render(request, template, _frame(request, request.url.query, listed=http_status == 200) | context)
    return HTMLResponse(html, http_status, {"cache-control": "no-cache"})


def fragment(request: Request, template: str, http_status: int = 200, /, **context: Any) -> HTMLResponse:
    """A piece of a page, for htmx; never kept by the browser."""
    headers = {"cache-control": "no-store", "vary": "hx-request"}
    return HTMLResponse(_render(request, template, context), http_status, headers)


def own_page(request: Request, template: str, http_status: int = 200, /, **context: Any) -> HTMLResponse:
    """A page that holds what is the reader's own: no browser keeps it."""
    answer = page(request, template, http_status, **context)
    answer.headers.update({"cache-control": "no-store", "vary": "hx-request"})
    return answer


def either(request: Request, part: str, whole: str, http_status: int = 200, /, **context: Any) -> HTMLResponse:
    """``part`` for htmx, ``whole`` for a browser without a script."""
    if by_htmx(request):
        return fragment(request, part, http_status, **context)
    return own_page(request, whole, http_status, **context)


def by_htmx(request: Request) -> bool:
    """Whether htmx asks, for a piece of a page."""
    return request.headers.get("hx-request") == "true"


def kept_page(request: Request, template: str, context: Callable[[], Mapping[str, Any]]) -> Response:
    """A page that is the same for everyone in one edition of the lessons; its path says in which language.

    From now on the shelf has it, and answers most readers before this is called again.
    """
    shelf: Shelf = request.app.state.shelf
    path = request.scope["path"]
    kept = shelf.find(path) or shelf.put(
        path, lambda: _render(request, template, {**_frame(request, "", listed=True), **context()})
    )
    return kept.answer(request.headers)


def _frame(request: Request, query: str, *, listed: bool) -> dict[str, Any]:
    """What stands around the content of a page. ``query`` is the one that the page in another language has too."""
    route = getattr(request.scope.get("route"), "name", "")
    return {
        "languages": alternates(request, query),
        "listed": listed and ACCESS.get(route) is Access.public,
        "nav": request.app.state.nav(request),
    }


def _render(request: Request, template: str, context: Mapping[str, Any]) -> str:
    state = request.app.state

    def url_for(route: str, /, **parts: Any) -> str:
        return str(request.app.url_path_for(route, **parts))  # templates write a plain string faster

    everywhere = {
        "request": request,
        "lang": i18n.current(),
        "url_for": url_for,
        "static": state.assets.address,
    }
    return (
        environment(state.settings.environment == "development")
        .get_template(template)
        .render({**everywhere, **context})
    )


@lru_cache
def environment(reload: bool) -> Environment:
    """Jinja with every feature's templates; an unknown name in a template is an error."""
    folders = [_APP / "web" / "templates", *sorted(_APP.glob("*/templates"))]
    env = Environment(
        loader=ChoiceLoader([FileSystemLoader(folder) for folder in dict.fromkeys(folders)]),
        autoescape=True,
        auto_reload=reload,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        extensions=["jinja2.ext.i18n"],
    )
    env.install_gettext_callables(i18n.gettext, i18n.ngettext, newstyle=True)  # type: ignore[attr-defined]
    env.globals["drawing"] = drawing
    env.filters |= {
        "number": i18n.number,
        "percent": i18n.percent,
        "date": i18n.date,
        "day_and_month": i18n.day_and_month,
        "date_and_time": i18n.date_and_time,
        "ago": i18n.ago,
        "with_turns_shown": with_turns_shown,
    }
    return env
