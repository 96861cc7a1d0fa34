"""The documentation at ``/docs/``: public, read-only, and nothing beside it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

from app import main
from app.cli import serve
from app.settings import Settings
from app.web import assets
from tests.factories.browser_client import browser_client


@pytest.fixture
async def client(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[httpx.AsyncClient]:
    site = tmp_path / "site"
    (site / "learn").mkdir(parents=True)
    (site / "index.html").write_text("<!doctype html><title>Lockstep documentation</title>")
    (site / "learn" / "index.html").write_text("<!doctype html><title>Learn</title>")
    (tmp_path / "beside.html").write_text("not part of the site")
    monkeypatch.setattr(main, "DOCS", site)
    async with browser_client(main.create_app(settings)) as client:
        yield client


async def test_anyone_may_read_it_under_the_same_policy_as_pages(client: httpx.AsyncClient) -> None:
    start, page = await client.get("/docs/"), await client.get("/docs/learn/index.html")

    assert "Lockstep documentation" in start.text
    assert "Learn" in page.text
    policy = page.headers["content-security-policy"]
    assert policy == (await client.get("/en/")).headers["content-security-policy"]
    assert "unsafe-inline" not in policy


async def test_its_address_without_a_slash_leads_to_it(client: httpx.AsyncClient) -> None:
    answer = await client.get("/docs", follow_redirects=False)

    assert (answer.status_code, answer.headers["location"]) == (307, "/docs/")


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "OPTIONS"])
async def test_it_can_only_be_read(client: httpx.AsyncClient, method: str) -> None:
    assert (await client.request(method, "/docs/index.html")).status_code == 405
    assert (await client.head("/docs/index.html")).status_code == 200


@pytest.mark.parametrize(
    "path",
    ["../beside.html", "%2e%2e/beside.html", "learn/../../beside.html", "..%2fbeside.html", "//etc/passwd", "%00"],
)
async def test_nothing_beside_it_is_served(client: httpx.AsyncClient, path: str) -> None:
    answer = await client.get(f"http://test/docs/{path}")

    assert answer.status_code == 404
    assert "not part" not in answer.text


async def test_before_it_is_built_there_is_no_documentation(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(main, "DOCS", tmp_path / "nothing")
    async with browser_client(main.create_app(settings)) as client:
        assert (await client.get("/docs/")).status_code == 404


@pytest.mark.parametrize("built", [True, False])
async def test_pages_link_to_it_once_it_is_built(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, built: bool
) -> None:
    monkeypatch.setattr(assets, "DOCS", tmp_path)
    if built:
        (tmp_path / "index.html").write_text("<!doctype html>")

    async with browser_client(main.create_app(settings)) as client:
        page = (await client.get("/en/")).text

    assert ('href="/docs/"' in page) is built


@pytest.mark.parametrize(
    ("built", "words"),
    [
        (True, "Documentation: https://learn.example.org/docs/"),
        (False, "docs/index.md in the source of Lockstep. 'make docs' builds it for https://learn.example.org/docs/"),
    ],
)
def test_the_server_says_where_it_is_when_it_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, built: bool, words: str
) -> None:
    monkeypatch.setattr(assets, "DOCS", tmp_path)
    if built:
        (tmp_path / "index.html").write_text("<!doctype html>")

    assert serve._documentation("https://learn.example.org").endswith(words)
