"""Exercises over HTTP: submitted, judged by a scripted supervisor, awarded once, and shown to nobody else."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator
from typing import Any
from unittest.mock import Mock

import httpx
import pytest
from fastapi import FastAPI
from sqlalchemy import func, select

from app.accounts.merge import merge_visitor
from app.db import Database
from app.exercises.models import Submission
from app.feedback.models import ProblemReport
from app.main import create_app
from app.progress.models import LedgerEntry
from app.runs import event_log, judgements
from app.runs.dispatcher import DISPATCHER
from app.runs.errors import AddressLimitReached
from app.runs.models import Run, RunEvent
from app.runs.personal_data import move_runs
from app.runs.quotas import QuotaLimits
from app.settings import Settings
from tests.factories.accounts import signed_in_browser, store_account
from tests.factories.browser_client import browser_client
from tests.factories.course import LESSON
from tests.factories.judged_lesson import CHECKS_SOURCE, DIAGNOSIS, FACTOR, SHAPE, SOLUTION, add_exercise
from tests.factories.scripted_supervisor import ScriptedRun, ScriptedSupervisor
from tests.factories.stored_runs import store_run

PANEL = "/en/courses/small/first/exercises/double"
MINE = "def double(x):\n    return x + x"


@pytest.fixture
async def app(settings: Settings) -> AsyncIterator[FastAPI]:
    app = create_app(settings)
    add_exercise(app)
    async with app.router.lifespan_context(app):
        yield app


async def submit(client: httpx.AsyncClient, code: str = MINE, key: str = "", panel: str = PANEL) -> httpx.Response:
    return await client.post(f"{panel}/submissions", json={"code": code, "key": key or str(uuid.uuid4())})


async def submitted(client: httpx.AsyncClient, code: str = MINE, **more: str) -> dict[str, Any]:
    response = await submit(client, code, **more)
    assert response.status_code == 202, response.text
    run: dict[str, Any] = response.json()
    return run


async def say(
    supervisor: ScriptedSupervisor, run: ScriptedRun, name: str, outcome: str = "passed", **more: Any
) -> None:
    await supervisor.emit(run, kind="check", name=name, outcome=outcome, **more)


async def judge(
    supervisor: ScriptedSupervisor, run_id: str, *outcomes: tuple[str, str], end: str = "ok", **more: Any
) -> ScriptedRun:
    run = await supervisor.run(run_id)
    await supervisor.emit(run, kind="started")
    for name, outcome in outcomes:
        await say(supervisor, run, name, outcome, **more)
    await supervisor.finish(run, end)
    return run


async def ended(client: httpx.AsyncClient, run_id: str) -> dict[str, Any]:
    """The run once its end is stored."""
    async with asyncio.timeout(20), client.stream("GET", f"/runs/{run_id}/stream") as stream:
        async for _line in stream.aiter_lines():
            pass
    run: dict[str, Any] = (await client.get(f"/runs/{run_id}")).json()
    assert run["state"] == "finished"
    return run


async def attempt(
    client: httpx.AsyncClient, supervisor: ScriptedSupervisor, *outcomes: tuple[str, str], code: str = MINE, **more: Any
) -> str:
    run = await submitted(client, code)
    await judge(supervisor, run["id"], *outcomes, **more)
    await ended(client, run["id"])
    return str(run["id"])


async def passes(client: httpx.AsyncClient, supervisor: ScriptedSupervisor) -> str:
    return await attempt(client, supervisor, (FACTOR, "passed"), (SHAPE, "passed"))


async def fails(client: httpx.AsyncClient, supervisor: ScriptedSupervisor) -> str:
    return await attempt(client, supervisor, (FACTOR, "failed"), (SHAPE, "passed"))


async def verdict(app: FastAPI, run_id: str) -> str | None:
    async with app.state.db.session() as session:
        submission: Submission = await session.get_one(Submission, run_id)
        return submission.verdict


async def ledger(app: FastAPI, *kinds: str) -> dict[tuple[str, str], int]:
    async with app.state.db.session() as session:
        entries = await session.scalars(select(LedgerEntry).where(LedgerEntry.kind.in_(kinds)))
        return {(entry.kind, entry.subject): entry.xp for entry in entries}


# --- one judgement ----------------------------------------------------------------------------------------------------


async def test_the_supervisor_gets_what_judges_the_submission(
    client: httpx.AsyncClient, supervisor: ScriptedSupervisor
) -> None:
    run = await submitted(client)
    request = (await supervisor.run(run["id"])).request

    assert request.code == MINE
    assert request.session == run["id"]
    assert request.judgement is not None
    assert request.judgement.solution == SOLUTION
    assert request.judgement.checks == CHECKS_SOURCE
    assert [needed.name for needed in request.judgement.needs] == ["alone"]


async def test_a_pass_is_worth_its_checks_and_the_exercise_once(
    app: FastAPI, client: httpx.AsyncClient, supervisor: ScriptedSupervisor
) -> None:
    first = await passes(client, supervisor)
    await passes(client, supervisor)

    assert await verdict(app, first) == "passed"
    assert await ledger(app, "check", "exercise") == {
        ("check", f"{LESSON}#double/{FACTOR}"): 15,
        ("check", f"{LESSON}#double/{SHAPE}"): 5,
        ("exercise", f"{LESSON}#double"): 20,
    }


async def test_a_failed_try_keeps_the_worth_of_the_checks_that_passed(
    app: FastAPI, client: httpx.AsyncClient, supervisor: ScriptedSupervisor
) -> None:
    assert await verdict(app, await fails(client, supervisor)) == "failed"
    assert await ledger(app, "check", "exercise") == {("check", f"{LESSON}#double/{SHAPE}"): 5}


async def test_a_judgement_earns_nothing_as_a_run_of_its_cell_and_does_not_replace_it(
    app: FastAPI, client: httpx.AsyncClient, supervisor: ScriptedSupervisor
) -> None:
    await passes(client, supervisor)

    assert await ledger(app, "cell", "strategy", "topology", "own") == {}
    assert (await client.get("/runs", params={"lesson": LESSON})).json() == {"runs": []}


async def test_a_pass_stays_whatever_comes_later(client: httpx.AsyncClient, supervisor: ScriptedSupervisor) -> None:
    await passes(client, supervisor)
    await fails(client, supervisor)

    panel = (await client.get(PANEL)).text
    assert 'data-passed="yes"' in panel
    assert 'data-verdict="failed"' in panel


async def test_got_and_wanted_and_the_diagnosis_are_shown(
    client: httpx.AsyncClient, supervisor: ScriptedSupervisor
) -> None:
    said: dict[str, Any] = {
        "message": DIAGNOSIS,
        "values": {"verb": "<b>tripled</b>"},
        "got": "[3 & 6]",
        "wanted": "[2 4]",
    }
    await attempt(client, supervisor, (FACTOR, "failed"), **said)

    panel = (await client.get(PANEL)).text
    assert "It was &lt;b&gt;tripled&lt;/b&gt;, not doubled." in panel
    assert "[3 &amp; 6]" in panel
    assert "[2 4]" in panel


# --- what costs no try ------------------------------------------------------------------------------------------------


async def test_two_presses_are_one_submission(
    app: FastAPI, client: httpx.AsyncClient, supervisor: ScriptedSupervisor
) -> None:
    await client.post("/en/session", params={"lesson": LESSON})  # one visitor
    runs = await asyncio.gather(*(submitted(client) for _ in range(5)))

    assert len({run["id"] for run in runs}) == 1
    async with app.state.db.session() as session:
        assert await session.scalar(select(func.count()).select_from(Submission)) == 1
        assert await session.scalar(select(func.count()).select_from(Run).where(Run.judgement.is_(True))) == 1


async def test_a_press_whose_answer_was_lost_is_judged_once(
    client: httpx.AsyncClient, supervisor: ScriptedSupervisor
) -> None:
    key = str(uuid.uuid4())
    first = await submitted(client, key=key)
    await judge(supervisor, first["id"], (FACTOR, "failed"))
    await ended(client, first["id"])

    again = await submitted(client, key=key)

    assert again["id"] == first["id"]
    assert again["state"] == "finished"


async def test_a_press_that_is_sent_again_after_signing_in_is_judged_once(
    app: FastAPI, client: httpx.AsyncClient, supervisor: ScriptedSupervisor
) -> None:
    key = str(uuid.uuid4())
    first = await submitted(client, key=key)
    await judge(supervisor, first["id"], (FACTOR, "failed"))
    await ended(client, first["id"])
    account = await store_account(app.state.db)
    async with app.state.db.writing() as session:
        visitor = (await session.get_one(Run, first["id"])).learner_id
        await merge_visitor(session, visitor, await session.merge(account), (move_runs,))

    async with await signed_in_browser(app, account) as browser:
        assert (await submitted(browser, key=key))["id"] == first["id"]


@pytest.mark.parametrize("limit", ["too many runs", "too much stored", "too many at the address"])
async def test_a_press_that_is_repeated_is_answered_whatever_limit_was_reached_since(
    app: FastAPI,
    client: httpx.AsyncClient,
    supervisor: ScriptedSupervisor,
    monkeypatch: pytest.MonkeyPatch,
    limit: str,
) -> None:
    key = str(uuid.uuid4())
    first = await submitted(client, key=key)
    dispatcher = DISPATCHER.get(app)
    if limit == "too many runs":
        monkeypatch.setattr(dispatcher, "_max_unfinished", 1)
    elif limit == "too much stored":
        monkeypatch.setattr(dispatcher.quotas, "limits", QuotaLimits(visitor=1, address=1))
    else:
        monkeypatch.setattr(dispatcher, "admit", Mock(side_effect=AddressLimitReached(most=1)))

    assert (await submitted(client, key=key))["id"] == first["id"]
    assert (await client.post("/runs", json={"lesson": LESSON, "cell": "alone", "code": "1"})).status_code == 429


async def test_without_a_runner_there_is_a_sentence_and_no_try(app: FastAPI, client: httpx.AsyncClient) -> None:
    response = await submit(client)

    assert response.status_code == 503
    assert "Nothing ran" in response.json()["error"]["message"]
    async with app.state.db.session() as session:
        assert await session.scalar(select(func.count()).select_from(Submission)) == 0
    assert 'data-running=""' in (await client.get(PANEL)).text


@pytest.mark.parametrize("end", ["interrupted", "lost"])
async def test_a_judgement_that_does_not_end_is_no_try(
    app: FastAPI, client: httpx.AsyncClient, supervisor: ScriptedSupervisor, end: str
) -> None:
    run_id = await attempt(client, supervisor, (FACTOR, "failed"), end=end)

    assert await verdict(app, run_id) == "lost"
    assert "after 3 more failed tries" in (await client.get(PANEL)).text


async def test_a_runner_that_forgets_a_judgement_costs_no_try(
    app: FastAPI, client: httpx.AsyncClient, supervisor: ScriptedSupervisor
) -> None:
    run = await submitted(client)
    await supervisor.run(run["id"])
    await supervisor.restart()
    await ended(client, run["id"])

    assert await verdict(app, run["id"]) == "lost"


async def test_a_judgement_goes_on_when_the_web_process_restarts(
    settings: Settings, supervisor: ScriptedSupervisor
) -> None:
    app = create_app(settings)
    add_exercise(app)
    async with app.router.lifespan_context(app), browser_client(app) as client:
        run = await submitted(client)
        cookies = client.cookies
    again = create_app(settings)
    add_exercise(again)
    async with again.router.lifespan_context(again), browser_client(again) as client:
        client.cookies = cookies
        assert f'data-running="{run["id"]}"' in (await client.get(PANEL)).text
        await judge(supervisor, run["id"], (FACTOR, "passed"), (SHAPE, "passed"))
        await ended(client, run["id"])
        assert await verdict(again, run["id"]) == "passed"


async def test_a_submission_for_an_exercise_that_is_gone_is_lost(
    settings: Settings, supervisor: ScriptedSupervisor
) -> None:
    app = create_app(settings)  # its lesson has no exercise
    db = Database(settings.database)
    run_id = await store_run(db, cell="double", judgement=True)
    async with db.writing() as session:
        session.add(Submission(run_id=run_id, idempotency_key="k", results="[]", lesson_digest="d"))
    await db.close()

    async with app.router.lifespan_context(app), asyncio.timeout(20):
        with app.state.bus.subscribe(event_log.run_topic(run_id)) as stored:
            while await verdict(app, run_id) is None:
                await stored.wait(0.1)

        assert await verdict(app, run_id) == "lost"
    assert run_id not in supervisor.runs


async def test_an_exercise_that_goes_while_it_is_submitted_leaves_no_try(
    app: FastAPI, client: httpx.AsyncClient, supervisor: ScriptedSupervisor, monkeypatch: pytest.MonkeyPatch
) -> None:
    def gone(_lesson: object, _cell: object) -> None:
        raise judgements.ExerciseGone

    monkeypatch.setattr(judgements, "judgement_of", gone)

    assert (await submit(client)).status_code == 404
    async with app.state.db.session() as session:
        assert await session.scalar(select(func.count()).select_from(Submission)) == 0


async def test_a_check_that_fails_itself_costs_nothing_and_reaches_the_instructors_alone(
    app: FastAPI, client: httpx.AsyncClient, supervisor: ScriptedSupervisor
) -> None:
    for _ in range(2):
        run_id = await attempt(client, supervisor, (FACTOR, "fault"), detail="Traceback: the secret line")

    assert await verdict(app, run_id) == "fault"
    async with app.state.db.session() as session:
        reports = (await session.scalars(select(ProblemReport))).all()
        payloads = (await session.scalars(select(RunEvent.payload))).all()
    assert [(report.lesson, report.cell) for report in reports] == [(LESSON, "double")]
    assert "the secret line" in reports[0].text
    assert "the secret line" not in "".join(payloads)
    panel = (await client.get(PANEL)).text
    assert "the secret line" not in panel
    assert "This is not your fault" in panel
    assert "after 3 more failed tries" in panel


async def test_submissions_cannot_fill_the_instructors_inbox(
    app: FastAPI, client: httpx.AsyncClient, supervisor: ScriptedSupervisor
) -> None:
    """The text of an error may come from a submission; where it happened does not."""
    for line, returned in ((3, "one"), (3, "two"), (4, "three")):
        detail = f'Traceback:\n  File "checks.py", line {line}, in check\n    got["a"]\nKeyError: {returned!r}'
        await attempt(client, supervisor, (FACTOR, "fault"), detail=detail)

    async with app.state.db.session() as session:
        assert await session.scalar(select(func.count()).select_from(ProblemReport)) == 2


async def test_another_exercise_waits_for_the_first(
    client: httpx.AsyncClient, supervisor: ScriptedSupervisor, app: FastAPI
) -> None:
    run = await submitted(client)
    async with app.state.db.writing() as session:
        (await session.get_one(Run, run["id"])).cell = "alone"

    response = await submit(client)

    assert response.status_code == 409
    assert "“On one CPU”" in response.json()["error"]["message"]


async def test_too_many_checks_are_slowed_down(
    client: httpx.AsyncClient, supervisor: ScriptedSupervisor, monkeypatch: pytest.MonkeyPatch
) -> None:
    from app.exercises import submissions
    from app.rate_limit import RateLimitPolicy

    monkeypatch.setattr(submissions, "CHECKS_PER_LEARNER", RateLimitPolicy(free_attempts=1, initial_delay_s=60))
    await fails(client, supervisor)

    response = await submit(client)

    assert response.status_code == 429
    assert "Wait" in response.json()["error"]["message"]


# --- what nobody else sees, and what is not seen too early ------------------------------------------------------------


async def test_another_learner_sees_neither_tries_nor_verdicts(
    client: httpx.AsyncClient, stranger: httpx.AsyncClient, supervisor: ScriptedSupervisor
) -> None:
    run_id = await passes(client, supervisor)
    await stranger.post("/en/session", params={"lesson": LESSON})

    assert (await client.get(f"{PANEL}/tries/{run_id}")).status_code == 200
    for path in (f"{PANEL}/tries/{run_id}", f"/runs/{run_id}", f"/runs/{run_id}/events", f"/runs/{run_id}/stream"):
        assert (await stranger.get(path)).status_code == 404, path
    panel = (await stranger.get(PANEL)).text
    assert run_id not in panel
    assert 'data-passed="no"' in panel


async def test_the_solution_opens_after_three_failed_tries(
    client: httpx.AsyncClient, supervisor: ScriptedSupervisor
) -> None:
    for left in (3, 2, 1):
        response = await client.get(f"{PANEL}/solution")
        assert response.status_code == 403
        assert "secret" not in response.text
        assert f"after {left} more failed" in (await client.get(PANEL)).text
        await fails(client, supervisor)

    solution = (await client.get(f"{PANEL}/solution")).text
    assert "the secret" in solution
    assert "Because two." in solution
    assert '<span class="removed">− ' in solution


async def test_the_solution_opens_with_a_pass(client: httpx.AsyncClient, supervisor: ScriptedSupervisor) -> None:
    await passes(client, supervisor)

    assert "the secret" in (await client.get(f"{PANEL}/solution")).text


async def test_nothing_that_a_learner_gets_before_holds_a_secret(
    client: httpx.AsyncClient, supervisor: ScriptedSupervisor
) -> None:
    run_id = await fails(client, supervisor)
    lesson = "/en/courses/small/first"
    for path in (
        lesson,
        PANEL,
        f"{lesson}/work",
        f"{PANEL}/tries/{run_id}",
        f"/runs/{run_id}",
        f"/runs/{run_id}/events",
    ):
        text = (await client.get(path)).text
        for secret in ("the secret", "Feedback of", "Because two", "Multiply", "What is twice?"):
            assert secret not in text, f"{path}: {secret}"


async def test_hints_open_one_by_one(client: httpx.AsyncClient) -> None:
    first = (await client.get(f"{PANEL}/checks/0/hints/1")).text
    assert "What is twice?" in first
    assert "Multiply." not in first
    assert "Multiply." in (await client.get(f"{PANEL}/checks/0/hints/2")).text
    for path in (f"{PANEL}/checks/0/hints/3", f"{PANEL}/checks/1/hints/1", f"{PANEL}/checks/2/hints/1"):
        assert (await client.get(path)).status_code == 404


@pytest.mark.parametrize("name", ["hello", "nothing", "%00"])
async def test_what_is_no_exercise_has_no_panel(client: httpx.AsyncClient, name: str) -> None:
    assert (await client.get(f"/en/courses/small/first/exercises/{name}")).status_code in (404, 422)


@pytest.mark.parametrize("body", [{}, {"code": "x"}, {"code": "x", "key": "short"}, {"code": "x\0", "key": "k" * 20}])
async def test_a_submission_that_makes_no_sense_is_refused(
    client: httpx.AsyncClient, supervisor: ScriptedSupervisor, body: dict[str, str]
) -> None:
    assert (await client.post(f"{PANEL}/submissions", json=body)).status_code == 422


async def test_another_site_cannot_submit(client: httpx.AsyncClient) -> None:
    headers = {"sec-fetch-site": "cross-site"}
    body = {"code": MINE, "key": str(uuid.uuid4())}

    assert (await client.post(f"{PANEL}/submissions", json=body, headers=headers)).status_code == 403
