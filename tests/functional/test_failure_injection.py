"""Failures that a learner injects from the session panel: into which process, when, and which are rejected."""

from __future__ import annotations

import html
import re

import httpx
import pytest

from app.settings import Settings
from runners.wire.protocol import ClusterMember, InjectedFailure, PendingFailure, Refusal, SessionState
from tests.factories.browser_client import press_run
from tests.factories.course import LESSON, add_choice
from tests.factories.scripted_supervisor import ScriptedSupervisor

PANEL = f"/en/session?lesson={LESSON}"
FAILURES = f"/en/session/failures?lesson={LESSON}&topology=workers:2xgpu:2&keras=3"
MEMBERS = (
    ClusterMember(task="worker 0", state="running", address="127.0.0.1:40001"),
    ClusterMember(task="worker 1", state="paused", address="127.0.0.1:40002"),
)


@pytest.fixture
def offering(settings: Settings) -> None:
    """The lesson has a cell for which a learner may choose a machine."""
    add_choice(settings.lessons_dir)


def said(answer: httpx.Response) -> str:
    """The result of an injected failure."""
    (words,) = re.findall(r"<span data-key=\"\w*\">(.*)</span>", answer.text)
    return str(words)


async def cluster(client: httpx.AsyncClient, supervisor: ScriptedSupervisor) -> str:
    """A session with two workers; returns its name."""
    await press_run(client, cell="choice", topology="workers:2xgpu:2")
    (name,) = supervisor.sessions
    supervisor.sessions[name] = supervisor.sessions[name].model_copy(update={"members": MEMBERS})
    return name


@pytest.mark.usefixtures("offering")
async def test_the_processes_of_a_cluster_are_listed_with_what_can_be_done_to_them(
    client: httpx.AsyncClient, supervisor: ScriptedSupervisor
) -> None:
    name = await cluster(client, supervisor)

    panel = (await client.get(PANEL)).text

    assert '<h3 class="card-title" id="members-title">Workers</h3>' in panel
    assert "127.0.0.1:40002" in panel
    assert re.findall(r'aria-label="([^"]+: worker \d)"', panel) == [
        "Kill: worker 0",
        "Pause: worker 0",
        "Slow: worker 0",
        "Kill: worker 1",
        "Resume: worker 1",
    ]
    servers = (*MEMBERS, ClusterMember(task="ps 0", state="running"))
    supervisor.sessions[name] = supervisor.sessions[name].model_copy(update={"members": servers})
    assert 'id="members-title">Processes</h3>' in (await client.get(PANEL)).text


@pytest.mark.usefixtures("offering")
async def test_a_fault_reaches_the_session_and_is_said(
    client: httpx.AsyncClient, supervisor: ScriptedSupervisor
) -> None:
    name = await cluster(client, supervisor)

    at_once = await client.post(FAILURES, data={"task": "worker 1", "action": "kill", "at_step": ""})
    later = await client.post(FAILURES, data={"task": "worker 0", "action": "slow", "at_step": "1000"})
    resumed = await client.post(FAILURES, data={"task": "worker 1", "action": "resume", "at_step": "5"})

    assert said(at_once) == "worker 1 was killed."
    assert said(later) == "worker 0 will be slowed down at step 1,000."
    assert said(resumed) == "worker 1 continues."
    assert at_once.headers["hx-trigger"] == "lockstep:session"
    assert supervisor.failures == [
        (name, InjectedFailure(task="worker 1", action="kill")),
        (name, InjectedFailure(task="worker 0", action="slow", at_step=1000)),
        (name, InjectedFailure(task="worker 1", action="resume")),
    ]


@pytest.mark.usefixtures("offering")
async def test_a_fault_goes_to_the_session_that_the_panel_shows_and_names(
    client: httpx.AsyncClient, supervisor: ScriptedSupervisor
) -> None:
    third = await cluster(client, supervisor)
    await press_run(client, cell="choice", topology="workers:2xgpu:2", keras=2)
    (second,) = set(supervisor.sessions) - {third}
    supervisor.sessions[second] = supervisor.sessions[second].model_copy(update={"members": MEMBERS})

    for keras, name in ((2, second), (3, third)):
        panel = (await client.get(f"{PANEL}&topology=workers:2xgpu:2&keras={keras}&exactly=true")).text
        assert f'data-keras="{keras}"' in panel
        assert f'<span class="session-keras">Keras {keras}</span>' in panel
        assert f'data-show-topology="workers:2xgpu:2" data-show-keras="{5 - keras}"' in panel
        (address,) = set(re.findall(r'hx-post="([^"]+/failures[^"]+)"', panel))
        await client.post(html.unescape(address), data={"task": "worker 1", "action": "kill"})
        assert supervisor.failures[-1] == (name, InjectedFailure(task="worker 1", action="kill"))
        (restart,) = re.findall(r'hx-post="([^"]+/restart[^"]+)"', panel)
        await client.post(html.unescape(restart))
        assert supervisor.restarted[-1] == name
    assert supervisor.restarted == [second, third]


