"""The record of a feature, and how the application uses it."""

from __future__ import annotations

from pathlib import Path

import pytest
from fastapi import APIRouter

from app.feature import Feature
from app.main import FEATURES
from app.web.access import Access


def _router() -> APIRouter:
    router = APIRouter()

    @router.get("/tea", name="tea")
    async def tea() -> None: ...

    return router


def test_a_feature_says_who_may_open_each_of_its_routes() -> None:
    feature = Feature(name="tea", routers=(_router(),), access={"tea": Access.public})

    assert [getattr(route, "path", "") for route in feature.routes] == ["/tea"]
    assert feature.access == {"tea": Access.public}


@pytest.mark.parametrize("access", [{}, {"tea": Access.public, "coffee": Access.public}])
def test_a_feature_cannot_leave_out_a_route_or_name_one_it_does_not_have(access: dict[str, Access]) -> None:
    with pytest.raises(ValueError, match=r"feature tea: 'access' and the routes do not match: (tea|coffee)"):
        Feature(name="tea", routers=(_router(),), access=access)


def test_every_record_is_collected_once() -> None:
    packages = {file.parent.name for file in Path("app").glob("*/feature.py")}

    assert sorted(feature.name for feature in FEATURES) == sorted(packages)


def test_no_two_features_claim_the_same_route_export_or_kind_of_notification() -> None:
    routes = [name for feature in FEATURES for name in feature.access]
    exports = [name for feature in FEATURES for name in feature.exporters]

    assert len(routes) == len(set(routes))
    assert len(exports) == len(set(exports))
