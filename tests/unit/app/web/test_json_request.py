"""JSON from browsers: unknown fields are refused, and thousands of them at once."""

from __future__ import annotations

import httpx
import pytest
from pydantic import ValidationError

from app.runs.views import RunIn
from app.web.json_request import MAX_FIELDS
from tests.factories.scripted_supervisor import ScriptedSupervisor

RUN = {"lesson": "small/first", "cell": "hello", "code": "print(1)"}


def test_each_unknown_field_is_named() -> None:
    with pytest.raises(ValidationError) as refused:
        RunIn.model_validate(RUN | {"xp": 9, "owner": "ada"})

    assert [error["loc"] for error in refused.value.errors()] == [("xp",), ("owner",)]


def test_many_fields_are_one_mistake() -> None:
    with pytest.raises(ValidationError) as refused:
        RunIn.model_validate(RUN | {str(number): 1 for number in range(100_000)})

    assert refused.value.error_count() == 1


async def test_whoever_sends_many_fields_reads_how_many_are_allowed(
    client: httpx.AsyncClient, supervisor: ScriptedSupervisor
) -> None:
    answer = await client.post("/runs", json={str(number): 1 for number in range(MAX_FIELDS + 1)})

    assert answer.status_code == 422
    assert "a request can have at most 40 fields" in answer.json()["error"]["message"]
