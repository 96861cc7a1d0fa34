"""What every response contains, what no request may do, and which users may use which route."""

from __future__ import annotations

import re
import secrets
from collections.abc import AsyncIterator

import httpx
import pytest
from fastapi import FastAPI
from starlette.routing import Route

from app.main import create_app
from app.settings import Settings
from app.web.access import Access, access_of
from tests.factories.browser_client import browser_client, press_run
from tests.factories.course import LESSON
from tests.factories.routes import all_routes
from tests.factories.scripted_supervisor import ScriptedSupervisor


def test_every_route_but_those_of_files_says_who_may_use_it(settings: Settings) -> None:
    routes = list(all_routes(create_app(settings)))

    assert {route.name for route in routes if not isinstance(route, Route)} == {"static", "docs"}
    assert all(access_of(route) in Access for route in routes if isinstance(route, Route))
    assert len(routes) == len({route.name for route in routes})


async def test_a_learners_route_shows_nothing_to_others(app: FastAPI, supervisor: ScriptedSupervisor) -> None:
    async with browser_client(app) as owner, browser_client(app) as other:
        run = await press_run(owner)
        for route in all_routes(app):
            if isinstance(route, Route) and access_of(route) is Access.learner and "{run_id}" in route.path:
                path = route.path.replace("{run_id}", run["id"]).replace("{seq}", "1").replace("{seq:int}", "1")
                method = "POST" if "POST" in (route.methods or ()) else "GET"
                assert (await other.request(method, path)).status_code == 404, route.name


PATHS = ["/healthz", "/en/", "/en/courses/small/first", "/nothing", "/runs?lesson=x", "/static/nothing.css"]


@pytest.mark.parametrize("path", PATHS)
async def test_every_answer_is_guarded(client: httpx.AsyncClient, path: str) -> None:
    headers = (await client.get(path)).headers

    policy = dict(part.split(" ", 1) for part in headers["content-security-policy"].split("; "))
    assert policy["default-src"] == "'none'"
    assert policy["script-src"] == policy["style-src"] == "'self'"
    assert policy["frame-ancestors"] == policy["base-uri"] == "'none'"
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["cross-origin-opener-policy"] == "same-origin"
    assert headers["referrer-policy"] == "same-origin"
    assert "camera=()" in headers["permissions-policy"]
    assert "strict-transport-security" not in headers
    assert "access-control-allow-origin" not in headers


@pytest.mark.parametrize(
    "address",
    [
        *("/en/email-link/{token}", "/en/groups/join/{token}.", "/en/groups/reminders/a/b/{token}"),
        *("/en/unsubscribe/a.all.1.{token}", "/en/sign-up?invitation={token}"),
        *("/en/sign-in?next=/en/groups/join/{token}", "/en/sign-in?next=%2Fen%2Fgroups%2Fjoin%2F{token}"),
    ],
)
async def test_a_page_with_a_token_in_its_address_tells_it_to_nobody(client: httpx.AsyncClient, address: str) -> None:
    page = await client.get(address.format(token=f"A{secrets.token_urlsafe(32)[1:]}"))

    assert page.headers.get_list("referrer-policy") == ["strict-origin"]
    assert (await client.get("/en/sign-in")).headers.get_list("referrer-policy") == ["same-origin"]


async def test_pages_hold_no_script_or_style_of_their_own(client: httpx.AsyncClient) -> None:
    for path in ("/en/", "/en/courses/small", "/en/courses/small/first", "/en/nothing"):
        html = (await client.get(path, headers={"accept": "text/html"})).text
        assert not re.search(r"<style|\sstyle=|\son[a-z]+=", html), path
        for script in re.findall(r"<script\b[^>]*>", html):
            assert "src=" in script or "application/json" in script, script
        for address in re.findall(r'(?:src|href)="([^"]+)"', html):
            assert not re.match(r"(https?:)?//", address), address


async def test_requests_from_another_site_change_nothing(app: FastAPI, supervisor: ScriptedSupervisor) -> None:
    async with browser_client(app) as client:
        client.headers["sec-fetch-site"] = "cross-site"
        response = await client.post("/runs", json={"lesson": LESSON, "cell": "hello", "code": "1"})

    assert response.status_code == 403
    assert response.json()["error"]["code"] == "cross_site_request"
    assert not supervisor.submitted


async def test_a_body_over_the_limit_is_refused_with_and_without_a_length(client: httpx.AsyncClient) -> None:
    async def chunks() -> AsyncIterator[bytes]:
        for _ in range(40):
            yield b"x" * 50_000

    for content in (b"x" * 1_000_001, chunks()):
        response = await client.post("/runs", content=content, headers={"content-type": "application/json"})
        assert response.status_code == 413
        assert "1,000,000 bytes" in response.json()["error"]["message"]


async def test_a_body_of_unknown_length_within_the_limit_arrives(
    client: httpx.AsyncClient, supervisor: ScriptedSupervisor
) -> None:
    async def chunks() -> AsyncIterator[bytes]:
        yield b'{"lesson": "small/first", '
        yield b'"cell": "hello", "code": "1"}'

    response = await client.post("/runs", content=chunks(), headers={"content-type": "application/json"})

    assert response.status_code == 202