@pytest.mark.usefixtures("offering")
async def test_the_end_of_a_session_that_the_panel_does_not_show_is_warned_of_by_its_name(
    client: httpx.AsyncClient, supervisor: ScriptedSupervisor
) -> None:
    name = await cluster(client, supervisor)
    ending = {"ends_in_s": 100.0, "runs": 1}
    supervisor.sessions[name] = supervisor.sessions[name].model_copy(update=ending)

    panel = (await client.get(f"{PANEL}&topology=gpu:4&keras=3&exactly=true")).text

    assert 'data-topology="gpu:4"' in panel
    assert "2 workers with 2 GPUs each, simulated · Keras 3: This session ends in 1 minute" in panel
    assert "every 10s" in panel
    (keep,) = re.findall(r'hx-post="([^"]+/keep[^"]+)"', panel)
    await client.post(html.unescape(keep))
    assert supervisor.kept == [name]


@pytest.mark.usefixtures("offering")
async def test_what_waits_for_a_step_is_shown_and_can_be_done_now_or_taken_back(
    client: httpx.AsyncClient, supervisor: ScriptedSupervisor
) -> None:
    name = await cluster(client, supervisor)
    waiting = MEMBERS[0].model_copy(update={"scheduled": PendingFailure(action="kill", at_step=1000)})
    counting = MEMBERS[1].model_copy(update={"scheduled": PendingFailure(action="slow", at_step=50), "step": 12})
    supervisor.sessions[name] = supervisor.sessions[name].model_copy(update={"members": (waiting, counting)})

    panel = (await client.get(PANEL)).text

    assert "Will be killed at step 1,000." in panel
    assert "The steps of the next run count: those of fit, train_on_batch, and lockstep.log." in panel
    assert "Will be slowed down at step 50." in panel
    assert "It is now at step 12." in panel
    assert re.findall(r'aria-label="((?:Kill now|Slow down now|Cancel): worker \d)"', panel) == [
        "Kill now: worker 0",
        "Cancel: worker 0",
        "Slow down now: worker 1",
        "Cancel: worker 1",
    ]
    chips = re.findall(r'<button type="button" class="chip" [^>]*aria-label="([^"]+)"', panel)
    assert chips == [
        "Cancel: worker 0 will be killed at step 1,000.",
        "Cancel: worker 1 will be slowed down at step 50.",
    ]
    busy = supervisor.sessions[name].model_copy(update={"state": SessionState.busy})
    supervisor.sessions[name] = busy
    assert "No steps counted yet: only fit, train_on_batch, and lockstep.log" in (await client.get(PANEL)).text
    answer = await client.post(FAILURES, data={"task": "worker 0", "action": "cancel", "at_step": "1000"})
    assert said(answer) == "Canceled: nothing will happen to worker 0."
    assert supervisor.failures == [(name, InjectedFailure(task="worker 0", action="cancel"))]


@pytest.mark.usefixtures("offering")
async def test_a_process_that_has_ended_takes_failures_for_a_step_of_the_next_run(
    client: httpx.AsyncClient, supervisor: ScriptedSupervisor
) -> None:
    name = await cluster(client, supervisor)
    waits = PendingFailure(action="kill", at_step=3)
    ended = MEMBERS[1].model_copy(update={"state": "ended", "step": 7, "scheduled": waits})
    supervisor.sessions[name] = supervisor.sessions[name].model_copy(update={"members": (MEMBERS[0], ended)})

    panel = (await client.get(PANEL)).text

    assert "It has ended. The next run starts it again; the steps of that run count." in panel
    assert "It is now at step 7." not in panel
    assert re.findall(r'aria-label="([^"]+: worker 1)"', panel) == [
        "Cancel: worker 1",
        "Start again: worker 1",
        "Kill: worker 1",
        "Pause: worker 1",
        "Slow: worker 1",
    ]
    assert re.findall(r'class="needs-step" aria-label="([^"]+)"', panel) == [
        "Kill: worker 1",
        "Pause: worker 1",
        "Slow: worker 1",
    ]
    served = ended.model_copy(update={"serves": True, "scheduled": None})
    supervisor.sessions[name] = supervisor.sessions[name].model_copy(update={"members": (MEMBERS[0], served)})
    assert re.findall(r'aria-label="([^"]+: worker 1)"', (await client.get(PANEL)).text) == ["Start again: worker 1"]


