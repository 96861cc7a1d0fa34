"""The language of a request: the first segment of its path, else a header, a cookie, or the browser's preference."""

from __future__ import annotations

from dataclasses import dataclass

from starlette.convertors import Convertor, register_url_convertor
from starlette.datastructures import Headers
from starlette.requests import Request, cookie_parser
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app import i18n
from app.web.api import is_api_path
from app.web.cookies import browser_cookie_name, set_cookie_value
from app.web.dependencies import SETTINGS

LANGUAGE_COOKIE = "lockstep_lang"
LANGUAGE_HEADER = "x-lockstep-lang"
_ONE_YEAR_S = 365 * 24 * 3600


class _LanguageConvertor(Convertor[str]):
    regex = "|".join(i18n.LANGUAGE_CODES)

    def convert(self, value: str) -> str:
        return value

    def to_string(self, value: str) -> str:
        return value


register_url_convertor("lang", _LanguageConvertor())
LANGUAGE_PREFIX = "/{lang:lang}"
"""The prefix of every page's path and of the routers of pages."""


@dataclass(frozen=True, slots=True)
class LanguageAlternate:
    """A page in another language, for the language switcher and ``<link rel="alternate" hreflang>``."""

    code: str
    name: str
    url: str
    current: bool


@dataclass(frozen=True, slots=True)
class CanonicalAddress:
    """A page's full URL, and that of the page for readers whose language it does not have."""

    url: str
    default_url: str
    origin: str
    """What precedes the path in both."""


def language_alternates(request: Request, query: str = "") -> list[LanguageAlternate]:
    """This page with that query in every language; on a page without a language, the home pages."""
    path = request.url.path
    rest = path[len(path.split("/", 2)[1]) + 1 :] if language_in_path(path) else "/"
    if query and language_in_path(path):
        rest += f"?{query}"
    base = SETTINGS.get(request.app).public_url
    return [
        LanguageAlternate(
            language.code, language.name, f"{base}/{language.code}{rest}", language.code == i18n.current_language()
        )
        for language in i18n.LANGUAGES
    ]


def canonical_address(request: Request, query: str = "") -> CanonicalAddress | None:
    """The page's address for search engines; None without a public URL, because nobody else can open the page."""
    origin = SETTINGS.get(request.app).public_url
    if not origin:
        return None
    urls = {each.code: each.url for each in language_alternates(request, query)}
    return CanonicalAddress(urls[i18n.current_language()], urls[i18n.DEFAULT_LANGUAGE], origin)


def language_in_path(path: str) -> str | None:
    """The language at the start of the path; None if there is none."""
    first = path.split("/", 2)[1] if path.startswith("/") else ""
    return first if first in i18n.LANGUAGE_CODES else None


def preferred_language(headers: Headers, *, secure: bool) -> str:
    """The preferred language if the path names none."""
    if (asked := headers.get(LANGUAGE_HEADER)) in i18n.LANGUAGE_CODES:
        return str(asked)
    if (
        kept := cookie_parser(headers.get("cookie", "")).get(browser_cookie_name(LANGUAGE_COOKIE, secure=secure))
    ) in i18n.LANGUAGE_CODES:
        return str(kept)
    return i18n.negotiate(headers.get("accept-language", ""))


class LanguageMiddleware:
    """Sets the language of each request, and remembers a choice that differs from the browser's preference."""

    def __init__(self, app: ASGIApp, *, secure: bool) -> None:
        """``secure``: learners use HTTPS."""
        self._app = app
        self._secure = secure

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        if is_api_path(scope["path"]):
            with i18n.use_language(i18n.DEFAULT_LANGUAGE):
                await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        secure = self._secure or scope["scheme"] == "https"
        chosen = language_in_path(scope["path"])
        navigates = chosen is not None and headers.get("sec-fetch-mode") == "navigate"
        usual = preferred_language(headers, secure=secure) if navigates or chosen is None else chosen
        chosen = chosen or usual
        if chosen == usual:
            with i18n.use_language(chosen):
                await self._app(scope, receive, send)
            return

        async def send_marked(message: Message) -> None:
            if message["type"] == "http.response.start" and message["status"] == 200:
                cookie = set_cookie_value(LANGUAGE_COOKIE, chosen, _ONE_YEAR_S, secure=secure)
                message.setdefault("headers", []).append((b"set-cookie", cookie.encode()))
            await send(message)

        with i18n.use_language(chosen):
            await self._app(scope, receive, send_marked)