async def test_a_visitor_keeps_one_cookie_that_runs_renew_and_pages_never_set(
    client: httpx.AsyncClient, supervisor: ScriptedSupervisor
) -> None:
    assert "set-cookie" not in (await client.get("/en/courses/small/first")).headers
    assert "set-cookie" not in (await client.get("/runs", params={"lesson": LESSON})).headers
    assert "set-cookie" not in (await client.get("/en/session", params={"lesson": LESSON})).headers

    first = await client.post("/en/session", params={"lesson": LESSON})
    cookie = first.headers["set-cookie"]
    assert cookie.startswith("lockstep_visitor=")
    assert {"HttpOnly", "SameSite=Lax", "Path=/"} <= set(cookie.split("; "))
    assert "set-cookie" not in (await client.get("/en/session", params={"lesson": LESSON})).headers
    again = await client.post("/runs", json={"lesson": LESSON, "cell": "hello", "code": "1"})
    assert again.headers["set-cookie"] == cookie


async def test_the_database_holds_only_a_hash_of_the_cookie(
    client: httpx.AsyncClient, supervisor: ScriptedSupervisor, settings: Settings
) -> None:
    await press_run(client)

    token = client.cookies["lockstep_visitor"].encode()
    files = list(settings.data_dir.glob("lockstep.db*"))
    assert files
    assert not any(token in file.read_bytes() for file in files)


@pytest.mark.parametrize("cookie", ["", "short", "x" * 43 + "\x7f", "' OR 1=1 --", "x" * 5000])
async def test_a_cookie_that_we_never_gave_is_nobodys(
    app: FastAPI, supervisor: ScriptedSupervisor, cookie: str
) -> None:
    async with browser_client(app) as client:
        response = await client.get(
            "/runs", params={"lesson": LESSON}, headers={"cookie": f"lockstep_visitor={cookie}"}
        )

    assert response.json() == {"runs": []}


@pytest.fixture
async def behind_tls(settings: Settings) -> AsyncIterator[FastAPI]:
    app = create_app(settings.model_copy(update={"public_url": "https://learn.example.org"}))
    async with app.router.lifespan_context(app):
        yield app


async def test_under_https_cookies_are_bound_to_the_host_and_browsers_told_to_stay(
    behind_tls: FastAPI, supervisor: ScriptedSupervisor
) -> None:
    async with browser_client(behind_tls) as client:
        client.headers["host"] = "learn.example.org"
        response = await client.post("/en/session", params={"lesson": LESSON})

        chosen = await client.get("/ko/", headers={"accept-language": "en", "sec-fetch-mode": "navigate"})
        kept = chosen.headers["set-cookie"].partition(";")[0]
        bare = await client.get("/", headers={"accept-language": "en", "cookie": kept})

    for answer, name in ((response, "visitor"), (chosen, "lang")):
        cookie = answer.headers["set-cookie"]
        assert cookie.startswith(f"__Host-lockstep_{name}=")
        assert {"Secure", "HttpOnly", "SameSite=Lax", "Path=/"} <= set(cookie.split("; "))
        assert "Domain" not in cookie
        assert "max-age=" in answer.headers["strict-transport-security"]
    assert bare.headers["location"] == "/ko/", "what was chosen is remembered by that name"


async def test_with_a_public_address_other_hosts_are_refused(behind_tls: FastAPI) -> None:
    async with browser_client(behind_tls) as client:
        for host, status in (("evil.test", 400), ("learn.example.org", 200), ("evil.test", 400)):
            assert (await client.get("/en/", headers={"host": host})).status_code == status
        assert (await client.get("/healthz", headers={"host": "127.0.0.1:8000"})).status_code == 200


async def test_an_ipv6_address_may_be_the_public_one(settings: Settings) -> None:
    app = create_app(settings.model_copy(update={"public_url": "http://[2001:DB8::1]:8080"}))
    async with app.router.lifespan_context(app), browser_client(app) as client:
        for host, status in (("[2001:db8::1]:8080", 200), ("[2001:db8::2]:8080", 400), ("[2001", 400)):
            assert (await client.get("/en/", headers={"host": host})).status_code == status, host


async def test_a_request_id_is_given_out_and_none_taken_over(client: httpx.AsyncClient) -> None:
    for given in ("0123456789abcdef", "bad id\u00e9", ""):
        response = await client.get("/nothing", headers=[(b"x-request-id", given.encode())])
        answered = response.headers["x-request-id"]
        assert re.fullmatch("[0-9a-f]{16}", answered)
        assert answered != given
        assert response.json()["error"]["request_id"] == answered


@pytest.mark.parametrize("host", ["test", "evil.test", "evil.test:81", "[::1]:8000"])
async def test_a_redirect_never_names_the_host_that_was_asked(client: httpx.AsyncClient, host: str) -> None:
    for path, location in (("/", "/en/"), ("/en/courses/small/", "/en/courses/small")):
        response = await client.get(path, headers={"host": host})
        assert response.is_redirect
        assert response.headers["location"] == location


async def test_a_redirect_of_a_path_with_two_slashes_stays_here(client: httpx.AsyncClient) -> None:
    for path in ("http://test//evil.test/", "http://test//evil.test/en/courses/small/"):
        location = (await client.get(path)).headers.get("location", "")
        assert not location.startswith("//")
