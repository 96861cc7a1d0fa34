"""One learner's live kernel: it takes its runs one after the other and says at any time where it is in its life."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import time
from collections import deque
from collections.abc import Callable
from typing import Any, Protocol

import structlog

from runners.config.settings import Limits, MiB
from runners.devices.device_pool import NoDeviceAvailable
from runners.kernels.kernel_pool import Kernel, KernelNotReady
from runners.kernels.zygote_client import ZygoteUnavailable
from runners.sandbox.handle import Sandbox, SandboxGone
from runners.sandbox.usage import UsageWatcher
from runners.supervisor.execution import Execution
from runners.supervisor.run_log import RunLog
from runners.supervisor.scheduling import BusySession, IdleSession
from runners.wire.protocol import (
    ClusterMember,
    InjectedFailure,
    KerasVersion,
    Outcome,
    SessionInfo,
    SessionSpec,
    SessionState,
    Topology,
)

log = structlog.get_logger()

_MOST_OF_FILES = 0.75
"""The part of a session's memory that its files may take; with more, a run killed for memory costs the sandbox."""
_NOT_USABLE_AFTER = (Outcome.processes,)
"""Processes without end are still there: only a fresh kernel gets rid of them."""

_JOIN_S = 2.0
"""How long a restarted process may take to appear before a cell begins without it, in seconds."""
_LOOK_S = 0.01

_REASONS: dict[type[Exception], str] = {
    NoDeviceAvailable: "no-device",
    ZygoteUnavailable: "no-sandbox",
    KernelNotReady: "no-kernel",
    SandboxGone: "sandbox-gone",
}
"""Why a session could not go on, in words that a page can translate; anything else is ``internal``."""

_STARTED_ANEW = {
    True: ("member-restarted", "{tasks} had ended and was restarted. Everything that it held is gone."),
    False: (
        "cluster-restarted",
        "{tasks} had ended. Workers that train together must start together, so the whole cluster was "
        "restarted: the variables of earlier cells are gone.",
    ),
}
"""By whether the others can go on without the process that ended."""


class KernelSource(Protocol):
    """Where a session gets its kernel: ``kernel_provider.KernelProvider``, or a test's own."""

    def is_cold(self, topology: str, keras: KerasVersion) -> bool:
        """Whether such a kernel has to wait for the import of TensorFlow."""

    async def take(self, topology: str, keras: KerasVersion) -> Kernel:
        """A kernel that answers."""


