"""Completion and documentation for the editor: whom it asks, what it refuses."""

from __future__ import annotations

from contextlib import aclosing
from typing import Any

import httpx
import pytest
from fastapi import FastAPI

from app.runs import introspection
from runners.wire.protocol import MAX_CODE_BYTES, CompletionMatch, Introspection, IntrospectionRequest
from tests.factories.browser_client import browser_client, press_run
from tests.factories.course import LESSON
from tests.factories.scripted_supervisor import ScriptedSupervisor

QUESTION = {"lesson": LESSON, "topology": "gpu:4", "keras": 3, "kind": "complete", "code": "tf.", "cursor": 3}
FOUND = Introspection(state="answered", start=3, matches=(CompletionMatch(text="<b>", kind="function"),))


async def ask(client: httpx.AsyncClient, **changed: Any) -> httpx.Response:
    return await client.post("/introspection", json=QUESTION | changed)


async def test_a_learners_own_kernel_is_asked(client: httpx.AsyncClient, supervisor: ScriptedSupervisor) -> None:
    supervisor.introspection = FOUND
    await press_run(client)
    answer = await ask(client)
    assert answer.json() == FOUND.model_dump(mode="json")
    assert answer.headers["cache-control"] == "no-store"
    assert supervisor.questions == [IntrospectionRequest(kind="complete", code="tf.", cursor=3)]


async def test_no_session_is_started_and_none_of_others_is_asked(
    app: FastAPI, client: httpx.AsyncClient, supervisor: ScriptedSupervisor
) -> None:
    await press_run(client)
    async with aclosing(browser_client(app)) as stranger:
        assert (await ask(stranger)).json()["state"] == "busy"
        assert "set-cookie" not in (await ask(stranger)).headers
    assert supervisor.questions == []
    assert len(supervisor.sessions) == 1


async def test_a_runner_that_is_away_is_no_error(client: httpx.AsyncClient, supervisor: ScriptedSupervisor) -> None:
    await press_run(client)
    await supervisor.stop()
    answer = await ask(client)
    assert (answer.status_code, answer.json()["state"]) == (200, "busy")


@pytest.mark.parametrize(
    ("changed", "status", "words"),
    [
        ({"lesson": "small/none"}, 404, ""),
        ({"topology": "gpu:8"}, 422, "This cannot run on gpu:8"),
        ({"keras": 4}, 422, "Keras 4"),
        ({"kind": "execute"}, 422, ""),
        ({"cursor": -1}, 422, ""),
        ({"cursor": MAX_CODE_BYTES + 1}, 422, ""),
        ({"more": 1}, 422, ""),
        ({"code": "x" * (MAX_CODE_BYTES + 1)}, 413, "the limit is 100,000"),
        ({"code": "\0"}, 422, "a character that Python cannot read"),
    ],
)
async def test_an_invalid_question_never_reaches_a_kernel(
    client: httpx.AsyncClient, supervisor: ScriptedSupervisor, changed: dict[str, Any], status: int, words: str
) -> None:
    await press_run(client)
    answer = await ask(client, **changed)
    assert answer.status_code == status
    assert words in answer.text
    assert supervisor.questions == []


async def test_a_flood_of_questions_is_refused_with_a_reason(
    client: httpx.AsyncClient, supervisor: ScriptedSupervisor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(introspection, "_PER_SECOND", 0.0)  # however long the questions take
    await press_run(client)
    statuses = [(await ask(client)).status_code for _ in range(50)]
    assert statuses[:40] == [200] * 40
    assert statuses[40:] == [429] * 10
    assert "asks for completions too often" in (await ask(client)).text
