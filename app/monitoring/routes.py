"""The only route behind the port of the metrics."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from itertools import chain

from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from app.monitoring.counted import counted_metrics
from app.monitoring.site_metrics import SiteState, site_metrics

LookAtSite = Callable[[], Awaitable[SiteState]]


class _AllMetrics(Collector):
    def __init__(self, site: SiteState) -> None:
        self._site = site

    def collect(self) -> Iterator[Metric]:
        return chain(counted_metrics(), site_metrics(self._site))


def metrics_app(look_at_site: LookAtSite) -> Starlette:
    """The application behind the port."""
    one_at_a_time = asyncio.Lock()

    async def metrics(request: Request) -> Response:
        async with one_at_a_time:
            site = await look_at_site()
        encode, content_type = choose_encoder(request.headers.get("accept", ""))
        return Response(encode(_AllMetrics(site)), media_type=content_type)

    return Starlette(routes=[Route("/metrics", metrics)])