class Session:
    """A session from the moment it was asked for.

    Made by the node, which calls ``admit`` when there is room and is told by ``gone`` when it is over.
    """

    def __init__(
        self,
        name: str,
        spec: SessionSpec,
        limits: Limits,
        idle_s: float,
        source: KernelSource,
        on_run_end: Callable[[float], None] = lambda _: None,
    ) -> None:
        """``on_run_end`` gets the seconds that each run took."""
        self.name = name
        self.spec = spec
        self.state = SessionState.queued
        self.gone = asyncio.Event()
        self.gone_because: str | None = None
        self.generation = 0
        self.kernel_id = ""
        self.waiting: deque[RunLog] = deque()
        self.current: RunLog | None = None
        self._limits = limits
        self._idle_s = idle_s
        self._source = source
        self._on_run_end = on_run_end
        self.dropped = 0
        """Invalid messages from its kernels."""
        self._kernel: Kernel | None = None
        self._usage: UsageWatcher | None = None
        self._watching = contextlib.AsyncExitStack()
        self._news = asyncio.Event()
        self._execution: Execution | None = None
        self._restart = False
        self._end: str | None = None
        self._runs = 0
        """Taken by the kernel it has now."""
        self._cold = False
        """Whether the kernel that is starting has to wait for an import."""
        self.used = False
        """Whether a run was ever submitted."""
        self._idle_since = self._workless_since = time.monotonic()
        self._running_since: float | None = None
        self.gone_at = 0.0
        """By the monotonic clock, once it is gone."""
        self._life: asyncio.Task[None] | None = None

    @property
    def over(self) -> bool:
        """Whether it has ended or was told to."""
        return self.state == SessionState.gone or self._end is not None

    @property
    def idle_s(self) -> float:
        """Seconds since its last run ended, it was kept, or it was asked for."""
        return time.monotonic() - self._idle_since

    # --- asked by the node ------------------------------------------------------------------------------------

    def standing(self) -> IdleSession | BusySession:
        """What decides how long it keeps its place."""
        now = time.monotonic()
        if self.state == SessionState.idle and not self.waiting and self.current is None:
            return IdleSession(self.name, now - self._workless_since, self.used)
        running_s = 0.0 if self._running_since is None else now - self._running_since
        return BusySession(running_s, max(0, len(self.waiting) - (self.current is None)))

    def keep(self) -> None:
        """The learner is still there: the time after which it ends by itself restarts."""
        self._idle_since = time.monotonic()
        self._news.set()

    def info(self, position: int | None = None, wait_s: float | None = None) -> SessionInfo:
        """The session as it is now; the node knows its place in the queue, and about how long it waits there."""
        idle = self.state == SessionState.idle
        return SessionInfo(
            id=self.name,
            state=self.state,
            topology=self.spec.topology,
            keras=self.spec.keras,
            position=position,
            wait_s=wait_s,
            idle_s=self.idle_s if idle else 0.0,
            ends_in_s=max(0.0, self._idle_s - self.idle_s) if idle and not self.over else None,
            generation=self.generation,
            kernel_id=self.kernel_id if self.state != SessionState.gone else "",
            runs=self._runs,
            gone_because=self.gone_because,
            members=self.members,
            real=bool(self._kernel and self._kernel.allocation),
        )

    @property
    def members(self) -> tuple[ClusterMember, ...]:
        """The processes of its cluster; none where there is no cluster, or no kernel yet."""
        return self._kernel.sandbox.members if self._kernel and self.state != SessionState.gone else ()

    async def inject_failure(self, fault: InjectedFailure) -> str:
        """Do something to a process of its cluster; what became of it. Raises SandboxGone."""
        if not self._kernel:
            raise SandboxGone("there is no kernel")
        return await self._kernel.sandbox.inject_failure(fault)

    def admit(self) -> None:
        """There is room: begin to live. One that has ended meanwhile stays in the queue until it is buried."""
        if self.over:
            return
        self.state = SessionState.starting
        self._cold = self._source.is_cold(self.spec.topology, self.spec.keras)
        for run in self.waiting:
            self._tell_of_cold(run)
        self._life = asyncio.create_task(self._live(), name=f"session-{self.name}")
        self._life.add_done_callback(self._be_gone)

    def submit(self, run: RunLog) -> int:
        """Take a run; returns how many come before it."""
        self.used = True
        ahead = len(self.waiting) + (self.current is not None)
        self.waiting.append(run)
        self._news.set()
        self._tell_of_cold(run)
        return ahead

    def _tell_of_cold(self, run: RunLog) -> None:
        """Explain once in a run why it waits for seconds when others do not."""
        if self._cold and self.state == SessionState.starting:
            keras = self.spec.keras
            text = f"TensorFlow with Keras {keras} has to start first, which takes several seconds."
            run.add("notice", code="keras-starting", values={"keras": keras}, text=text)

    def stop(self, run: RunLog) -> None:
        """Interrupt this run, or take it out of the queue."""
        if run is self.current:
            self._stop_current()
        elif run in self.waiting:
            self.waiting.remove(run)
            run.finish(Outcome.interrupted)

    def interrupt(self) -> None:
        """Drop what waits and interrupt what runs."""
        self._drop_waiting()
        if self.current:
            self._stop_current()

    def restart(self) -> None:
        """Drop what waits, end what runs, and fork a fresh kernel."""
        self._drop_waiting()
        self._restart = True
        if self.current:
            self._stop_current(kill=True)
        self._news.set()

    def end(self, because: str) -> None:
        """Request the end; ``gone`` is set once it is over. Idempotent."""
        if self._end:
            return
        self._end = because
        self._drop_waiting()
        if self.current:
            self._stop_current(kill=True)
        self._news.set()
        if self._life is None:
            self._be_gone()
        elif self.state == SessionState.starting:
            self._life.cancel()

    def _stop_current(self, *, kill: bool = False) -> None:
        if self._execution:
            self._execution.stop(kill=kill)

    def _drop_waiting(self, notice: str | None = None) -> None:
        while self.waiting:
            run = self.waiting.popleft()
            if notice:
                run.add("notice", code="earlier-run-failed", text=notice)
            run.finish(Outcome.interrupted)

    # --- the session's own task -------------------------------------------------------------------------------

    async def _live(self) -> None:
        because = "failed"
        try:
            await self._take_kernel()
            because = await self._work()
        except asyncio.CancelledError:
            because = self._end or "ended"
        except (NoDeviceAvailable, ZygoteUnavailable, KernelNotReady, SandboxGone) as e:
            tell = log.info if isinstance(e, NoDeviceAvailable) else log.error  # the first is as the operator wants it
            tell("session broke", session=self.name, error=str(e))
            self._fail(next(reason for kind, reason in _REASONS.items() if isinstance(e, kind)), str(e))
        except Exception:
            log.exception("session broke", session=self.name)
            self._fail("internal", "Lockstep itself failed; the operator's log has the details")
        finally:
            self.state, self.gone_because = SessionState.gone, because
            self._finish_the_rest(Outcome.interrupted)
            await self._watching.aclose()
            if self._kernel:
                await asyncio.shield(self._kernel.close())

    def _be_gone(self, _life: asyncio.Task[None] | None = None) -> None:
        """Follow the end of the session's task, which may have been canceled before its first step."""
        if self.state != SessionState.gone:
            self.state, self.gone_because = SessionState.gone, self._end or "ended"
        self.gone_at = time.monotonic()
        self.gone.set()

    async def _take_kernel(self) -> None:
        """Get a kernel; what its sandbox uses is watched from now on."""
        self._kernel = await self._source.take(self.spec.topology, self.spec.keras)
        self._name_kernel()
        await self._watching.aclose()
        self._usage = await self._watching.enter_async_context(UsageWatcher(self._kernel.sandbox, self._limits))

    def _name_kernel(self) -> None:
        """A name that is used once: a session that ended and was asked for again has another."""
        self.kernel_id = secrets.token_hex(6)

    def _fail(self, reason: str, why: str) -> None:
        values, text = {"reason": reason, "why": why}, f"The session could not continue: {why}"
        for run in (*([self.current] if self.current else []), *self.waiting):
            run.add("notice", code="session-failed", values=values, text=text)
        self._finish_the_rest(Outcome.crash)

    def _finish_the_rest(self, outcome: Outcome) -> None:
        for run in (*([self.current] if self.current else []), *self.waiting):
            run.finish(outcome)
        self.current = None
        self.waiting.clear()

    async def _work(self) -> str:
        """Take runs until the session ends; returns why it did."""
        self._become_idle()
        while True:
            if self._end:
                return self._end
            if self._restart:
                await self._fresh_kernel()
            elif self.waiting:
                await self._run(self.waiting.popleft())
            else:
                news = await self._news_within(self._idle_s - self.idle_s)
                if not news and not self.waiting and self.idle_s >= self._idle_s:
                    return "idle"

    def _become_idle(self) -> None:
        self.state = SessionState.idle
        self._idle_since = self._workless_since = time.monotonic()
        self._running_since = None

    async def _news_within(self, seconds: float) -> bool:
        """Wait for a run or a wish; a kernel that dies or breaks its channels while idle is replaced at once.

        What a run has left behind and goes on beyond a limit ends the session.
        """
        assert self._kernel
        assert self._usage
        events = (self._news, self._kernel.cut_off, self._usage.exceeded)
        _, cut_off, exceeded = waiting = [asyncio.create_task(event.wait()) for event in events]
        try:
            awaited: set[asyncio.Future[Any]] = {*waiting, self._kernel.exited}
            done, _ = await asyncio.wait(awaited, timeout=max(0.0, seconds), return_when="FIRST_COMPLETED")
        finally:
            for task in waiting:
                task.cancel()
        self._news.clear()
        if exceeded in done and self._usage.met:
            self.end(self._usage.met)
        if self._kernel.exited in done or cut_off in done:
            self._restart = True
        return bool(done)

    async def _fresh_kernel(self, after: Outcome | None = None) -> None:
        """Start a kernel in this sandbox, with its files, or in another where this one is useless ``after`` a run."""
        assert self._kernel
        self._restart, self.kernel_id = False, ""
        self.state, self._cold = SessionState.starting, self._kernel.cold
        try:
            await self._kernel.sandbox.kill()
            usable = after != Outcome.memory or not await self._files_fill_memory(self._kernel.sandbox)
            if usable:
                await self._kernel.restart()
                self._name_kernel()
        except (SandboxGone, KernelNotReady, RuntimeError):
            usable = False
        if not usable:
            await self._kernel.close()
            await self._take_kernel()
        self.generation += 1
        self._runs = 0
        self._become_idle()

    async def _files_fill_memory(self, sandbox: Sandbox) -> bool:
        """Whether the files, which are kept in memory, would have the next run killed too."""
        await sandbox.ask_usage()
        return sandbox.file_bytes > _MOST_OF_FILES * self._limits.memory_mb * MiB

    async def _start_anew(self, ended: list[str], run: RunLog) -> None:
        """Start processes of the cluster that have ended: those that train together have to begin together."""
        apart = Topology.parse(self.spec.topology).kind == "ps" or ended == ["evaluator"]
        code, text = _STARTED_ANEW[apart]
        who = " and ".join(ended)
        run.add("notice", code=code, values={"tasks": who}, text=text.format(tasks=who))
        if not apart:
            await self._fresh_kernel()
            return
        for task in ended:
            await self.inject_failure(InjectedFailure(task=task, action="restart"))
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_JOIN_S):
                while self._ended_members():  # noqa: ASYNC110 - PID 1 tells of them in its own time
                    await asyncio.sleep(_LOOK_S)

    def _ended_members(self) -> list[str]:
        return [member.task for member in self.members if member.state == "ended"]

    def _tell_of_pause(self, run: RunLog) -> None:
        """The kernel's own process can say nothing while it is paused; the others are named by it."""
        if self.members and self.members[0].state == "paused":
            task = self.members[0].task
            text = f"{task} is paused: nothing runs here until it resumes."
            run.add("notice", code="member-paused", values={"task": task}, text=text)

    async def _run(self, run: RunLog) -> None:
        assert self._kernel
        self.current, self._execution = run, (execution := Execution(run, self._limits))
        if self._kernel.exited.done():
            await self._fresh_kernel()
        elif ended := self._ended_members():
            await self._start_anew(ended, run)
        self._tell_of_pause(run)
        self.state = SessionState.busy
        assert self._usage
        run.runs_before, self._runs = self._runs, self._runs + 1
        run.kernel_id = self.kernel_id
        self._running_since = begun = time.monotonic()
        outcome = await execution.carry_out(self._kernel, self._usage)
        self._on_run_end(time.monotonic() - begun)
        self.current = self._execution = None
        if execution.dropped:
            self.dropped += execution.dropped
            log.warning("malformed messages dropped", session=self.name, count=execution.dropped)
        self._become_idle()
        if outcome != Outcome.ok:
            self._drop_waiting("Not run: an earlier cell in the queue failed.")
        if (self._kernel.exited.done() or outcome in _NOT_USABLE_AFTER) and not self._end:
            await self._fresh_kernel(after=outcome)
