"""Searching lessons over HTTP: a page that works without a script, and the same as fragments for htmx.

Contexts of the templates:

``search/page.html``, ``search/_search.html``
    ``query``; ``words``; ``matches``: LessonMatches of the words; ``excerpt``.
``search/_results.html``
    The same.
"""

from __future__ import annotations

import asyncio
from urllib.parse import quote

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from app.lessons.dependencies import CatalogDep
from app.search.index import LessonIndexes
from app.web.access import Access
from app.web.dependencies import AppKey
from app.web.excerpt import MAX_QUERY_LENGTH, excerpt, query_words
from app.web.languages import LANGUAGE_PREFIX
from app.web.rendering import is_htmx_request, render_fragment, render_private_page

INDEXES = AppKey[LessonIndexes]("lesson_indexes")

router = APIRouter(prefix=LANGUAGE_PREFIX, tags=[Access.public])


@router.get("/search", name="search")
async def search(request: Request, lang: str, catalog: CatalogDep, q: str = "") -> Response:
    words = query_words(q)
    indexes = INDEXES.get(request.app)
    matches = await asyncio.to_thread(lambda: indexes.get(catalog, lang).find(words)) if words else []
    context = {
        "query": " ".join(words) and q[:MAX_QUERY_LENGTH],
        "words": words,
        "to_mark": quote(" ".join(words), safe=""),
        "matches": matches,
        "excerpt": excerpt,
    }
    if not is_htmx_request(request):
        return render_private_page(request, "search/page.html", **context)
    asked_for_results = request.headers.get("hx-target", "").endswith("search-results")
    return render_fragment(request, "search/_results.html" if asked_for_results else "search/_search.html", **context)