@pytest.mark.usefixtures("offering")
@pytest.mark.parametrize(
    ("code", "words", "now"),
    [
        ("counts-no-steps", "serves the coordinator and counts no steps", True),
        ("step-passed", "has already passed that step", True),
        ("not-scheduled", "reached that step, or this was canceled before", False),
    ],
)
async def test_a_step_that_never_comes_is_refused_and_now_is_offered_instead(
    client: httpx.AsyncClient, supervisor: ScriptedSupervisor, code: str, words: str, now: bool
) -> None:
    name = await cluster(client, supervisor)
    supervisor.refuse = (409, Refusal(code=code, message="it never comes"))

    answer = await client.post(FAILURES, data={"task": "worker 1", "action": "kill", "at_step": "3"})

    assert words in said(answer)
    assert ('aria-label="Kill now: worker 1"' in answer.text) is now
    supervisor.refuse = None
    if now:
        (address,) = re.findall(r'hx-post="([^"]+)"', answer.text)
        await client.post(html.unescape(address), data={"task": "worker 1", "action": "kill"})
        assert supervisor.failures == [(name, InjectedFailure(task="worker 1", action="kill"))]


@pytest.mark.usefixtures("offering")
async def test_a_stranger_takes_nothing_back(
    client: httpx.AsyncClient, stranger: httpx.AsyncClient, supervisor: ScriptedSupervisor
) -> None:
    await cluster(client, supervisor)
    await stranger.get(PANEL)
    theirs = await stranger.post(FAILURES, data={"task": "worker 1", "action": "cancel"})
    elsewhere = await client.post(
        FAILURES, data={"task": "worker 1", "action": "cancel"}, headers={"sec-fetch-site": "cross-site"}
    )
    assert said(theirs) == "This session no longer exists."
    assert elsewhere.status_code == 403
    assert not supervisor.failures


@pytest.mark.usefixtures("offering")
async def test_an_answer_carries_the_state_in_which_it_is_true(
    client: httpx.AsyncClient, supervisor: ScriptedSupervisor
) -> None:
    name = await cluster(client, supervisor)
    answer = await client.post(FAILURES, data={"task": "worker 1", "action": "pause"})
    (key,) = re.findall(r'<span data-key="(\w+)">', answer.text)
    assert f'data-key="{key}"' in (await client.get(PANEL)).text
    on = (MEMBERS[0], MEMBERS[1].model_copy(update={"state": "running"}))
    supervisor.sessions[name] = supervisor.sessions[name].model_copy(update={"members": on})
    assert f'data-key="{key}"' not in (await client.get(PANEL)).text


@pytest.mark.usefixtures("offering")
async def test_a_refused_fault_is_said_beside_its_button(
    client: httpx.AsyncClient, supervisor: ScriptedSupervisor
) -> None:
    await cluster(client, supervisor)
    asked = {"task": "worker 1", "action": "kill"}

    supervisor.refuse = (409, Refusal(code="has-ended", message="worker 1 has ended; restart it first"))
    known = await client.post(FAILURES.replace("/en/", "/ko/"), data=asked)
    supervisor.refuse = (409, Refusal(code="new-one", message="<b>because</b>"))
    unknown = await client.post(FAILURES, data=asked)

    assert (known.status_code, unknown.status_code) == (200, 200)
    assert "다시 시작" in known.text
    assert said(unknown) == "This failed: &lt;b&gt;because&lt;/b&gt;"


@pytest.mark.usefixtures("offering")
@pytest.mark.parametrize(
    "asked",
    [
        {},
        {"task": "worker 1"},
        {"task": "worker 1", "action": "explode"},
        {"task": "../1", "action": "kill"},
        {"task": "worker 1", "action": "kill", "at_step": "-1"},
        {"task": "worker 1", "action": "kill", "more": "1"},
        {f"n{i}": "1" for i in range(50)},
    ],
)
async def test_what_is_no_fault_is_refused(
    client: httpx.AsyncClient, supervisor: ScriptedSupervisor, asked: dict[str, str]
) -> None:
    await cluster(client, supervisor)

    assert (await client.post(FAILURES, data=asked)).status_code == 422
    assert not supervisor.failures


@pytest.mark.usefixtures("offering")
async def test_nobody_does_anything_to_anothers_cluster(
    client: httpx.AsyncClient, stranger: httpx.AsyncClient, supervisor: ScriptedSupervisor
) -> None:
    await cluster(client, supervisor)
    asked = {"task": "worker 1", "action": "kill"}

    await stranger.get(PANEL)
    theirs = await stranger.post(FAILURES, data=asked)
    elsewhere = await client.post(FAILURES, data=asked, headers={"sec-fetch-site": "cross-site"})

    assert said(theirs) == "This session no longer exists."
    assert elsewhere.status_code == 403
    assert not supervisor.failures


@pytest.mark.usefixtures("offering")
async def test_while_the_runner_is_down_a_fault_says_so(
    client: httpx.AsyncClient, supervisor: ScriptedSupervisor
) -> None:
    await cluster(client, supervisor)
    await supervisor.stop()

    answer = await client.post(FAILURES, data={"task": "worker 1", "action": "kill"})

    assert said(answer) == "The runner is starting or cannot be reached. Nothing was changed. Try again in a moment."
