"""One learner's live kernel, which executes its runs one after the other, and its state."""

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
from runners.kernels.introspection import BUSY, Question, ask
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
    Introspection,
    IntrospectionRequest,
    KerasVersion,
    Outcome,
    OwnedSession,
    SessionInfo,
    SessionSpec,
    SessionState,
    Topology,
)

log = structlog.get_logger()

_MOST_OF_FILES = 0.75
"""The fraction of a session's memory that its files may take; with more, a run killed for memory ends the sandbox."""
_NOT_USABLE_AFTER = (Outcome.processes,)
"""Outcomes after which processes may remain, which only a fresh kernel removes."""

_JOIN_S = 2.0
"""How long a restarted process may take to appear before a cell begins without it, in seconds."""
_LOOK_S = 0.01

_REASONS: dict[type[Exception], str] = {
    NoDeviceAvailable: "no-device",
    ZygoteUnavailable: "no-sandbox",
    KernelNotReady: "no-kernel",
    SandboxGone: "sandbox-gone",
}
"""Why a session could not continue, as codes that a page can translate; anything else is ``internal``."""

_STARTED_ANEW = {
    True: ("member-restarted", "{tasks} had ended and was restarted. Its variables and other state are gone."),
    False: (
        "cluster-restarted",
        "{tasks} had ended. Workers that train together must start together, so the whole cluster was "
        "restarted: the variables of earlier cells are gone.",
    ),
}
"""By whether the others can continue without the process that ended."""


class KernelSource(Protocol):
    """Where a session gets its kernel: ``kernel_provider.KernelProvider``, or a test's own."""

    def is_cold(self, topology: str, keras: KerasVersion) -> bool:
        """Whether such a kernel has to wait for the import of TensorFlow."""

    async def take(self, topology: str, keras: KerasVersion) -> Kernel:
        """Take a kernel that responds."""


