"""Lessons over HTTP: pages that can be cached, sources, and files that cannot be escaped from."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest
from fastapi import FastAPI

from app.settings import Settings
from tests.factories.lesson_source import CELL, write_lesson

PAGE = "/en/courses/small/first"
SVG = b"<svg xmlns='http://www.w3.org/2000/svg'><script>alert(1)</script></svg>"


@pytest.fixture
def assets(settings: Settings) -> Path:
    folder = settings.lessons_dir / "small" / "first" / "assets"
    folder.mkdir()
    (folder / "x.svg").write_bytes(SVG)
    (folder / "page.html").write_text("<script>alert(1)</script>")
    (folder.parent / "secret.txt").write_text("secret")
    (folder / "way-out.txt").symlink_to(folder.parent / "secret.txt")
    return folder


@pytest.mark.parametrize("path", ["/en/", "/ko/", "/en/courses/small", PAGE, "/zh/courses/small/first"])
async def test_a_page_is_kept_until_its_content_changes(client: httpx.AsyncClient, path: str) -> None:
    first = await client.get(path)
    assert first.status_code == 200, first.text

    again = await client.get(path, headers={"if-none-match": first.headers["etag"]})

    assert again.status_code == 304
    assert again.content == b""


async def test_a_changed_lesson_is_another_page(client: httpx.AsyncClient, app: FastAPI, settings: Settings) -> None:
    before = await client.get(PAGE)
    write_lesson(settings.lessons_dir / "small" / "first", f"Other words.\n\n{CELL}")
    app.state.catalog.reload()

    after = await client.get(PAGE, headers={"if-none-match": before.headers["etag"]})

    assert after.status_code == 200
    assert "Other words." in after.text


async def test_the_lesson_page_has_its_prose_and_its_cells(client: httpx.AsyncClient) -> None:
    html = (await client.get(PAGE)).text

    assert "<p>Some prose.</p>" in html
    assert 'id="cell-hello"' in html
    assert 'data-topology="gpu:4"' in html
    assert "4 GPUs, simulated" in html


@pytest.mark.parametrize(
    "path", ["/en/courses/small/second", "/en/courses/none", "/en/courses/none/first", "/en/courses/none/first.md"]
)
async def test_what_does_not_exist_is_a_404_page_that_offers_the_outline(client: httpx.AsyncClient, path: str) -> None:
    response = await client.get(path, headers={"accept": "text/html"})

    assert response.status_code == 404
    assert f'href="{PAGE}"' in response.text


async def test_a_lesson_that_was_never_good_is_a_clear_503(
    client: httpx.AsyncClient, app: FastAPI, settings: Settings
) -> None:
    write_lesson(settings.lessons_dir / "small" / "second", "```{cod-cell}\nx\n```\n")
    toml = settings.lessons_dir / "small" / "course.toml"
    toml.write_text(toml.read_text().replace('["first"]', '["first", "second"]'))
    app.state.catalog.reload()

    response = await client.get("/en/courses/small/second", headers={"accept": "text/html"})

    assert response.status_code == 503
    assert "its file has an error" in response.text
    assert (await client.get(PAGE)).status_code == 200
    assert "Not available" in (await client.get("/en/courses/small")).text


async def test_the_source_is_the_file(client: httpx.AsyncClient, settings: Settings) -> None:
    response = await client.get(f"{PAGE}.md")

    assert response.headers["content-type"] == "text/markdown; charset=utf-8"
    assert response.text == (settings.lessons_dir / "small" / "first" / "lesson.md").read_text()
    assert (await client.get(f"{PAGE}.md", headers={"if-none-match": response.headers["etag"]})).status_code == 304


async def test_a_picture_is_sent_without_any_rights(client: httpx.AsyncClient, assets: Path) -> None:
    response = await client.get(f"{PAGE}/assets/x.svg")

    assert response.content == SVG
    assert response.headers["content-type"] == "image/svg+xml; charset=utf-8"
    assert response.headers["content-security-policy"].startswith("sandbox; default-src 'none'")
    again = await client.get(f"{PAGE}/assets/x.svg", headers={"if-none-match": response.headers["etag"]})
    assert again.status_code == 304


async def test_a_page_among_the_files_is_only_bytes(client: httpx.AsyncClient, assets: Path) -> None:
    response = await client.get(f"{PAGE}/assets/page.html")

    assert response.headers["content-type"] == "application/octet-stream"


@pytest.mark.parametrize(
    "name",
    [
        "none.png",
        "../secret.txt",
        "..%2fsecret.txt",
        "%2e%2e/secret.txt",
        "way-out.txt",
        "",
        ".hidden",
        "a//b",
        "/etc/passwd",
    ],
)
async def test_a_name_never_leads_out_of_the_folder(client: httpx.AsyncClient, assets: Path, name: str) -> None:
    response = await client.get(f"{PAGE}/assets/{name}")

    assert response.status_code == 404
    assert "secret" not in response.text.replace("secret.txt", "")
