"""The session panel: what it says, and what its buttons do."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from app.lessons.catalog import Catalog
from app.lessons.model import Lesson
from app.runs.sessions import down, machines, view
from app.settings import Settings
from runners.protocol import Health, SessionInfo, SessionState
from tests.factories.browser import press_run
from tests.factories.course import LESSON
from tests.factories.supervisor import Supervisor

PANEL = f"/en/session?lesson={LESSON}"


@pytest.fixture
def lesson(settings: Settings) -> Lesson:
    catalog = Catalog(settings.lessons_dir)
    catalog.reload()
    return catalog.lesson("small", "first", "en")


async def test_a_newcomer_has_no_session_yet(client: httpx.AsyncClient, supervisor: Supervisor) -> None:
    panel = (await client.get(PANEL)).text

    assert 'data-state="none"' in panel
    assert "No session yet" in panel
    assert "4 GPUs, simulated" in panel
    assert not supervisor.sessions


async def test_a_fragment_is_never_kept(client: httpx.AsyncClient, supervisor: Supervisor) -> None:
    assert (await client.get(PANEL)).headers["cache-control"] == "no-store"


async def test_touching_an_editor_asks_for_the_session_that_run_will_use(
    client: httpx.AsyncClient, supervisor: Supervisor
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
    client: httpx.AsyncClient, supervisor: Supervisor, state: SessionState, words: str
) -> None:
    supervisor.session_state = state

    assert words in (await client.post(PANEL)).text


async def test_while_the_runner_is_down_the_panel_says_so_and_asks_again_by_itself(
    client: httpx.AsyncClient, supervisor: Supervisor
) -> None:
    await supervisor.stop()
    for panel in ((await client.get(PANEL)).text, (await client.post(PANEL)).text):
        assert 'data-state="down"' in panel
        assert "every 2s" in panel

    await supervisor.start()

    assert 'data-state="none"' in (await client.get(PANEL)).text


async def test_a_runner_that_starts_is_called_starting(client: httpx.AsyncClient, supervisor: Supervisor) -> None:
    supervisor.health = Health(status="starting")

    panel = (await client.get(PANEL)).text

    assert "The runner is starting" in panel
    assert "every 1s" in panel


async def test_restart_and_interrupt_reach_every_session_of_the_lesson(
    client: httpx.AsyncClient, supervisor: Supervisor
) -> None:
    for cell in ("hello", "alone"):
        await press_run(client, cell=cell)

    await client.post(f"/en/session/restart?lesson={LESSON}")
    await client.post(f"/en/session/interrupt?lesson={LESSON}")

    assert len(supervisor.sessions) == 2
    assert sorted(supervisor.restarted) == sorted(supervisor.interrupted) == sorted(supervisor.sessions)


async def test_a_stranger_cannot_restart_anothers_session(
    client: httpx.AsyncClient, stranger: httpx.AsyncClient, supervisor: Supervisor
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


async def test_a_learner_can_answer_the_warning(client: httpx.AsyncClient, supervisor: Supervisor) -> None:
    await press_run(client)
    (name,) = supervisor.sessions
    ending = {"ends_in_s": 100.0, "can_be_kept": True, "runs": 1}
    supervisor.sessions[name] = supervisor.sessions[name].model_copy(update=ending)

    warned = (await client.get(PANEL)).text
    assert "This session ends in 1 minute because nothing ran" in warned
    assert 'hx-post="http' not in warned
    assert "/en/session/keep" in warned

    kept = (await client.post(f"/en/session/keep?lesson={LESSON}")).text
    assert supervisor.kept == [name]
    assert "Kept. It ends in 20 minutes if nothing runs." in kept
    assert "/en/session/keep" not in kept


async def test_a_stranger_cannot_keep_anothers_session_nor_another_site(
    client: httpx.AsyncClient, stranger: httpx.AsyncClient, supervisor: Supervisor
) -> None:
    await press_run(client)

    await stranger.post(f"/en/session/keep?lesson={LESSON}")
    refused = await client.post(f"/en/session/keep?lesson={LESSON}", headers={"sec-fetch-site": "cross-site"})

    assert refused.status_code == 403
    assert supervisor.kept == []


async def test_who_ran_something_is_told_when_there_is_no_session_any_more(
    client: httpx.AsyncClient, supervisor: Supervisor
) -> None:
    supervisor.answer = ["hello\n"]
    run = await press_run(client)
    await client.get(run["urls"]["stream"])
    await supervisor.restart()

    assert "The variables of earlier runs are gone" in (await client.get(PANEL)).text


def idle(ends_in_s: float | None, **more: Any) -> SessionInfo:
    known = {"id": "x", "state": SessionState.idle, "topology": "cpu", "keras": 3, "runs": 1, "can_be_kept": True}
    return SessionInfo(**{**known, "ends_in_s": ends_in_s, **more})


def test_a_warning_says_the_time_in_whole_minutes_and_why(lesson: Lesson) -> None:
    assert view(lesson, idle(200)).notice == ""
    assert "in 2 minutes because nothing ran" in view(lesson, idle(130)).notice
    assert "in less than a minute because" in view(lesson, idle(59)).notice
    assert "Others wait for a place" in view(lesson, idle(35, gives_way=True)).notice


def test_what_cannot_be_kept_has_no_such_button_and_what_never_ran_no_warning(lesson: Lesson) -> None:
    assert view(lesson, idle(60)).can_keep
    assert not view(lesson, idle(60, gives_way=True, can_be_kept=False)).can_keep
    assert not view(lesson, idle(60, runs=0)).ending


def test_a_page_asks_seldom_while_the_end_is_far_and_in_time_for_the_warning(lesson: Lesson) -> None:
    asked = [view(lesson, idle(s)).poll_s for s in (1200, 150, 137, 130, 20)]

    assert asked == [20, 16, 3, 10, 3]


def test_a_session_that_is_gone_says_what_became_of_its_variables(lesson: Lesson) -> None:
    panel = view(lesson, idle(None, state=SessionState.gone, gone_because="idle"))

    assert panel.words == "Ended"
    assert "after a while without a run" in panel.notice
    assert "run the cells that you need again first" in panel.notice
    assert panel.poll_s is None


def test_a_lesson_names_its_own_machine_first_and_each_once(lesson: Lesson) -> None:
    assert [machine.topology for machine in machines(lesson)] == ["gpu:4", "cpu"]


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
    assert not down(lesson).can_restart
