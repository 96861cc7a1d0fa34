"""Static files: addresses that change with the content."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import httpx
import pytest

from app.errors import NotFound
from app.web.assets import Assets
from app.web.error_handlers import ErrorHandlers


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "static"
    (folder / "dist").mkdir(parents=True)
    (folder / "dist" / "app.css").write_text("body { color: black }\n" * 100)
    (folder / "dist" / "chunk-ABCD1234.js").write_text("1")
    (folder / "dist" / "logo.svg").write_text("<svg/>")
    (tmp_path / "secret").write_text("secret")
    (folder / "link").symlink_to(tmp_path / "secret")
    return folder


@pytest.fixture
def client(root: Path) -> httpx.AsyncClient:
    return httpx.AsyncClient(transport=httpx.ASGITransport(ErrorHandlers(Assets(root, url=""))), base_url="http://test")


async def test_an_address_with_its_version_is_kept_for_ever(root: Path, client: httpx.AsyncClient) -> None:
    address = Assets(root, url="").address("dist/app.css")

    response = await client.get(address)

    assert "?v=" in address
    assert "immutable" in response.headers["cache-control"]
    assert response.headers["content-type"].startswith("text/css")


async def test_the_address_changes_with_the_content(root: Path) -> None:
    assets = Assets(root)
    before = assets.address("dist/app.css")
    (root / "dist" / "app.css").write_text("body { color: white }")

    assert assets.address("dist/app.css") != before


@pytest.mark.parametrize("query", ["", "?v=old"])
async def test_without_its_version_a_file_is_asked_for_again(client: httpx.AsyncClient, query: str) -> None:
    first = await client.get(f"/dist/app.css{query}")
    again = await client.get(f"/dist/app.css{query}", headers={"if-none-match": first.headers["etag"]})

    assert "no-cache" in first.headers["cache-control"]
    assert (again.status_code, again.content) == (304, b"")


async def test_the_address_of_a_file_whose_name_holds_a_hash_is_that_of_the_build(
    root: Path, client: httpx.AsyncClient
) -> None:
    assets = Assets(root, url="")
    (root / "dist" / "chunk-notahash.js").write_text("2")

    address = assets.address("dist/chunk.js")
    response = await client.get(address)

    assert address == "/dist/chunk-ABCD1234.js"
    assert "immutable" in response.headers["cache-control"]

    (root / "dist" / "chunk-ABCD1234.js").rename(root / "dist" / "chunk-DCBA4321.js")
    assert assets.address("dist/chunk.js") == "/dist/chunk-DCBA4321.js"
    assert assets.address("dist/missing.js") == "/dist/missing.js"


async def test_a_name_that_holds_a_hash_is_kept_for_ever(client: httpx.AsyncClient) -> None:
    assert "immutable" in (await client.get("/dist/chunk-ABCD1234.js")).headers["cache-control"]


async def test_text_is_sent_compressed_to_whoever_can_read_it(client: httpx.AsyncClient, root: Path) -> None:
    whole = (root / "dist" / "app.css").read_text()
    for encoding, expected in (("gzip", "gzip"), ("identity", None)):
        response = await client.get("/dist/app.css", headers={"accept-encoding": encoding})
        assert response.headers.get("content-encoding") == expected
        assert response.text == whole


async def test_what_the_build_has_compressed_is_sent_unless_the_file_is_newer(
    client: httpx.AsyncClient, root: Path
) -> None:
    file, compressed = root / "dist" / "app.css", root / "dist" / "app.css.br"
    compressed.write_bytes(b"smaller")
    for encoding, expected in (("gzip, br", "br"), ("br", "br"), ("gzip", "gzip"), ("identity", None)):
        async with client.stream("GET", "/dist/app.css", headers={"accept-encoding": encoding}) as response:
            assert response.headers.get("content-encoding") == expected
            assert ([part async for part in response.aiter_raw()] == [b"smaller"]) == (expected == "br")

    file.write_text(file.read_text() + " /* later */")
    os.utime(compressed, ns=(0, file.stat().st_mtime_ns - 1))

    response = await client.get("/dist/app.css", headers={"accept-encoding": "gzip, br"})
    assert response.text.endswith("/* later */")


@pytest.mark.parametrize("name", ["app.css", "chunk-ABCD1234.js", "logo.svg"])
async def test_a_file_of_text_names_its_encoding(client: httpx.AsyncClient, name: str) -> None:
    assert (await client.get(f"/dist/{name}")).headers["content-type"].endswith("; charset=utf-8")


@pytest.mark.parametrize(
    "path", ["/nothing", "/../secret", "/%2e%2e/secret", "/dist", "/", "/link", "/dist/%00", "/" + "x" * 5000]
)
async def test_nothing_outside_the_folder_is_served(client: httpx.AsyncClient, path: str) -> None:
    response = await client.get(path)

    assert response.status_code == 404
    assert "secret" not in response.text


@pytest.mark.parametrize(
    "path",
    ["/dist//app.css", "//dist/app.css", "/./dist/app.css", "/dist/./app.css", "/zz/../dist/app.css", "/dist/app.css/"],
)
async def test_a_file_has_one_address_only(root: Path, path: str) -> None:
    assets = Assets(root, url="")
    scope = {"type": "http", "method": "GET", "path": path, "query_string": b"", "headers": []}

    for address in (path, f"/{assets._root}/dist/app.css", f"//{assets._root}/dist/app.css"):
        with pytest.raises(NotFound):
            await assets(scope | {"path": address}, _nothing, _nothing)
    assert assets._files == {}


async def _nothing(*_: Any) -> Any:
    raise AssertionError("nothing is received or sent")


async def test_an_index_is_served_for_the_address_of_its_folder(root: Path) -> None:
    (root / "learn").mkdir()
    for page in ("index.html", "learn/index.html"):
        (root / page).write_text(page)
    site = ErrorHandlers(Assets(root, url="", index="index.html"))
    client = httpx.AsyncClient(transport=httpx.ASGITransport(site), base_url="http://test")

    assert (await client.get("/")).text == "index.html"
    assert (await client.get("/learn/")).text == "learn/index.html"
    assert (await client.get("/learn/")).headers["content-type"].startswith("text/html")
    (root.parent / "index.html").write_text("beside the folder")
    for path in ("/dist/", "/learn", "/learn//", "/%2e%2e/", "/learn/%2e%2e/%2e%2e/"):
        assert (await client.get(path)).status_code == 404
