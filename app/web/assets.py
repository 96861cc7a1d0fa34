"""Static files under URLs that change with their content, so that browsers can cache them for a year."""

from __future__ import annotations

import gzip
import hashlib
import mimetypes
import posixpath
import re
from dataclasses import dataclass
from pathlib import Path

from starlette.datastructures import Headers, QueryParams
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from app.errors import HttpStatusError, NotFound

ROOT = Path(__file__).parent / "static"
DOCS = Path(__file__).parent / "docs"
"""The output folder of `make docs`; missing until then."""

_CACHE_FOREVER = "public, max-age=31536000, immutable"
_REVALIDATE = "public, no-cache"
_HASHED_NAME = re.compile(r"[-.][A-Z0-9]{8}\.(js|css|woff2|svg|png)(\.map)?$")
_FOR_SANDBOXES = "dist/plots/"
"""Scripts of documents in a sandbox, which have no origin: to a browser, they are another site."""
_COMPRESSIBLE = ("text/", "application/javascript", "application/json", "image/svg+xml")

mimetypes.add_type("text/javascript", ".js")
mimetypes.add_type("font/woff2", ".woff2")


@dataclass(frozen=True, slots=True)
class _File:
    stamp: tuple[int, int]
    body: bytes
    compressed: tuple[tuple[str, bytes], ...]
    """By content coding, the smallest first."""
    version: str
    media_type: str


def docs_built() -> bool:
    """Whether there is documentation to serve."""
    return (DOCS / "index.html").is_file()


class Assets:
    """The files in a folder, kept in memory and reloaded when they change."""

    def __init__(self, root: Path = ROOT, *, url: str = "/static", index: str = "") -> None:
        """``index`` is the file to serve for the URL of its folder, if any."""
        self._root = root.resolve()
        self._url = url
        self._index = index
        self._files: dict[str, _File] = {}
        self._hashed: dict[str, str] = {}

    def address(self, path: str) -> str:
        """The URL of a file with its version: its hash in the query, or in the name if the build put it there.

        ``fonts/inter.woff2`` finds ``fonts/inter-AB12CD34.woff2``. Without a version if the file does not exist.
        """
        if file := self._find(path):
            return f"{self._url}/{path}?v={file.version}"
        return f"{self._url}/{self._find_hashed(path) or path}"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] not in ("GET", "HEAD"):
            raise HttpStatusError(405)
        path = scope["path"].removeprefix(scope.get("root_path", "")).removeprefix("/")
        if not path or path.endswith("/"):
            path += self._index
        file = self._find(path)
        if file is None:
            raise NotFound
        await _file_response(file, path, scope)(scope, receive, send)

    def _find_hashed(self, path: str) -> str | None:
        """The path of a file in whose name the build put a hash."""
        hashed = self._hashed.get(path)
        if hashed is None or self._find(hashed) is None:
            wanted = self._root / path
            found = wanted.parent.glob(f"{wanted.stem}-????????{wanted.suffix}")
            names = sorted(file.name for file in found if _HASHED_NAME.search(file.name))
            if not names:
                return None
            hashed = self._hashed[path] = posixpath.join(posixpath.dirname(path), names[0])
        return hashed

    def _find(self, path: str) -> _File | None:
        if posixpath.isabs(path) or posixpath.normpath(path) != path:
            return None  # each file has one URL, so at most as many entries are cached as there are files
        try:
            whole = (self._root / path).resolve()
            if not whole.is_relative_to(self._root) or not whole.is_file():
                return None
            stat = whole.stat()
        except (OSError, ValueError):
            return None
        stamp = (stat.st_mtime_ns, stat.st_size)
        file = self._files.get(path)
        if file is None or file.stamp != stamp:
            file = self._files[path] = _read_file(whole, stamp)
        return file


def with_charset(media_type: str) -> str:
    """The media type; XML has its encoding, so that no browser guesses one. Starlette adds that of plain text. Pure."""
    return f"{media_type}; charset=utf-8" if media_type.endswith("+xml") else media_type


def _read_file(path: Path, stamp: tuple[int, int]) -> _File:
    body = path.read_bytes()
    media_type = with_charset(mimetypes.guess_type(path.name)[0] or "application/octet-stream")
    compressed = []
    if media_type.startswith(_COMPRESSIBLE) and len(body) > 500:
        if (brotli := path.with_name(f"{path.name}.br")).is_file() and brotli.stat().st_mtime_ns >= stamp[0]:
            compressed.append(("br", brotli.read_bytes()))  # the build has made it
        compressed.append(("gzip", gzip.compress(body, 9, mtime=0)))
    return _File(stamp, body, tuple(compressed), hashlib.sha256(body).hexdigest()[:12], media_type)


def _file_response(file: _File, path: str, scope: Scope) -> Response:
    asked = QueryParams(scope["query_string"]).get("v")
    keep = asked == file.version or (asked is None and _HASHED_NAME.search(path) is not None)
    headers = {
        "cache-control": _CACHE_FOREVER if keep else _REVALIDATE,
        "etag": f'"{file.version}"',
        "vary": "accept-encoding",
        **({"cross-origin-resource-policy": "cross-origin"} if path.startswith(_FOR_SANDBOXES) else {}),
    }
    given = Headers(scope=scope)
    if file.version in given.get("if-none-match", ""):
        return Response(status_code=304, headers=headers)
    for coding, body in file.compressed:
        if coding in given.get("accept-encoding", ""):
            return Response(body, headers=headers | {"content-encoding": coding}, media_type=file.media_type)
    return Response(file.body, headers=headers, media_type=file.media_type)
