"""One run in one kernel: its code goes in, its messages become events, and its end is judged from outside."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

from runners import messages
from runners.kernels import MALFORMED, Kernel
from runners.outcome import Facts, judge, met_limit
from runners.protocol import Frame, Outcome
from runners.runlog import RunLog
from runners.sandbox.host import SandboxGone
from runners.sandbox.usage import MemoryWatch
from runners.settings import Limits

_PATIENCE_S = (2.0, 3.0)
"""How long a run may take to end after the first and after the second interrupt, before it is killed."""
_DRAIN_S = 0.3
_ANSWER_S = 1.0
"""The answer to a run comes before the kernel says that it is done; this much later the kernel is asked again."""
_CUT_OFF_S = 0.5
"""A kernel whose channel broke has mostly ended; its end is known this much later at the latest."""


class Execution:
    """One run, from the code to the outcome. ``stop`` may be called at any time, also before ``carry_out``."""

    def __init__(self, run: RunLog, limits: Limits) -> None:
        self.dropped = 0
        """Messages that were none."""
        self._run = run
        self._limits = limits
        self._stop_for: Outcome | None = None
        self._stop_now = asyncio.Event()
        self._error: tuple[str, str] | None = None
        asked = run.request.timeout_s
        self._run_s = min(asked, limits.run_s) if asked else limits.run_s

    def stop(self, outcome: Outcome) -> None:
        """End it, soon. The first reason counts."""
        self._stop_for = self._stop_for or outcome
        self._stop_now.set()

    async def carry_out(self, kernel: Kernel) -> Outcome:
        """Run the code in ``kernel`` and record all that comes of it, to the end."""
        self._kernel, group = kernel, kernel.sandbox.group
        group.reset_peak()
        before = group.facts()
        self._run.add("started")
        request = self._kernel.execute(self._run.request.code)
        async with MemoryWatch(self._kernel.sandbox, self._limits) as memory:
            output = asyncio.create_task(self._read_output(request))
            try:
                stopped_for = await self._wait(output, memory)
            finally:
                output.cancel()
                await asyncio.gather(output, return_exceptions=True)
        after = group.facts()
        exited = self._kernel.exited
        facts = Facts(
            stopped_for=stopped_for,
            exit_status=exited.result() if exited.done() else None,
            error=self._error,
            oom_kills=after.oom_kills - before.oom_kills,
            forks_refused=after.forks_refused - before.forks_refused,
        )
        outcome = judge(facts)
        peak = after.peak_bytes if after.peak_bytes is not None else memory.peak_bytes
        limit = met_limit(outcome, self._limits, self._run_s)
        self._run.finish(outcome, peak_bytes=peak, limit=limit)
        return outcome

    async def _wait(self, output: asyncio.Task[None], memory: MemoryWatch) -> Outcome | None:
        """Wait for the end; returns why the run was stopped, or None if it ended by itself."""
        causes = {
            asyncio.create_task(self._stop_now.wait()): None,
            asyncio.create_task(self._run.overflow.wait()): Outcome.output,
            asyncio.create_task(memory.exceeded.wait()): Outcome.memory,
            (cut_off := asyncio.create_task(self._kernel.cut_off.wait())): Outcome.output,
        }
        exited = self._kernel.exited
        try:
            awaited: set[asyncio.Future[Any]] = {output, exited, *causes}
            done, _ = await asyncio.wait(awaited, timeout=self._run_s, return_when="FIRST_COMPLETED")
            if output in done:
                output.result()
                return None
            if cut_off in done:
                await self._end_what_broke()
            if exited.done():
                await asyncio.wait({output}, timeout=_DRAIN_S)
                return None
            why = next((cause for task, cause in causes.items() if task in done), Outcome.timeout)
            why = why or self._stop_for or Outcome.interrupted
            await self._bring_to_an_end(output, kill=why in (Outcome.output, Outcome.memory))
            return why
        finally:
            for task in causes:
                task.cancel()

    async def _end_what_broke(self) -> None:
        """See how a kernel that broke a channel ended. One that lives on is ended: nothing more will be heard of it.

        Only a message that is too large is left to be judged as output.
        """
        await asyncio.wait({self._kernel.exited}, timeout=_CUT_OFF_S)
        if not self._kernel.sent_too_much:
            with contextlib.suppress(SandboxGone):
                self._kernel.sandbox.send_signal(9)

    async def _bring_to_an_end(self, output: asyncio.Task[None], kill: bool) -> None:
        """Interrupt politely, then firmly, then kill."""
        for patience in () if kill else _PATIENCE_S:
            with contextlib.suppress(SandboxGone):
                self._kernel.interrupt()
            awaited: set[asyncio.Future[Any]] = {output, self._kernel.exited}
            done, _ = await asyncio.wait(awaited, timeout=patience, return_when="FIRST_COMPLETED")
            if done:
                return
        with contextlib.suppress(SandboxGone):
            self._kernel.sandbox.send_signal(9)
        await asyncio.wait({self._kernel.exited}, timeout=_DRAIN_S)

    async def _read_output(self, request: str) -> None:
        """Turn messages into events until the kernel is done with the request: it says so, and has answered it.

        A program can forge the word; then it goes on. A kernel may also be unable to answer: it is asked something
        else, and once it has dealt with that, it is past the request.
        """
        answer = asyncio.create_task(self._read_answer(request))
        probe: str | None = None
        try:
            while True:
                await asyncio.sleep(0)  # a flood of messages is read between the others' turns
                try:
                    message = await self._kernel.output()
                    if probe and messages.is_idle(message, probe):
                        await asyncio.wait({answer}, timeout=_ANSWER_S)  # it was sent first, on another channel
                        break
                    if messages.is_idle(message, request):
                        await asyncio.wait({answer}, timeout=0 if probe else _ANSWER_S)
                        if answer.done():
                            break
                        probe = probe or self._kernel.probe()
                    self._take(messages.as_event(message))
                except MALFORMED:
                    self.dropped += 1
            if self._error is None:
                self._fail(answer.result() if answer.done() else ("Error", "the error that ended the code has no text"))
        finally:
            answer.cancel()

    def _take(self, fields: messages.Fields | None) -> None:
        if fields is None:
            return
        kind, values = fields
        if kind == "text":
            self._run.text(values["stream"], values["text"])
            return
        if kind == "error":
            self._error = values["name"], values["value"]
        self._run.add(kind, **values)

    def _fail(self, error: tuple[str, str] | None) -> None:
        """Record an error that no message showed."""
        if error:
            self._error = name, value = error
            self._run.add("error", name=name, value=value, frames=[Frame(text=f"{name}: {value}", own=True)])

    async def _read_answer(self, request: str) -> tuple[str, str] | None:
        """Wait for the answer on the other channel; returns the error that ended the code, if one did."""
        while True:
            await asyncio.sleep(0)
            try:
                answered, error = messages.failure(await self._kernel.reply(), request)
                if answered:
                    return error
            except MALFORMED:
                self.dropped += 1