class Session:
    """A session, from its request to its end.

    The node creates it and calls ``admit`` when there is room; ``gone`` is set when it is over.
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
        """Create a session; ``on_run_end`` is called with the seconds that each run took."""
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
        self._question: Question | None = None
        self._restart = False
        self._end: str | None = None
        self._runs = 0
        """Runs that its current kernel has executed."""
        self._cold = False
        """Whether the starting kernel has to wait for an import of TensorFlow."""
        self.used = False
        """Whether any run has been submitted."""
        self._idle_since = self._workless_since = self._requested_at = time.monotonic()
        self._running_since: float | None = None
        self.gone_at = 0.0
        """The monotonic time at which it was gone."""
        self._life: asyncio.Task[None] | None = None

    @property
    def over(self) -> bool:
        """Whether it has ended or is about to."""
        return self.state == SessionState.gone or self._end is not None

    @property
    def idle_s(self) -> float:
        """Seconds since its last run ended, it was kept, or it was requested."""
        return time.monotonic() - self._idle_since

    # --- called by the node ------------------------------------------------------------------------------------

    def standing(self) -> IdleSession | BusySession:
        """The facts that decide how long it keeps its seat."""
        now = time.monotonic()
        if self.state == SessionState.idle and not self.waiting and self.current is None:
            return IdleSession(self.name, now - self._workless_since, self.used)
        running_s = 0.0 if self._running_since is None else now - self._running_since
        return BusySession(running_s, max(0, len(self.waiting) - (self.current is None)))

    def keep(self) -> None:
        """Restart its idle time, because the learner is still there."""
        self._idle_since = time.monotonic()
        self._news.set()

    def owned(self, position: int | None = None) -> OwnedSession:
        """The session in a list of all; the node passes its position in the queue."""
        return OwnedSession(
            id=self.name,
            owner=self.spec.owner,
            state=self.state,
            topology=self.spec.topology,
            keras=self.spec.keras,
            age_s=time.monotonic() - self._requested_at,
            idle_s=self.idle_s if self.state == SessionState.idle else 0.0,
            position=position,
        )

    async def memory_bytes(self) -> int | None:
        """Its memory, without what it shares with others; None while it has no sandbox."""
        return await self._usage.memory_bytes() if self._usage else None

    def info(self, position: int | None = None, wait_s: float | None = None) -> SessionInfo:
        """The session's current state; the node passes its position in the queue and the estimated wait."""
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
        """The processes of its cluster; empty if there is no cluster, or no kernel yet."""
        return self._kernel.sandbox.members if self._kernel and self.state != SessionState.gone else ()

    async def inject_failure(self, failure: InjectedFailure) -> str:
        """Inject a failure into a process of its cluster; returns PID 1's result. Raises SandboxGone."""
        if not self._kernel:
            raise SandboxGone("there is no kernel")
        return await self._kernel.sandbox.inject_failure(failure)

    async def introspect(self, asked: IntrospectionRequest) -> Introspection:
        """Ask the kernel about code: one question at a time, and none while anything else is to be done."""
        paused = bool(self.members) and self.members[0].state == "paused"
        if self.state != SessionState.idle or self.over or self.waiting or self.current or self._question or paused:
            return BUSY
        self._question = question = Question(asked)
        self._news.set()
        return await asyncio.shield(question.answer)

    def admit(self) -> None:
        """Start, because there is room. A session that has ended meanwhile does nothing."""
        if self.over:
            return
        self.state = SessionState.starting
        self._cold = self._source.is_cold(self.spec.topology, self.spec.keras)
        for run in self.waiting:
            run.admitted = time.monotonic()
            self._tell_of_cold(run)
        self._life = asyncio.create_task(self._live(), name=f"session-{self.name}")
        self._life.add_done_callback(self._be_gone)

    def submit(self, run: RunLog) -> int:
        """Accept a run; returns how many come before it."""
        self.used = True
        ahead = len(self.waiting) + (self.current is not None)
        self.waiting.append(run)
        self._drop_question()
        if self.state != SessionState.queued:
            run.admitted = run.accepted
        self._news.set()
        self._tell_of_cold(run)
        return ahead

    def _tell_of_cold(self, run: RunLog) -> None:
        """Explain once in a run why it waits longer than others."""
        if self._cold and self.state == SessionState.starting:
            keras = self.spec.keras
            text = f"TensorFlow with Keras {keras} has to start first, which takes several seconds."
            run.add("notice", code="keras-starting", values={"keras": keras}, text=text)

    def stop(self, run: RunLog) -> None:
        """Interrupt this run, or remove it from the queue."""
        if run is self.current:
            self._stop_current()
        elif run in self.waiting:
            self.waiting.remove(run)
            run.finish(Outcome.interrupted)

    def interrupt(self) -> None:
        """Drop queued runs, and interrupt the current one."""
        self._drop_waiting()
        if self.current:
            self._stop_current()

    def restart(self) -> None:
        """Drop queued runs, end the current one, and fork a fresh kernel."""
        self._drop_waiting()
        self._drop_question()
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
        self._drop_question()
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

    def _drop_question(self) -> None:
        if self._question:
            self._question.drop()

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
            self._drop_question()
            self._finish_the_rest(Outcome.interrupted)
            await self._watching.aclose()
            if self._kernel:
                await asyncio.shield(self._kernel.close())

    def _be_gone(self, _life: asyncio.Task[None] | None = None) -> None:
        """Clean up after the session's task, which may have been canceled before its first step."""
        if self.state != SessionState.gone:
            self.state, self.gone_because = SessionState.gone, self._end or "ended"
        self.gone_at = time.monotonic()
        self.gone.set()

    async def _take_kernel(self) -> None:
        """Get a kernel, and watch its sandbox from now on."""
        self._kernel = await self._source.take(self.spec.topology, self.spec.keras)
        self._name_kernel()
        await self._watching.aclose()
        self._usage = await self._watching.enter_async_context(UsageWatcher(self._kernel.sandbox, self._limits))

    def _name_kernel(self) -> None:
        """Give the kernel a unique name: a session that ended and was requested again gets another one."""
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
        """Execute runs until the session ends; returns why it ended."""
        self._become_idle()
        while True:
            if self._end:
                return self._end
            if self._restart:
                await self._fresh_kernel()
            elif self.waiting:
                await self._run(self.waiting.popleft())
            elif self._question:
                await self._answer(self._question)
            else:
                news = await self._news_within(self._idle_s - self.idle_s)
                if not news and not self.waiting and self.idle_s >= self._idle_s:
                    return "idle"

    async def _answer(self, question: Question) -> None:
        assert self._kernel
        answer = await ask(self._kernel, question) if not question.answer.done() else BUSY
        self._question = None
        question.settle(answer)

    def _become_idle(self) -> None:
        self.state = SessionState.idle
        self._idle_since = self._workless_since = time.monotonic()
        self._running_since = None

    async def _news_within(self, seconds: float) -> bool:
        """Wait for a run or a request; a kernel that dies or breaks its channels while idle is replaced at once.

        If processes that a run has left behind exceed a limit, the session ends.
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
        """Start a kernel in this sandbox, with its files, or in a new one if this one is unusable ``after`` a run."""
        assert self._kernel
        self._restart, self.kernel_id = False, ""
        self.state, self._cold = SessionState.starting, self._kernel.cold
        try:
            await self._kernel.sandbox.kill()
            usable = after != Outcome.memory or not self._files_fill_memory(self._kernel.sandbox)
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

    def _files_fill_memory(self, sandbox: Sandbox) -> bool:
        """Whether the files, which are in memory, would get the next run killed, too."""
        return sandbox.file_bytes() > _MOST_OF_FILES * self._limits.memory_mb * MiB

    async def _start_anew(self, ended: list[str], run: RunLog) -> None:
        """Restart ended processes of the cluster, or all: workers that train together must start together."""
        apart = self._may_start_apart(ended)
        code, text = _STARTED_ANEW[apart]
        who = " and ".join(ended)
        run.add("notice", code=code, values={"tasks": who}, text=text.format(tasks=who))
        if not apart:
            await self._fresh_cluster()
            return
        for task in ended:
            await self.inject_failure(InjectedFailure(task=task, action="restart"))
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_JOIN_S):
                while self._ended_members():  # noqa: ASYNC110 - PID 1 tells of them in its own time
                    await asyncio.sleep(_LOOK_S)

    async def _fresh_cluster(self) -> None:
        """Restart all processes; failures that a learner has injected for the next run wait in the new ones."""
        pending = [
            InjectedFailure(task=member.task, action=member.scheduled.action, at_step=member.scheduled.at_step)
            for member in self.members
            if member.scheduled
        ]
        await self._fresh_kernel()
        with contextlib.suppress(SandboxGone):
            for failure in pending:
                await self.inject_failure(failure)

    def _may_start_apart(self, tasks: list[str]) -> bool:
        """Whether the rest of the cluster can continue without these processes."""
        return Topology.parse(self.spec.topology).kind == "ps" or tasks == ["evaluator"]

    def _ended_members(self) -> list[str]:
        """The processes without which the others cannot go on, for they have ended, whether or not they run again."""
        ended = [member.task for member in self.members if member.state == "ended"]
        ever_ended = [member.task for member in self.members if member.state == "ended" or member.restarted]
        return ended if self._may_start_apart(ever_ended) else ever_ended

    def _tell_of_pause(self, run: RunLog) -> None:
        """Report that the kernel's own process is paused: it cannot do so itself. It reports the others."""
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
        elif self._usage.met:  # just as it ended: what it has left behind
            self.end(self._usage.met)
        if (self._kernel.exited.done() or outcome in _NOT_USABLE_AFTER) and not self._end:
            await self._fresh_kernel(after=outcome)
