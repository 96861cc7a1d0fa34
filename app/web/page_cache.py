"""Pages that are the same for everyone: rendered and compressed once, and served before routing."""

from __future__ import annotations

import gzip
import hashlib
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.routing import BaseRoute
from starlette.types import ASGIApp, Receive, Scope, Send

from app.web.matched_route import note_route

MAX_CACHED_PAGES = 512
_HTML = "text/html; charset=utf-8"


@dataclass(frozen=True, slots=True)
class CachedPage:
    """A rendered page of one edition."""

    edition: str
    body: bytes
    zipped: bytes
    etag: str
    route: BaseRoute | None = None
    """The route that rendered it."""

    def answer(self, asked: Headers) -> Response:
        """The page, compressed if the browser accepts that, or 304 if the browser has it already."""
        headers = {"cache-control": "no-cache", "etag": self.etag, "vary": "accept-encoding", "content-type": _HTML}
        if self.etag in asked.get("if-none-match", ""):
            return Response(status_code=304, headers=headers)
        if "gzip" in asked.get("accept-encoding", ""):
            return Response(self.zipped, headers=headers | {"content-encoding": "gzip"})
        return Response(self.body, headers=headers)


class PageCache:
    """Pages by path; the least recently used are dropped first.

    ``edition`` identifies what all pages depend on: pages of an earlier edition are not found anymore.
    """

    def __init__(self, edition: Callable[[], str], most: int = MAX_CACHED_PAGES) -> None:
        self._edition = edition
        self._most = most
        self._pages: OrderedDict[str, CachedPage] = OrderedDict()

    def find(self, path: str) -> CachedPage | None:
        kept = self._pages.get(path)
        if kept is None or kept.edition != self._edition():
            return None
        self._pages.move_to_end(path)
        return kept

    def put(self, path: str, render: Callable[[], str], route: BaseRoute | None = None) -> CachedPage:
        """Render a page of a route and cache it."""
        edition = self._edition()  # before rendering: if it changes meanwhile, the page must count as outdated
        body = render().encode()
        etag = f'"{hashlib.sha256(body).hexdigest()[:16]}"'
        kept = self._pages[path] = CachedPage(edition, body, gzip.compress(body, 6, mtime=0), etag, route)
        self._pages.move_to_end(path)
        if len(self._pages) > self._most:
            self._pages.popitem(last=False)
        return kept


class PageCacheMiddleware:
    """Serves cached pages. Routes fill the cache, and serve viewers who may see more (``passed_on``)."""

    def __init__(self, app: ASGIApp, *, cache: PageCache, passed_on: Callable[[Headers], bool]) -> None:
        self._app = app
        self._cache = cache
        self._passed_on = passed_on

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        kept = self._cache.find(scope["path"]) if scope["type"] == "http" and scope["method"] == "GET" else None
        if kept is None or self._passed_on(asked := Headers(scope=scope)):
            await self._app(scope, receive, send)
        else:
            note_route(scope, kept.route)
            await kept.answer(asked)(scope, receive, send)
