"""The session panel: its texts and its buttons."""

from __future__ import annotations

import asyncio
import re
from typing import Any

import httpx
import pytest

from app.lessons.catalog import Catalog
from app.lessons.model import Lesson
from app.runs.machines import Machine, lesson_machines
from app.runs.session_panel import SessionView
from app.runs.session_panel import session_view as view_on
from app.runs.session_panel import unavailable_view as down_on
from app.settings import Settings
from runners.wire.protocol import ClusterMember, Health, Refusal, SessionInfo, SessionState
from tests.factories.browser_client import press_run
from tests.factories.course import LESSON, add_choice
from tests.factories.scripted_supervisor import ScriptedSupervisor

PANEL = f"/en/session?lesson={LESSON}"
STREAM = f"/en/session/stream?lesson={LESSON}"


@pytest.fixture
def lesson(settings: Settings) -> Lesson:
    catalog = Catalog(settings.lessons_dir)
    catalog.reload()
    return catalog.lesson("small", "first", "en")


@pytest.fixture
def offering(settings: Settings) -> None:
    """The lesson has a cell for which a learner may choose a machine."""
    add_choice(settings.lessons_dir)


def view(lesson: Lesson, info: SessionInfo | None) -> SessionView:
    return view_on(Machine("gpu:4", 3), lesson, info)


async def test_a_newcomer_has_no_session_yet(client: httpx.AsyncClient, supervisor: ScriptedSupervisor) -> None:
    panel = (await client.get(PANEL)).text

    assert 'data-state="none"' in panel
    assert "No session yet" in panel
    assert "4 GPUs, simulated" in panel
    assert not supervisor.sessions


async def test_a_fragment_is_never_kept(client: httpx.AsyncClient, supervisor: ScriptedSupervisor) -> None:
    assert (await client.get(PANEL)).headers["cache-control"] == "no-store"


async def test_touching_an_editor_asks_for_the_session_that_run_will_use(
    client: httpx.AsyncClient, supervisor: ScriptedSupervisor
) -> None:
    panel = (await client.post(PANEL)).text

    assert 'data-state="idle"' in panel
    run = await press_run(client)
    assert list(supervisor.sessions) == [(await supervisor.run(run["id"])).request.session]


@pytest.mark.parametrize(
    ("state", "words"),
    [
        (SessionState.queued, "position 3"),
        (SessionState.starting, "Starting"),
        (SessionState.idle, "Ready"),
        (SessionState.busy, "Running"),
        (SessionState.gone, "the next run starts"),
    ],
)
async def test_every_state_is_said(
    client: httpx.AsyncClient, supervisor: ScriptedSupervisor, state: SessionState, words: str
) -> None:
    supervisor.session_state = state

    assert words in (await client.post(PANEL)).text


async def test_while_the_runner_is_down_the_panel_says_so_and_asks_again_by_itself(
    client: httpx.AsyncClient, supervisor: ScriptedSupervisor
) -> None:
    await supervisor.stop()
    for panel in ((await client.get(PANEL)).text, (await client.post(PANEL)).text):
        assert 'data-state="down"' in panel
        assert "every 2s" in panel

    await supervisor.start()

    assert 'data-state="none"' in (await client.get(PANEL)).text


async def test_a_runner_that_refuses_to_run_code_is_not_called_away(
    client: httpx.AsyncClient, supervisor: ScriptedSupervisor
) -> None:
    supervisor.health = Health(status="ready", refuses="the limit on memory is missing")
    supervisor.refuse = 403, Refusal(code="unsafe", message="No code is run here")

    for panel in ((await client.get(PANEL)).text, (await client.post(PANEL)).text):
        assert "cannot do so safely" in panel
        assert "cannot be reached" not in panel


async def test_a_runner_that_starts_is_called_starting(
    client: httpx.AsyncClient, supervisor: ScriptedSupervisor
) -> None:
    supervisor.health = Health(status="starting")

    panel = (await client.get(PANEL)).text

    assert "The runner is starting" in panel
    assert "every 1s" in panel


