from __future__ import annotations

import pytest
from fastapi import APIRouter
from starlette.routing import Mount, NoMatchFound, Route, Router

from app.main import create_app
from app.settings import Settings
from app.web.application import Application

router = APIRouter(prefix="/here")


@router.get("/things/{thing}/{seq:int}", name="thing")
@router.get("/all", name="all")
async def nothing() -> None: ...


def test_a_path_is_what_the_framework_would_make_of_it(settings: Settings) -> None:
    app = create_app(settings)
    asked = 0
    for route in app.router.routes:
        if isinstance(route, Route):
            parts = dict.fromkeys(route.param_convertors, "1")
            assert app.url_path_for(route.name, **parts) == Router([route]).url_path_for(route.name, **parts)
            asked += 1
    assert asked > 50


@pytest.mark.parametrize(
    ("name", "parts"),
    [("nothing", {}), ("thing", {}), ("thing", {"thing": "1"}), ("thing", {"thing": "1", "sec": 2}), ("all", {"a": 1})],
)
def test_a_name_or_parts_that_no_route_has_are_refused(name: str, parts: dict[str, object]) -> None:
    app = Application(routes=router.routes)

    with pytest.raises(NoMatchFound):
        app.url_path_for(name, **parts)


def test_a_part_that_would_lead_elsewhere_is_refused() -> None:
    app = Application(routes=router.routes)

    assert app.url_path_for("thing", thing="a", seq=2) == "/here/things/a/2"
    with pytest.raises(AssertionError):
        app.url_path_for("thing", thing="a/b", seq=2)


def test_a_name_that_two_routes_have_is_refused() -> None:
    with pytest.raises(ValueError, match="all"):
        Application(routes=[*router.routes, Route("/elsewhere", nothing, name="all")])


def test_what_is_mounted_is_found_too() -> None:
    app = Application(routes=[Mount("/static", Router([]), name="static")])

    assert app.url_path_for("static", path="/a.css") == "/static/a.css"
