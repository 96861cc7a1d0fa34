"""Objects shared within one process, by a typed name."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Annotated

import httpx
import pytest
from fastapi import Depends, FastAPI
from starlette.requests import Request

from app.settings import Settings
from app.web.dependencies import SETTINGS, AppKey, site_origin

TEA = AppKey[str]("tea")


async def test_a_route_gets_what_the_wiring_has_set() -> None:
    app = FastAPI()

    @app.get("/")
    async def tea(kind: Annotated[str, Depends(TEA.from_request)]) -> str:
        return kind

    assert TEA.set(app, "green") == "green"
    assert TEA.get(app) == "green"
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://test") as client:
        assert (await client.get("/")).json() == "green"


def test_what_was_never_set_is_an_error() -> None:
    with pytest.raises(AttributeError, match="tea"):
        TEA.get(FastAPI())


@pytest.mark.parametrize(
    ("public_url", "origin"),
    [("", "http://192.0.2.7:8000"), ("https://learn.example.org/", "https://learn.example.org")],
)
def test_links_to_this_site_begin_with_its_public_url_or_the_requests(public_url: str, origin: str) -> None:
    app = FastAPI()
    SETTINGS.set(app, Settings(public_url=public_url))
    scope = {"type": "http", "app": app, "scheme": "http", "path": "/en/", "query_string": b""}
    assert site_origin(Request({**scope, "headers": [(b"host", b"192.0.2.7:8000")]})) == origin


def test_only_app_keys_touch_the_state_of_the_application() -> None:
    found = [
        f"{file}:{node.lineno}"
        for file in sorted(Path("app").rglob("*.py"))
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.Attribute) and node.attr == "state" and ast.unparse(node.value).endswith("app")
    ]

    assert {place.partition(":")[0] for place in found} == {"app/web/dependencies.py"}
