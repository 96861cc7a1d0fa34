"""Executes one run in one kernel: sends the code, turns messages into events, and judges the end from outside."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Literal

import structlog

from runners.config.settings import Limits
from runners.kernels import crashes, messages
from runners.kernels.envelope import TooManyValues
from runners.kernels.kernel_pool import MALFORMED_ERRORS, Kernel
from runners.sandbox.handle import SandboxGone
from runners.sandbox.usage import UsageWatcher
from runners.supervisor.outcome import (
    FreeSpace,
    ReportedError,
    RunEnding,
    RunEvidence,
    determine_outcome,
    reached_limit,
)
from runners.supervisor.run_log import RunLog
from runners.wire.exit_status import is_clean_exit
from runners.wire.protocol import LimitName, Outcome, TracebackFrame
from runners.wire.reports import answer_from_message, lane_from_metadata

log = structlog.get_logger()

_PATIENCE_S = (2.0, 3.0)
"""How long a run may take to end after the first and after the second interrupt, before it is killed."""
_DRAIN_S = 5.0
"""How long reading the rest of the output of an ended kernel may take: at most the content of its socket."""
_ANSWER_S = 1.0
"""A kernel replies to a run before it reports to be idle; if the reply is this late, the kernel is asked again."""
_CUT_OFF_S = 0.5
"""A kernel whose channel broke has usually ended, which is known within this time."""

_TURN_S = 1e-3
"""How long one session's messages are read before other sessions have their turn."""
_SWITCH_S = 60e-6
"""CPU time that the event loop takes for a turn."""
_SEND_S = 350e-6
"""CPU time that sending events to the web application takes, with the answer that they are stored."""
_MOST_NOTICES = 200
"""The most notices from inside in one run: they do not count as output, and a program can forge them."""
_MOST_ANSWERS = 32
"""Lanes that may answer one snippet: as many as a cluster has processes, and some that are made up."""
_MOST_PRINTED = 200_000
_TO_BE_KILLED: tuple[LimitName, ...] = ("output", "output_rate", "events", "memory")
"""A program that has reached one of these limits would do further damage while it is asked to stop."""


@dataclass(frozen=True, slots=True)
class Snippet:
    """A piece of code that is not the whole of a run: a cell of it, or a line that asks for an answer.

    Attributes:
        code: what is executed.
        seconds: how long it may take.
        cell: whether it is somebody's cell, and so part of the kernel's history.
    """

    code: str
    seconds: float
    cell: bool = False