async def test_restart_and_interrupt_reach_every_session_of_the_lesson(
    client: httpx.AsyncClient, supervisor: ScriptedSupervisor
) -> None:
    for cell in ("hello", "alone"):
        await press_run(client, cell=cell)

    await client.post(f"/en/session/restart?lesson={LESSON}")
    await client.post(f"/en/session/interrupt?lesson={LESSON}")

    assert len(supervisor.sessions) == 2
    assert sorted(supervisor.restarted) == sorted(supervisor.interrupted) == sorted(supervisor.sessions)


async def test_a_stranger_cannot_restart_anothers_session(
    client: httpx.AsyncClient, stranger: httpx.AsyncClient, supervisor: ScriptedSupervisor
) -> None:
    await press_run(client)
    await stranger.post(PANEL)
    (own,) = set(supervisor.sessions) - {(await supervisor.run()).request.session}

    await stranger.post(f"/en/session/restart?lesson={LESSON}")

    assert supervisor.restarted == [own]


@pytest.mark.parametrize("lesson_name", ["none/first", "small/none", "", "small", "../../etc/passwd"])
async def test_a_session_of_no_lesson_is_not_found(client: httpx.AsyncClient, lesson_name: str) -> None:
    for method in ("GET", "POST"):
        response = await client.request(method, "/en/session", params={"lesson": lesson_name})
        assert response.status_code == 404


async def test_a_learner_can_answer_the_warning(client: httpx.AsyncClient, supervisor: ScriptedSupervisor) -> None:
    await press_run(client)
    (name,) = supervisor.sessions
    ending = {"ends_in_s": 100.0, "runs": 1}
    supervisor.sessions[name] = supervisor.sessions[name].model_copy(update=ending)

    warned = (await client.get(PANEL)).text
    assert "This session ends in 1 minute because nothing is running" in warned
    assert 'hx-post="http' not in warned
    assert "/en/session/keep" in warned

    kept = (await client.post(f"/en/session/keep?lesson={LESSON}")).text
    assert supervisor.kept == [name]
    assert "Session kept. It ends in 20 minutes if nothing runs." in kept
    assert "/en/session/keep" not in kept


async def test_a_stranger_cannot_keep_anothers_session_nor_another_site(
    client: httpx.AsyncClient, stranger: httpx.AsyncClient, supervisor: ScriptedSupervisor
) -> None:
    await press_run(client)

    await stranger.post(f"/en/session/keep?lesson={LESSON}")
    refused = await client.post(f"/en/session/keep?lesson={LESSON}", headers={"sec-fetch-site": "cross-site"})

    assert refused.status_code == 403
    assert supervisor.kept == []


async def test_who_ran_something_is_told_when_there_is_no_session_any_more(
    client: httpx.AsyncClient, supervisor: ScriptedSupervisor
) -> None:
    supervisor.answer = ["hello\n"]
    run = await press_run(client)
    await client.get(run["urls"]["stream"])
    await supervisor.restart()

    assert "The variables from earlier runs are gone" in (await client.get(PANEL)).text


def idle(ends_in_s: float | None, **more: Any) -> SessionInfo:
    known = {"id": "x", "state": SessionState.idle, "topology": "cpu", "keras": 3, "runs": 1}
    return SessionInfo(**{**known, "ends_in_s": ends_in_s, **more})


def test_a_warning_says_the_time_in_whole_minutes_and_why(lesson: Lesson) -> None:
    assert view(lesson, idle(200)).notice == ""
    assert "in 2 minutes because nothing is running" in view(lesson, idle(130)).notice
    assert "in less than a minute because" in view(lesson, idle(59)).notice


def test_a_session_about_to_end_can_be_kept_and_one_that_never_ran_has_no_warning(lesson: Lesson) -> None:
    assert view(lesson, idle(60)).can_keep
    assert not view(lesson, idle(60, runs=0)).ending
    assert not view(lesson, idle(60, runs=0)).can_keep


def test_a_page_asks_seldom_while_the_end_is_far_and_in_time_for_the_warning(lesson: Lesson) -> None:
    asked = [view(lesson, idle(s)).poll_s for s in (1200, 150, 137, 130, 20)]

    assert asked == [20, 16, 3, 10, 3]


