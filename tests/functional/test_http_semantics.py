"""What HTTP asks of every server, held by every route (RFC 9110)."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Iterator

import httpx
import pytest
from fastapi import FastAPI
from starlette.routing import Route

from app import errors
from app.accounts.rate_limit import ATTEMPTS_PER_ACCOUNT
from app.comments.errors import CommentRateLimited, EditLimitReached
from app.errors import TooManyRequests
from app.main import create_app
from app.settings import Settings
from tests.factories.accounts import signed_in_browser
from tests.factories.browser_client import browser_client
from tests.factories.course import LESSON
from tests.factories.http_server import serving
from tests.factories.routes import all_routes, path_parameters
from tests.factories.scripted_supervisor import ScriptedSupervisor

HTML = {"accept": "text/html", "accept-encoding": "identity"}
"""Not compressed: a page with a random key in it may be a byte longer than the next."""
_OWN_HEADERS = {"x-request-id", "set-cookie", "date", "vary"}
"""These differ from one response to the next; a page from the cache varies with fewer headers."""


@pytest.fixture
async def page(supervisor: ScriptedSupervisor, settings: Settings) -> AsyncIterator[httpx.AsyncClient]:
    """A browser on a real server."""
    async with serving(create_app(settings)) as client:
        yield client


def _address(route: Route, parts: dict[str, str]) -> str:
    return re.sub(r"\{(\w+)[^}]*\}", lambda part: parts.get(part[1], "1"), route.path)


async def test_head_is_answered_like_get_without_a_body(
    app: FastAPI, supervisor: ScriptedSupervisor, monkeypatch: pytest.MonkeyPatch
) -> None:
    # What was 9 seconds ago for GET may be 10 seconds ago for HEAD, which is a byte more.
    monkeypatch.setattr("app.i18n._relative_time", lambda _code, _seconds: "a while ago")
    parts = await path_parameters(app)
    async with await signed_in_browser(app, "admin") as client:
        for route in all_routes(app):
            if not isinstance(route, Route) or "GET" not in (route.methods or ()) or "stream" in route.name:
                continue
            url = _address(route, parts)
            whole, head = await client.get(url, headers=HTML), await client.head(url, headers=HTML)
            assert head.status_code == whole.status_code != 405, url
            assert not head.content, url
            told, same = (
                {name: value for name, value in r.headers.items() if name not in _OWN_HEADERS} for r in (whole, head)
            )
            assert told == same, url


@pytest.mark.parametrize("path", ["/en/", f"/en/courses/{LESSON}", "/static/dist/app.js", "/nothing", "/", "/healthz"])
async def test_a_connection_goes_on_after_a_head(page: httpx.AsyncClient, path: str) -> None:
    for _ in range(2):
        head, whole = await page.head(path), await page.get(path)
        assert head.status_code == whole.status_code
        assert not head.content
        assert head.headers.get("content-length") == whole.headers.get("content-length")


async def test_head_of_a_stream_ends(page: httpx.AsyncClient) -> None:
    async with asyncio.timeout(10):
        head = await page.head("/notifications/stream", headers={"accept": "text/event-stream"})

    assert (head.status_code, head.headers["content-type"]) == (200, "text/event-stream; charset=utf-8")


async def test_allow_names_every_method_of_the_path(app: FastAPI, client: httpx.AsyncClient) -> None:
    methods: dict[str, set[str]] = {}
    for route in all_routes(app):
        if isinstance(route, Route):
            methods.setdefault(_address(route, {"lang": "en", "form": "py"}), set()).update(route.methods or ())
    for url, known in methods.items():
        response = await client.patch(url)  # no route has this method
        assert response.status_code == 405, url
        assert {*known, *(["HEAD"] if "GET" in known else [])} <= set(response.headers["allow"].split(", ")), url
    assert (await client.delete("/en/sign-in")).headers["allow"] == "GET, HEAD, POST"
    assert (await client.get("/en/sign-out")).headers["allow"] == "POST"
    assert (await client.head("/en/sign-out")).headers["allow"] == "POST"
    assert (await client.delete("/static/dist/app.js")).headers["allow"] == "GET, HEAD"


def _all_of(kind: type[TooManyRequests]) -> Iterator[type[TooManyRequests]]:
    yield kind
    for each in kind.__subclasses__():
        yield from _all_of(each)


def test_every_limit_that_passes_by_itself_says_when_to_try_again() -> None:
    silent = [kind for kind in _all_of(errors.TooManyRequests) if not kind.retry_after_s]

    assert silent == [EditLimitReached], "an edit that was refused once is refused forever"
    assert CommentRateLimited.retry_after_s


@pytest.mark.usefixtures("rate_limit_clock")
async def test_a_page_that_says_wait_says_how_long_to_programs_too(app: FastAPI) -> None:
    guess = {"email": "ada@example.org", "password": "wrong"}
    async with browser_client(app) as client:
        for _ in range(ATTEMPTS_PER_ACCOUNT.free_attempts):
            assert (await client.post("/en/sign-in", data=guess)).status_code == 422
        page = await client.post("/en/sign-in", data=guess)

    assert page.status_code == 429
    assert 1 <= int(page.headers["retry-after"]) <= ATTEMPTS_PER_ACCOUNT.initial_delay_s


async def _status_of(page: httpx.AsyncClient, request: bytes) -> int:
    reader, writer = await asyncio.open_connection(page.base_url.host, page.base_url.port)
    try:
        writer.write(request)
        line = await asyncio.wait_for(reader.readline(), 10)
    finally:
        writer.close()
        await writer.wait_closed()
    return int(line.split()[1])


async def test_a_request_names_exactly_one_host(page: httpx.AsyncClient) -> None:
    host = f"host: {page.base_url.netloc.decode()}\r\n".encode()
    for sent, expected in {
        b"HTTP/1.1\r\n" + host: 200,
        b"HTTP/1.1\r\n" + host + host: 400,
        b"HTTP/1.1\r\n" + host + b"Host: evil.example\r\n": 400,
        b"HTTP/1.1\r\n": 400,
        b"HTTP/1.0\r\n": 200,
    }.items():
        assert await _status_of(page, b"GET /en/ " + sent + b"connection: close\r\n\r\n") == expected, sent


@pytest.mark.parametrize("version", [b"1.1", b"1.0"])
async def test_a_host_in_the_target_has_to_be_the_one_in_the_header(page: httpx.AsyncClient, version: bytes) -> None:
    here = page.base_url.netloc
    for host, expected in {here: 200, b"evil.example": 400, b"user@" + here: 400, here + b"0": 400}.items():
        sent = b"GET http://%s/en/ HTTP/%s\r\nhost: %s\r\nconnection: close\r\n\r\n" % (host, version, here)
        assert await _status_of(page, sent) == expected, sent


@pytest.mark.parametrize("path", [f"/en/courses/{LESSON}", "/static/dist/app.css", "/en/sign-in"])
async def test_a_browser_that_refuses_gzip_gets_none(client: httpx.AsyncClient, path: str) -> None:
    for accepted, coding in {
        "gzip": "gzip",
        "br;q=0, gzip;q=0.2": "gzip",
        "gzip;q=0": None,
        "gzip; q=0.000, identity": None,
        "GZIP;q=0": None,
        "x-notgzip": None,
        "": None,
    }.items():
        response = await client.get(path, headers={"accept-encoding": accepted})
        assert response.headers.get("content-encoding") == coding, accepted


async def test_data_of_a_wrong_type_is_refused_as_such(app: FastAPI, supervisor: ScriptedSupervisor) -> None:
    json, form = "application/json", "application/x-www-form-urlencoded"
    run = f'{{"lesson": "{LESSON}", "cell": "hello", "code": "1"}}'
    async with browser_client(app) as client:
        for path, body, sent, status in (
            ("/runs", run, "text/plain", 415),
            ("/runs", run, form, 415),
            ("/runs", run, "", 415),
            ("/runs", run, f"{json}; charset=utf-8", 202),
            ("/runs", "{}", json, 422),
            ("/runs", "", json, 422),
            ("/en/sign-in", "email=a@example.org&password=1", json, 415),
            ("/en/sign-in", "email=a@example.org&password=1", "multipart/form-data; boundary=1", 415),
            ("/en/sign-in", "email=a@example.org&password=1", f"{form.upper()}; charset=utf-8", 422),
            ("/en/sign-in", "", "", 422),
            (f"/en/session/failures?lesson={LESSON}", "task=worker%200&action=kill", "text/plain", 415),
        ):
            headers = {"content-type": sent} if sent else {}
            response = await client.post(path, content=body, headers=headers)
            assert response.status_code == status, (path, body, sent, response.text)
            if status == 415:
                assert response.json()["error"]["code"] == "unsupported_media_type"