class Execution:
    """One run, from the code to the outcome. ``stop`` may be called at any time, also before ``carry_out``."""

    def __init__(self, run: RunLog, limits: Limits, snippet: Snippet | None = None) -> None:
        """With a ``snippet``, this is one of the pieces of code that make up the run."""
        self.dropped = 0
        """Invalid messages."""
        self.answers: dict[str | None, str] = {}
        """To a snippet that asks: the last answer of each lane, the kernel's own under None."""
        self.printed = ""
        """By a snippet on standard output, as much as a check may look at."""
        self._snippet = snippet
        self._code = run.request.code if snippet is None else snippet.code
        self._run = run
        self._limits = limits
        self._stop_now = asyncio.Event()
        self._kill_now = asyncio.Event()
        self._error: ReportedError | None = None
        self._notices = 0
        self._rested = 0.0
        self._sent = run.sent
        asked = run.request.timeout_s if snippet is None else snippet.seconds
        self._run_s = min(asked, limits.run_s) if asked else limits.run_s

    def stop(self, *, kill: bool = False) -> None:
        """Request the end of the run; with ``kill``, kill it instead of interrupting it first."""
        if kill:
            self._kill_now.set()
        self._stop_now.set()

    @property
    def error(self) -> ReportedError | None:
        """The exception that left the code."""
        return self._error

    async def carry_out(self, kernel: Kernel, usage: UsageWatcher) -> Outcome:
        """Run the code in ``kernel`` and record everything until the end; ``usage`` watches its sandbox."""
        self._run.add("started", kernel_id=self._run.kernel_id)
        ending, peak_bytes = await self.perform(kernel, usage)
        limit = reached_limit(ending.met, self._limits, self._run_s) if ending.met else None
        exited = self._error is not None and self._error.name == "SystemExit"
        self._run.finish(ending.outcome, peak_bytes=peak_bytes, limit=limit, exited=exited)
        return ending.outcome

    async def perform(self, kernel: Kernel, usage: UsageWatcher) -> tuple[RunEnding, int | None]:
        """Run the code in ``kernel`` and record its output, but not its end: that is returned, with the most memory
        that the sandbox held, in bytes, if anybody counts it."""
        self._kernel, group = kernel, kernel.sandbox.group
        before = group.facts()
        usage.begin_run()
        request = self._kernel.execute(self._code, store_history=self._snippet is None or self._snippet.cell)
        output = asyncio.create_task(self._read_output(request))
        try:
            stopped_for = await self._wait(output, usage)
            if self._kernel.exited.done():
                await self._hear_the_rest(output)
                stopped_for = stopped_for or self._run.met
        finally:
            output.cancel()
            await asyncio.gather(output, return_exceptions=True)
            after = group.facts()
            usage.end_run()
        exited = self._kernel.exited
        facts = RunEvidence(
            interrupted=stopped_for == "interrupted",
            met=stopped_for if stopped_for != "interrupted" else None,
            exit_status=exited.result() if exited.done() else None,
            error=self._error,
            oom_kills=after.oom_kills - before.oom_kills,
            forks_refused=after.forks_refused - before.forks_refused,
            peak_bytes=usage.peak_bytes if after.peak_bytes is None else after.peak_bytes,
            folders=self._what_is_left(),
        )
        ending = determine_outcome(facts, self._limits)
        if ending.outcome == Outcome.crash:
            self._tell_of_crash(facts.exit_status)
        return ending, facts.peak_bytes

    def _tell_of_crash(self, status: int | None) -> None:
        """Log a crash: only this tells later whether learner code, Lockstep or TensorFlow caused it."""
        sandbox = self._kernel.sandbox
        stack = crashes.parse_stack(sandbox.trace)
        where = [f"{call.file}:{call.line} {call.function}" for call in stack]
        log.warning("kernel ended in a run", sandbox=sandbox.name, status=status, calls=where)
        if status is not None and stack:
            frames = crashes.to_traceback_frames(stack, self._code)
            name, value = crashes.describe_signal(status)
            frames.append(TracebackFrame(text=f"{name}: {value}", own=True))
            self._run.add("error", name=name, value=value, frames=frames)

    def _what_is_left(self) -> tuple[FreeSpace, ...]:
        """The free space in the session's folders, if an error may be about it."""
        if self._error is None:
            return ()
        with contextlib.suppress(SandboxGone):
            return tuple(FreeSpace(*left) for left in self._kernel.sandbox.free_space())
        return ()

    async def _wait(self, output: asyncio.Task[None], usage: UsageWatcher) -> LimitName | Literal["interrupted"] | None:
        """Wait for the end; returns why the run was stopped, or None if it ended by itself."""
        stop, overflow, exceeded, cut_off = causes = [
            asyncio.create_task(event.wait())
            for event in (self._stop_now, self._run.overflow, usage.exceeded, self._kernel.cut_off)
        ]
        exited = self._kernel.exited
        try:
            awaited: set[asyncio.Future[Any]] = {output, exited, *causes}
            done, _ = await asyncio.wait(awaited, timeout=self._run_s, return_when="FIRST_COMPLETED")
            if output in done:
                output.result()
                return None
            if cut_off in done:
                await self._end_what_broke()
            if exited.done() and exceeded not in done:
                return None
            why: LimitName | Literal["interrupted"] = "time"
            if overflow in done or cut_off in done:
                why = self._run.met or "output"
            elif exceeded in done:
                why = usage.met or "memory"
            elif stop in done:
                why = "interrupted"
            if why in _TO_BE_KILLED:
                self._kill_now.set()
            await self._bring_to_an_end(output)
            return why
        finally:
            for task in causes:
                task.cancel()

    async def _hear_the_rest(self, output: asyncio.Task[None]) -> None:
        """Read the messages that an ended kernel had sent, and the text that it had printed but not sent."""
        if self._run.overflow.is_set() or self._kernel.sent_too_much:
            return
        drained = asyncio.create_task(self._kernel.drained.wait())
        try:
            await asyncio.wait({output, drained}, timeout=_DRAIN_S, return_when="FIRST_COMPLETED")
        finally:
            drained.cancel()
        for stream, text, lane in self._kernel.unheard():
            self._run.text(stream, text, lane)

    async def _end_what_broke(self) -> None:
        """Find out how a kernel that broke a channel ended. If it is still alive, kill it: it can no longer be heard.

        A message that is too large is the exception: it counts as too much output.
        """
        await asyncio.wait({self._kernel.exited}, timeout=_CUT_OFF_S)
        if not self._kernel.sent_too_much:
            await self._kernel.sandbox.kill()

    async def _bring_to_an_end(self, output: asyncio.Task[None]) -> None:
        """Interrupt, interrupt again, then kill.

        A run that ends before its interrupt was sent is over only afterward: the next one would be interrupted instead.
        """
        exited = self._kernel.exited
        killing = asyncio.create_task(self._kill_now.wait())
        tasks: list[asyncio.Task[Any]] = [killing]
        ended: set[asyncio.Future[Any]] = {output}  # with the interrupts that were sent
        try:
            for patience in _PATIENCE_S:
                if self._kill_now.is_set():
                    break
                with contextlib.suppress(SandboxGone):
                    ended.add(self._kernel.interrupt())
                tasks.append(over := asyncio.create_task(asyncio.wait(ended)))
                awaited: set[asyncio.Future[Any]] = {over, exited, killing}
                await asyncio.wait(awaited, timeout=patience, return_when="FIRST_COMPLETED")
                if over.done() or exited.done():
                    return
        finally:
            for task in tasks:
                task.cancel()
        await self._kernel.sandbox.kill()

    async def _read_output(self, request: str) -> None:
        """Turn messages into events until the kernel is idle after the request and has replied to it.

        A program can forge the idle message; without the reply, the run continues. A kernel may also be unable to
        reply. It then gets another request, and once it has handled that, it is past this one.
        """
        answer = asyncio.create_task(self._read_answer(request))
        probe: str | None = None
        try:
            while True:
                await self._rest()
                try:
                    message = await self._counted(self._kernel.output)
                    if probe and messages.is_idle(message, probe):
                        await asyncio.wait({answer}, timeout=_ANSWER_S)  # it was sent earlier, on another channel
                        break
                    if messages.is_idle(message, request):
                        await asyncio.wait({answer}, timeout=0 if probe else _ANSWER_S)
                        if answer.done():
                            break
                        probe = probe or self._kernel.probe()
                    self._turn_into_event(message)
                except TooManyValues as e:
                    self._run.too_many_values(e.size)
                except MALFORMED_ERRORS:
                    self.dropped += 1
            if self._error is None:
                self._fail(answer.result() if answer.done() else ("Error", "the error that ended the code has no text"))
        finally:
            answer.cancel()

    async def _rest(self) -> None:
        """Let other sessions have their turn. One that floods its channels waits until its next turn.

        Its messages meanwhile wait in its own memory.
        """
        share, sent, now = self._kernel.share, self._run.sent, time.monotonic()
        share.spend((sent - self._sent) * _SEND_S)
        self._sent = sent
        pause_s = share.pause_s(now)
        if pause_s or now - self._rested > _TURN_S:
            share.spend(_SWITCH_S)
            await asyncio.sleep(pause_s)
            self._rested = time.monotonic()

    async def _counted(self, take: Callable[[], Awaitable[dict[str, Any]]]) -> dict[str, Any]:
        """Wait for the next message of a channel; even an invalid one counts toward the run's limits."""
        try:
            message = await take()
        except MALFORMED_ERRORS:
            self._run.received(self._kernel.message_bytes)
            self._run.shows_nothing(self._kernel.message_bytes)
            raise
        self._run.received(self._kernel.message_bytes)
        return message

    def _turn_into_event(self, message: dict[str, Any]) -> None:
        begun = time.thread_time()
        if self._snippet is not None and (answer := answer_from_message(message)) is not None:
            self._hear_answer(lane_from_metadata(message.get("metadata")), answer)
            return
        if not self._take(messages.to_event_fields(message)):
            self._run.shows_nothing(self._kernel.message_bytes)
        self._kernel.share.spend(time.thread_time() - begun)

    def _hear_answer(self, lane: str | None, answer: str) -> None:
        if lane in self.answers or len(self.answers) < _MOST_ANSWERS:
            self.answers[lane] = answer

    def _take(self, fields: messages.Fields | None) -> bool:
        """Record what a message says; returns whether that is, or can become, an event."""
        if fields is None:
            return False
        kind, values = fields
        if kind == "text":
            self._run.text(**values)
            if self._snippet is not None and values["stream"] == "stdout" and len(self.printed) < _MOST_PRINTED:
                self.printed += values["text"]
            return True
        if kind == "unshown":
            self._run.not_shown(**values)
            return True
        if kind == "notice":
            self._notices += 1
            if self._notices > _MOST_NOTICES:
                return False
        if kind == "error" and values.get("lane") is None:
            raised = messages.ends_in_own_raise(values["frames"])
            self._error = ReportedError(values["name"], values["value"], raised)
        self._run.add(kind, **values)
        return True

    def _fail(self, error: tuple[str, str] | None) -> None:
        """Record an error that no message showed, unless it is the clean exit of a script."""
        if error is None:
            return
        name, value = error
        self._error = ReportedError(name, value)
        if not is_clean_exit(name, value):
            self._run.add("error", name=name, value=value, frames=[TracebackFrame(text=f"{name}: {value}", own=True)])

    async def _read_answer(self, request: str) -> tuple[str, str] | None:
        """Wait for the reply on the other channel; returns the error that ended the code, if any."""
        while True:
            await self._rest()
            try:
                answered, error = messages.reply_error(await self._counted(self._kernel.reply), request)
                if answered:
                    return error
            except MALFORMED_ERRORS:
                self.dropped += 1
