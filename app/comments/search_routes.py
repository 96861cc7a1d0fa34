"""Searching comments over HTTP: a page, and the same as a fragment below the lessons that a search found.

Context of the templates ``comments/search.html`` and ``comments/_search_results.html``: ``query``; ``words``;
``comments``: the newest that contain all words; ``authors`` by ID; ``titles``: lesson titles by key; ``excerpt``.
"""

from __future__ import annotations

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from app.comments import queries
from app.lessons.dependencies import CatalogDep
from app.web.access import Access
from app.web.dependencies import DatabaseDep
from app.web.excerpt import MAX_QUERY_LENGTH, excerpt, query_words
from app.web.languages import LANGUAGE_PREFIX
from app.web.rendering import render_page_or_fragment

router = APIRouter(prefix=LANGUAGE_PREFIX, tags=[Access.public])


@router.get("/search/comments", name="comment_search")
async def search_comments(request: Request, lang: str, catalog: CatalogDep, db: DatabaseDep, q: str = "") -> Response:
    words = query_words(q)
    async with db.session() as session:
        found = await queries.find_comments(session, words, catalog.hidden)
        authors = await queries.get_authors(session, found)
    return render_page_or_fragment(
        request,
        "comments/_search_results.html",
        "comments/search.html",
        query=q[:MAX_QUERY_LENGTH] if words else "",
        words=words,
        comments=found,
        authors=authors,
        titles={comment.lesson: catalog.lesson_title(comment.lesson, lang) for comment in found},
        excerpt=excerpt,
    )
