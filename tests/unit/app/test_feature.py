"""The record of a feature, and how the application uses it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from fastapi import APIRouter

from app.feature import Feature
from app.main import FEATURES
from app.web.access import Access, access_of


def _router(of_router: Sequence[Access], of_route: Sequence[Access]) -> APIRouter:
    router = APIRouter(tags=[*of_router])

    @router.get("/tea", name="tea", tags=[*of_route])
    async def tea() -> None: ...

    return router


@pytest.mark.parametrize(("of_router", "of_route"), [([Access.admin], []), ([], [Access.admin])])
def test_a_route_or_its_router_says_who_may_use_it(of_router: Sequence[Access], of_route: Sequence[Access]) -> None:
    feature = Feature(name="tea", routers=(_router(of_router, of_route),))

    assert [access_of(route) for route in feature.routes] == [Access.admin]


@pytest.mark.parametrize("of_router", [[], [Access.public]])
def test_a_route_has_exactly_one_access(of_router: Sequence[Access]) -> None:
    with pytest.raises(ValueError, match="the route tea needs exactly one Access among its tags"):
        Feature(name="tea", routers=(_router(of_router, of_router),))


def test_every_record_is_collected_once() -> None:
    packages = {file.parent.name for file in Path("app").glob("*/feature.py")}

    assert sorted(feature.name for feature in FEATURES) == sorted(packages)


def test_no_two_features_claim_the_same_export() -> None:
    exports = [name for feature in FEATURES for name in feature.exporters]

    assert len(exports) == len(set(exports))
