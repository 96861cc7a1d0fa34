"""``lockstep doctor --devices``: what counts as a proof that real devices work in sessions."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from app.cli import device_check as proofs
from app.cli.device_check import DeviceTrial, check_devices
from runners.wire.client import RunnerClient
from runners.wire.protocol import SessionState
from tests.factories.cli_process import lockstep
from tests.factories.scripted_supervisor import ScriptedSupervisor


def said(device: str, replicas: int, *opened: str, right: bool = True) -> dict[str, Any]:
    return {"names": ["T4"], "device": device, "right": right, "replicas": replicas, "opened": list(opened)}


@asynccontextmanager
async def runner(supervisor: ScriptedSupervisor, answers: list[dict[str, Any] | None]) -> AsyncIterator[RunnerClient]:
    """A runner whose sessions, one after the other, have a real device and print this, or have none."""
    served: set[str] = set()

    async def play() -> None:
        while True:
            for name in [name for name in supervisor.submitted if name not in served]:
                served.add(name)
                run = supervisor.runs[name]
                if supervisor.session_state is SessionState.queued:
                    continue
                session = run.request.session
                if run.request.code == "pass":
                    real = answers[0] is not None
                    if not real:
                        answers.pop(0)
                    supervisor.sessions[session] = supervisor.sessions[session].model_copy(update={"real": real})
                else:
                    await supervisor.say(run, f"noise\nlockstep-result {json.dumps(answers.pop(0))}\n")
                await supervisor.finish(run)
            await asyncio.sleep(0.005)

    playing = asyncio.create_task(play())
    try:
        async with RunnerClient(supervisor.socket) as client:
            yield client
    finally:
        playing.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await playing


async def test_two_gpus_that_compute_alone_and_together_are_a_proof(supervisor: ScriptedSupervisor) -> None:
    gpu = "/job:localhost/replica:0/task:0/device:GPU:0"
    answers = [said(gpu, 1, "aa"), said(gpu, 1, "bb"), None, said(gpu, 2, "aa", "bb")]

    async with runner(supervisor, answers) as client:
        result = await check_devices(client)

    assert result.passed, list(result.to_text())
    assert [trial.topology for trial in result.trials] == ["gpu:1", "gpu:1", "gpu:2"]
    assert list(result.to_text())[-1] == "All devices are real, and no session could see another's."
    assert supervisor.sessions == {}


@pytest.mark.parametrize(
    ("trial", "wrong"),
    [
        (DeviceTrial("gpu:1", said("/device:CPU:0", 1)), "the matrices were multiplied on /device:CPU:0"),
        (DeviceTrial("gpu:2", said("/device:GPU:0", 1)), "its strategy has 1 replicas"),
        (DeviceTrial("gpu:1", said("/device:GPU:0", 1, right=False)), "it computed a wrong result"),
        (DeviceTrial("gpu:1", error="the program ended with error"), "the program ended with error"),
        (DeviceTrial("gpu:1", said("/device:GPU:0", 1)), ""),
    ],
)
def test_what_is_no_proof_says_why(trial: DeviceTrial, wrong: str) -> None:
    assert trial.failure() == wrong


async def test_two_sessions_that_can_open_one_device_are_no_proof(supervisor: ScriptedSupervisor) -> None:
    gpu = "/device:GPU:0"
    answers = [said(gpu, 1, "aa"), said(gpu, 1, "aa", "bb"), None, said(gpu, 2, "aa", "bb")]

    async with runner(supervisor, answers) as client:
        result = await check_devices(client)

    assert not result.passed
    assert "failed  two sessions could open aa at the same time" in list(result.to_text())


TPU = "/job:localhost/replica:0/task:0/device:TPU:0"


async def test_a_tpu_that_one_session_has_at_a_time_and_the_next_one_after_it_is_a_proof(
    supervisor: ScriptedSupervisor,
) -> None:
    here = said(TPU, 8, "/dev/accel0")
    async with runner(supervisor, [None, here, None, here, None, None]) as client:
        result = await check_devices(client)

    assert result.passed, list(result.to_text())
    assert [trial.topology for trial in result.trials] == ["tpu:8"]
    assert supervisor.sessions == {}


async def test_a_tpu_that_two_sessions_have_or_that_stays_with_the_first_is_no_proof(
    supervisor: ScriptedSupervisor,
) -> None:
    here = said(TPU, 4, "/dev/accel0")
    async with runner(supervisor, [None, None, here, here, None, None]) as client:
        result = await check_devices(client)

    assert not result.passed
    assert list(result.to_text())[2:4] == [
        "failed  tpu:4   no device: in the next session after the first one ended: it is not real",
        "failed  two sessions could open /dev/accel0 at the same time",
    ]


async def test_where_sessions_run_out_before_devices_it_waits_for_one_and_says_so(
    supervisor: ScriptedSupervisor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(proofs, "_QUEUE_TIMEOUT_S", 0.3)
    supervisor.session_state = SessionState.queued

    async with runner(supervisor, []) as client, asyncio.timeout(20):
        result = await check_devices(client)

    assert not result.passed
    assert list(result.to_text()) == [
        "No real device was found. The runner has no free seat for another session. Try again "
        "when it is less busy, or raise LOCKSTEP_MAX_SESSIONS."
    ]
    assert supervisor.sessions == {}


async def test_devices_that_no_place_was_left_for_are_said_to_be_untried(
    supervisor: ScriptedSupervisor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(proofs, "_QUEUE_TIMEOUT_S", 0.3)
    gpu = "/device:GPU:0"
    answers: list[dict[str, Any] | None] = [said(gpu, 1, "aa")]
    serve_one = supervisor.emit

    async def emit(*run: Any, **event: Any) -> None:
        await serve_one(*run, **event)
        if not answers:
            supervisor.session_state = SessionState.queued

    monkeypatch.setattr(supervisor, "emit", emit)
    async with runner(supervisor, answers) as client, asyncio.timeout(20):
        result = await check_devices(client)

    assert [trial.topology for trial in result.trials] == ["gpu:1"]
    assert "There may be more devices. The runner has no free seat" in "\n".join(result.to_text())


async def test_without_a_real_device_it_says_so_and_is_1(supervisor: ScriptedSupervisor, tmp_path: Path) -> None:
    supervisor.answer = []

    told = await lockstep("doctor", "--devices", runner_socket=supervisor.socket, data_dir=tmp_path)
    as_json = await lockstep("doctor", "--devices", "--json", runner_socket=supervisor.socket, data_dir=tmp_path)

    assert (told.status, as_json.status) == (1, 1)
    assert told.out.startswith("No real device was found. The runner has only simulated devices;")
    assert json.loads(as_json.out)["passed"] is False
    assert supervisor.sessions == {}
