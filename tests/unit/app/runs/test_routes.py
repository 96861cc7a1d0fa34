"""Addresses that were never given out are rejected without a query to the database."""

from __future__ import annotations

import httpx
import pytest

from tests.factories.browser_client import press_run
from tests.factories.scripted_supervisor import ScriptedSupervisor


@pytest.mark.parametrize("rest", ["", "/events", "/stream", "/displays/1"])
async def test_a_strange_id_is_a_run_that_does_not_exist(
    client: httpx.AsyncClient, supervisor: ScriptedSupervisor, rest: str
) -> None:
    await press_run(client)  # from here on the client is a visitor

    for run_id in ("%00", "a%00b", "x" * 65, "%F0%9F%98%80", "A-B"):
        answer = await client.get(f"/runs/{run_id}{rest}")
        assert (answer.status_code, answer.json()["error"]["code"]) == (404, "run_not_found"), run_id


@pytest.mark.parametrize("seq", ["0", "-1", "2147483648", "9" * 30, "one"])
async def test_a_display_has_a_number_that_an_event_can_have(
    client: httpx.AsyncClient, supervisor: ScriptedSupervisor, seq: str
) -> None:
    run = await press_run(client)

    assert (await client.get(f"/runs/{run['id']}/displays/{seq}")).status_code == 404


@pytest.mark.parametrize("lesson", ["a%00b", "x" * 201])
async def test_a_strange_lesson_has_no_runs(
    client: httpx.AsyncClient, supervisor: ScriptedSupervisor, lesson: str
) -> None:
    await press_run(client)

    assert (await client.get(f"/runs?lesson={lesson}")).status_code == 422
