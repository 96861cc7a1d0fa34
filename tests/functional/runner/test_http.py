"""The supervisor's HTTP: invalid ids, invalid numbers and large bodies."""

from __future__ import annotations

import asyncio
import json

import httpx
import pytest

from runners.wire.client import ResourceNotFound, RunnerClient
from runners.wire.protocol import Refusal
from tests.factories.real_supervisor import RealSupervisor, SessionClient

ODD = ["a b", "ü", "x" * 65, "a.b", "%00", "%2e%2e", "a%0a", "..%2f..", "{id}", "%ff"]


@pytest.fixture
def http(node: RealSupervisor) -> httpx.AsyncClient:
    transport = httpx.AsyncHTTPTransport(uds=str(node.socket))
    return httpx.AsyncClient(transport=transport, base_url="http://node", timeout=30)


@pytest.mark.parametrize("odd", ODD)
async def test_an_odd_id_is_refused(http: httpx.AsyncClient, odd: str) -> None:
    spec = json.dumps({"owner": "me"})
    async with http:
        for method, path in [
            ("GET", "/sessions/{}"),
            ("GET", "/owners/{}/sessions"),
            ("PUT", "/sessions/{}"),
            ("DELETE", "/sessions/{}"),
            ("POST", "/sessions/{}/interrupt"),
            ("POST", "/sessions/{}/restart"),
            ("POST", "/sessions/{}/keep"),
            ("GET", "/runs/{}/events"),
            ("POST", "/runs/{}/ack"),
            ("POST", "/runs/{}/stop"),
        ]:
            answer = await http.request(method, path.format(odd), content=spec)
            assert answer.status_code in (404, 422), (method, path, answer.text)


async def test_what_is_not_known_is_not_found(client: RunnerClient) -> None:
    for ask in (client.session, client.keep, client.restart, client.interrupt, client.end, client.stop):
        with pytest.raises(ResourceNotFound):
            await ask("nobody")


@pytest.mark.parametrize("after", ["x", "1.5", "", "9" * 5000])
async def test_an_invalid_number_is_rejected(http: httpx.AsyncClient, learner: SessionClient, after: str) -> None:
    told = await learner.run("1")
    async with http:
        answer = await http.get(f"/runs/{told.id}/events", params={"after": after})
    assert answer.status_code == 422
    assert Refusal.model_validate_json(answer.content).code == "invalid"


async def test_a_body_that_is_too_large_is_refused(http: httpx.AsyncClient) -> None:
    async with http:
        answer = await http.post("/runs", content=b"x" * 3_000_000)
    assert answer.status_code == 413


async def test_half_a_request_changes_nothing(node: RealSupervisor, client: RunnerClient) -> None:
    before = await client.health()
    _, writer = await asyncio.open_unix_connection(str(node.socket))
    writer.write(b"PUT /sessions/half HTTP/1.1\r\nhost: node\r\ncontent-length: 100\r\n\r\n{")
    await writer.drain()
    writer.close()
    await writer.wait_closed()

    with pytest.raises(ResourceNotFound):
        await client.session("half")
    assert (await client.health()).sessions == before.sessions
