"""What a session does without a kernel."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace

import pytest

from runners.config.settings import Limits
from runners.devices.device_pool import NoDeviceAvailable
from runners.kernels.kernel_pool import Kernel
from runners.supervisor import session as module
from runners.supervisor.run_log import RunLog
from runners.supervisor.scheduling import BusySession, IdleSession
from runners.supervisor.session import Session
from runners.wire.protocol import (
    EVENT_ADAPTER,
    FinishedEvent,
    KerasVersion,
    NoticeEvent,
    Outcome,
    RunRequest,
    SessionSpec,
    SessionState,
)


class NoKernels:
    """A source that fails the test if it is asked."""

    cold = False

    def is_cold(self, topology: str, keras: KerasVersion) -> bool:
        """Return what the test says."""
        return self.cold

    async def take(self, topology: str, keras: KerasVersion) -> Kernel:
        """Fail the test."""
        pytest.fail("a kernel was taken for a session that is over")


async def test_one_that_has_ended_in_the_queue_takes_no_place() -> None:
    session = Session("s", SessionSpec(owner="o", topology="cpu", keras=3), Limits(), 60, NoKernels())

    session.end("replaced")
    session.admit()

    assert session.state == SessionState.gone
    assert session.gone.is_set()


async def test_one_that_is_ended_before_its_first_step_is_gone() -> None:
    session = Session("s", SessionSpec(owner="o", topology="cpu", keras=3), Limits(), 60, NoKernels())

    session.admit()
    session.end("ended")

    async with asyncio.timeout(5):
        await session.gone.wait()
    assert (session.state, session.gone_because) == (SessionState.gone, "ended")


class Refusing(NoKernels):
    """A source that takes time and has no device."""

    def __init__(self) -> None:
        self.may_refuse = asyncio.Event()

    async def take(self, topology: str, keras: KerasVersion) -> Kernel:
        """Refuse."""
        await self.may_refuse.wait()
        raise NoDeviceAvailable("no GPU was found")


async def test_who_waits_for_another_keras_is_told_so_and_a_refusal_says_why() -> None:
    spec = SessionSpec(owner="o", topology="gpu:1", keras=2)
    source = Refusing()
    source.cold = True
    session = Session("s", spec, Limits(), 60, source)
    runs = [
        RunLog(RunRequest(id=name, session="s", spec=spec, code=""), Limits(), lambda _: None) for name in ("a", "b")
    ]

    session.submit(runs[0])
    session.admit()
    await asyncio.sleep(0)
    session.submit(runs[1])
    source.may_refuse.set()
    await session.gone.wait()

    assert session.gone_because == "failed"
    assert not session.info().real
    for run in runs:
        lines = [line async for piece in run.after(0, 1.0) for line in (piece or b"").splitlines()]
        notices = [EVENT_ADAPTER.validate_json(line) for line in lines]
        assert [getattr(event, "code", event.kind) for event in notices] == [
            "keras-starting",
            "session-failed",
            "finished",
        ]
        why, end = notices[1:]
        assert isinstance(why, NoticeEvent)
        assert why.values["reason"] == "no-device"
        assert isinstance(end, FinishedEvent)
        assert end.outcome == Outcome.crash


async def test_one_ends_when_it_was_kept_long_enough_ago(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = SimpleNamespace(now=0.0)
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: clock.now))
    session = Session("s", SessionSpec(owner="o", topology="cpu", keras=3), Limits(), 0.05, NoKernels())
    never: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    kernel, usage = SimpleNamespace(cut_off=asyncio.Event(), exited=never), SimpleNamespace(exceeded=asyncio.Event())
    monkeypatch.setattr(session, "_kernel", kernel)
    monkeypatch.setattr(session, "_usage", usage)
    working = asyncio.create_task(session._work())
    await asyncio.sleep(0)
    for clock.now in (0.04, 0.08):
        session.keep()
        await asyncio.wait({working}, timeout=0.2)
        assert not working.done()
    clock.now = 0.14
    assert await asyncio.wait_for(working, 60) == "idle"


async def test_one_whose_limit_is_met_just_as_a_run_ends_is_over_and_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    spec = SessionSpec(owner="o", topology="cpu", keras=3)
    session = Session("s", spec, Limits(), 60, NoKernels())
    run = RunLog(RunRequest(id="r", session="s", spec=spec, code=""), Limits(), lambda _: None)
    kernel = SimpleNamespace(exited=asyncio.get_running_loop().create_future())
    usage = SimpleNamespace(met=None)

    class Ended:
        """An execution during whose last moment the sandbox is ended."""

        dropped = 0

        def __init__(self, *_: object) -> None:
            """Take what an execution takes."""

        async def carry_out(self, *_: object) -> Outcome:
            """End well, and with the sandbox."""
            usage.met = "memory"
            kernel.exited.set_result(0)
            return Outcome.ok

    monkeypatch.setattr(session, "_kernel", kernel)
    monkeypatch.setattr(session, "_usage", usage)
    monkeypatch.setattr(session, "_ended_members", lambda: [])
    monkeypatch.setattr(session, "_tell_of_pause", lambda _: None)
    monkeypatch.setattr(module, "Execution", Ended)
    session.submit(run)

    assert await asyncio.wait_for(session._work(), 60) == "memory"


async def test_one_that_prepares_its_cluster_for_a_run_is_not_idle() -> None:
    spec = SessionSpec(owner="o", topology="ps:2+1", keras=3)
    session = Session("s", spec, Limits(), 60, NoKernels())
    run = RunLog(RunRequest(id="r", session="s", spec=spec, code=""), Limits(), lambda _: None)

    session.state = SessionState.idle
    assert isinstance(session.standing(), IdleSession)
    session.current = run  # what it trained with has ended and is started again before the run begins
    assert isinstance(session.standing(), BusySession)