def test_a_session_that_is_gone_says_what_became_of_its_variables(lesson: Lesson) -> None:
    panel = view(lesson, idle(None, state=SessionState.gone, gone_because="idle"))

    assert panel.words == "Ended"
    assert "because nothing ran for a while" in panel.notice
    assert "first rerun the cells that you need" in panel.notice
    assert panel.poll_s is None


def test_a_session_that_was_evicted_says_for_whom_and_what_is_left(lesson: Lesson) -> None:
    panel = view(lesson, idle(None, state=SessionState.gone, gone_because="evicted"))

    assert (panel.ending, panel.can_keep) == (True, False)
    assert panel.notice == (
        "Your session ended to make room for someone who was waiting; the next run starts a new one. "
        "Outputs stay, but variables are gone: first rerun the cells that you need."
    )


async def evict(supervisor: ScriptedSupervisor, name: str) -> None:
    gone = {"state": SessionState.gone, "gone_because": "evicted", "runs": 1}
    await supervisor.change(name, **gone)


async def test_a_page_that_is_open_hears_at_once_that_its_session_is_gone(
    client: httpx.AsyncClient, supervisor: ScriptedSupervisor
) -> None:
    await press_run(client)
    (name,) = supervisor.sessions
    told: asyncio.Task[httpx.Response] = asyncio.create_task(client.get(STREAM))
    await supervisor.asked_for_the_end(name)
    assert not told.done()

    await evict(supervisor, name)

    assert "event: changed" in (await asyncio.wait_for(told, 10)).text
    assert "ended to make room for someone" in (await client.get(PANEL)).text
    assert (await client.get(STREAM)).status_code == 204  # an EventSource does not come back


async def test_a_page_hears_too_when_the_runner_goes_away(
    client: httpx.AsyncClient, supervisor: ScriptedSupervisor
) -> None:
    await press_run(client)
    (name,) = supervisor.sessions
    told: asyncio.Task[httpx.Response] = asyncio.create_task(client.get(STREAM))
    await supervisor.asked_for_the_end(name)

    await supervisor.stop()

    assert "event: changed" in (await asyncio.wait_for(told, 10)).text
    assert (await client.get(STREAM)).status_code == 204


async def test_nobody_hears_of_anothers_session(
    client: httpx.AsyncClient, stranger: httpx.AsyncClient, supervisor: ScriptedSupervisor
) -> None:
    await press_run(client)
    await stranger.get(PANEL)

    assert (await stranger.get(STREAM)).status_code == 204


def test_a_lesson_names_its_own_machine_first_and_each_once(lesson: Lesson) -> None:
    assert [machine.topology for machine in lesson_machines(lesson)] == ["gpu:4", "cpu"]


def test_buttons_are_offered_only_where_they_do_something(lesson: Lesson) -> None:
    def offered(state: SessionState) -> tuple[bool, bool]:
        panel = view(lesson, SessionInfo(id="x", state=state, topology="cpu", keras=3))
        return panel.can_interrupt, panel.can_restart

    assert {state.value: offered(state) for state in SessionState} == {
        "queued": (False, False),
        "starting": (False, False),
        "idle": (False, True),
        "busy": (True, True),
        "gone": (False, False),
    }
    assert not down_on(lesson, Machine("gpu:4", 3)).can_restart


# --- machines to pick from --------------------------------------------------------------------------------------


@pytest.mark.usefixtures("offering")
async def test_a_panel_asks_once_for_the_sessions_on_all_machines(
    client: httpx.AsyncClient, supervisor: ScriptedSupervisor
) -> None:
    await client.post(PANEL)
    supervisor.lists = supervisor.looks = 0

    assert 'data-state="idle"' in (await client.get(PANEL)).text

    assert (supervisor.lists, supervisor.looks) == (1, 0)


