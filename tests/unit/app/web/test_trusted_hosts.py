"""Names in the Host header: the site's own, and addresses for probes."""

from __future__ import annotations

import httpx
import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from app.web.trusted_hosts import TrustedHosts, is_address


async def status(path: str, host: str) -> int:
    routes = [Route(each, lambda _: PlainTextResponse("ok")) for each in ("/healthz", "/page")]
    names = Middleware(TrustedHosts, names=["learn.example.org"], by_address=["/healthz"])
    transport = httpx.ASGITransport(Starlette(routes=routes, middleware=[names]))
    async with httpx.AsyncClient(transport=transport, base_url="http://x") as client:
        return (await client.get(path, headers={"host": host})).status_code


@pytest.mark.parametrize("host", ["10.0.0.5", "10.0.0.5:8000", "[fd00::5]", "[fd00::5]:8000"])
async def test_a_probe_gets_the_health_of_the_site_by_address_and_nothing_else(host: str) -> None:
    assert await status("/healthz", host) == 200
    assert await status("/page", host) == 400


@pytest.mark.parametrize("path", ["/healthz", "/page"])
async def test_a_name_of_another_site_gets_nothing_and_the_own_name_everything(path: str) -> None:
    assert await status(path, "evil.test") == 400
    assert await status(path, "10.0.0.5.evil.test") == 400
    assert await status(path, "learn.example.org:443") == 200


@pytest.mark.parametrize(
    "host", ["", "localhost", "[", "[::1", "10.0.0.5@evil.test", "evil.test#10.0.0.5", "1.2.3", "a:b"]
)
def test_what_is_not_exactly_an_address_is_a_name(host: str) -> None:
    assert not is_address(host)
