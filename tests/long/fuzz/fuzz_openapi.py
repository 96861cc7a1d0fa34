"""What the application's description of itself allows, and what it does not: no answer says that the server failed.

Schemathesis reads the description and draws requests from it: valid ones, which get past the door of a route into what
it does, and ones with one thing wrong. ``test_any_request`` knows no description and asks for anything at all.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

import httpx
import pytest
import schemathesis
from fastapi import FastAPI
from requests import PreparedRequest, Request
from schemathesis import GenerationMode
from schemathesis.core.result import Ok

from app.accounts.models import Role
from app.main import create_app
from app.settings import Settings
from tests.factories.accounts import signed_in_browser
from tests.factories.browser_client import ORIGIN, browser_client
from tests.factories.course import LESSON
from tests.factories.hypothesis_examples import fixed_examples
from tests.factories.routes import ENDLESS, path_parameters
from tests.factories.scripted_supervisor import ScriptedSupervisor

EXAMPLES = {GenerationMode.POSITIVE: 4, GenerationMode.NEGATIVE: 3}
"""For each operation, each of whoever asks."""
LONGEST_ADDRESS = 60_000
"""Characters; the client refuses to send a longer one, with what the application's address adds."""
WHO = ["stranger", *Role]
THERE = {"lang": ["en", "ko", "zh"], "lesson": [LESSON], "cell": ["", "hello"], "topology": ["gpu:4"]} | {
    name: [f"there-{name}"] for name in ("course", "slug", "comment_id", "run_id", "handle")
}
"""What is there to be named, as the description cannot know: ``there-…`` until the application has it."""


@dataclass(frozen=True)
class Asked:
    """A request, and its operation."""

    operation: str
    mode: GenerationMode
    request: PreparedRequest

    async def of(self, client: httpx.AsyncClient, parts: dict[str, str]) -> httpx.Response:
        """Send a request for existing objects."""
        address = str(self.request.url)
        for name in THERE:
            address = address.replace(f"there-{name}", parts.get(name, ""))
        headers = {
            name: value if isinstance(value, str) else value.decode()
            for name, value in self.request.headers.items()
            if name.lower() in ("content-type", "last-event-id")
        }
        body = self.request.body
        assert body is None or isinstance(body, str | bytes)
        return await client.request(str(self.request.method), address, headers=headers, content=body)


def described(app: FastAPI) -> dict[str, Any]:
    """The schema, without endless responses, and with the existing objects to name."""
    told = copy.deepcopy(app.openapi())
    for path, operations in list(told["paths"].items()):
        for method, operation in list(operations.items()):
            if any(operation["operationId"].startswith(f"{name}_") for name in ENDLESS):
                del told["paths"][path][method]
            for parameter in operation.get("parameters", ()):
                if parameter["name"] in THERE:
                    parameter["schema"] = {"type": "string", "enum": THERE[parameter["name"]]}
    return told


def asked_of(told: dict[str, Any]) -> Iterator[Asked]:
    """Requests, always the same."""
    for found in schemathesis.openapi.from_dict(told).get_all_operations():
        assert isinstance(found, Ok)
        operation = found.ok()
        raw = told["paths"][operation.path][operation.method]
        for mode, number in EXAMPLES.items():
            if mode is GenerationMode.NEGATIVE and not (raw.get("parameters") or raw.get("requestBody")):
                continue  # nothing can be wrong with it
            for case in fixed_examples(operation.as_strategy(generation_mode=mode), number):
                said = case.as_transport_kwargs(base_url=ORIGIN)
                said.pop("timeout", None)
                request = Request(**said).prepare()
                if len(str(request.url)) < LONGEST_ADDRESS:
                    yield Asked(operation.label, mode, request)


@pytest.fixture(scope="module")
def everything(tmp_path_factory: pytest.TempPathFactory) -> list[Asked]:
    """The requests that everybody sends."""
    return list(asked_of(described(create_app(Settings(data_dir=tmp_path_factory.mktemp("nothing"))))))


@pytest.mark.parametrize("who", WHO)
async def test_what_is_described_never_makes_the_server_fail(
    app: FastAPI, supervisor: ScriptedSupervisor, everything: list[Asked], who: str
) -> None:
    parts = await path_parameters(app)
    statuses: dict[GenerationMode, set[int]] = {mode: set() for mode in GenerationMode}
    failed = []
    for operation in dict.fromkeys(one.operation for one in everything):
        async with aclosing(browser_client(app) if who == "stranger" else await signed_in_browser(app, who)) as client:
            for one in everything:
                if one.operation == operation:
                    answer = await one.of(client, parts)
                    statuses[one.mode].add(answer.status_code)
                    if answer.status_code >= 500:
                        failed.append((one.operation, answer.status_code, one.request.url, one.request.body))
    assert failed == []
    assert statuses[GenerationMode.POSITIVE] >= {200, 303, 404}, "what is allowed goes past the door"
    assert statuses[GenerationMode.NEGATIVE] >= {404, 422}, "what is not is refused"