@pytest.mark.usefixtures("offering")
async def test_the_panel_is_about_the_machine_that_was_picked(
    client: httpx.AsyncClient, supervisor: ScriptedSupervisor
) -> None:
    picked = f"{PANEL}&topology=workers:2xgpu:2&keras=2"

    assert "2 workers with 2 GPUs each, simulated" in (await client.get(picked)).text
    await client.post(PANEL)
    await client.post(picked)
    assert sorted((info.topology, info.keras) for info in supervisor.sessions.values()) == [
        ("gpu:4", 3),
        ("workers:2xgpu:2", 2),
    ]
    assert 'data-topology="gpu:4"' in (await client.get(PANEL)).text
    assert 'data-topology="workers:2xgpu:2"' in (await client.get(picked)).text


@pytest.mark.usefixtures("offering")
async def test_the_panel_names_the_kernels_of_all_the_lessons_sessions(
    client: httpx.AsyncClient, supervisor: ScriptedSupervisor
) -> None:
    assert 'data-kernels=""' in (await client.get(PANEL)).text, "no session, so no variables"
    await client.post(PANEL)
    await client.post(f"{PANEL}&topology=workers:2xgpu:2&keras=2")
    for info, kernel in zip(supervisor.sessions.values(), ("a1", "b2"), strict=True):
        supervisor.sessions[info.id] = info.model_copy(update={"kernel_id": kernel})
    assert re.findall('data-kernels="(.*?)"', (await client.get(PANEL)).text)[0].split() == ["a1", "b2"]

    await supervisor.stop()

    assert "data-kernels" not in (await client.get(PANEL)).text, "nobody knows"


@pytest.mark.usefixtures("offering")
async def test_a_busy_session_is_shown_whichever_machine_is_picked(
    client: httpx.AsyncClient, supervisor: ScriptedSupervisor
) -> None:
    await client.post(PANEL)
    supervisor.session_state = SessionState.busy
    await press_run(client, cell="choice", topology="gpu:2", keras=3)

    assert 'data-topology="gpu:2"' in (await client.get(PANEL)).text


@pytest.mark.usefixtures("offering")
async def test_a_run_goes_where_the_learner_has_picked_and_nowhere_else(
    client: httpx.AsyncClient, supervisor: ScriptedSupervisor
) -> None:
    run = await press_run(client, cell="choice", topology="workers:2xgpu:2", keras=2)
    spec = (await supervisor.run(run["id"])).request.spec
    assert (run["topology"], run["keras"]) == (spec.topology, spec.keras) == ("workers:2xgpu:2", 2)

    for cell, machine in (
        ("choice", {"topology": "gpu:8"}),
        ("hello", {"topology": "gpu:2"}),
        ("choice", {"keras": 4}),
    ):
        refused = await client.post("/runs", json={"lesson": LESSON, "cell": cell, "code": "1", **machine})
        assert (refused.status_code, refused.json()["error"]["code"]) == (422, "machine_unavailable")
        assert "only on gpu:4 (Keras 3)" in refused.json()["error"]["message"]
    assert len(supervisor.submitted) == 1


async def test_a_session_on_a_machine_that_the_lesson_does_not_offer_is_refused(
    client: httpx.AsyncClient, supervisor: ScriptedSupervisor
) -> None:
    for method in ("GET", "POST"):
        assert (await client.request(method, f"{PANEL}&topology=tpu:8")).status_code == 422
    assert not supervisor.sessions


async def test_real_accelerators_are_called_real(client: httpx.AsyncClient, supervisor: ScriptedSupervisor) -> None:
    await press_run(client)
    (name,) = supervisor.sessions
    supervisor.sessions[name] = supervisor.sessions[name].model_copy(update={"real": True})

    panel = (await client.get(PANEL)).text

    assert "4 GPUs, real" in panel
    assert "simulated" not in panel


def test_the_page_process_is_not_restarted_and_an_ended_session_has_no_processes(
    lesson: Lesson,
) -> None:
    ended = (ClusterMember(task="worker 0", state="ended"), ClusterMember(task="worker 1", state="ended"))

    def listed(state: SessionState) -> list[tuple[str, list[str]]]:
        info = SessionInfo(id="x", state=state, topology="workers:2", keras=3, members=ended)
        return [(m.task, [b.action for b in m.buttons if not b.needs_step]) for m in view(lesson, info).members]

    assert listed(SessionState.idle) == [("worker 0", []), ("worker 1", ["restart"])]
    assert listed(SessionState.gone) == []
