"""One sandbox of a judgement: a kernel, what it uses, and the pieces of code that it is given one after the other."""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from runners.config.settings import Limits
from runners.kernels.kernel_pool import Kernel
from runners.sandbox.handle import SandboxGone
from runners.sandbox.usage import UsageWatcher
from runners.supervisor.execution import Execution, Snippet
from runners.supervisor.outcome import ReportedError, RunEnding
from runners.supervisor.run_log import RunLog
from runners.supervisor.session import KernelSource
from runners.wire import check_messages
from runners.wire.protocol import InjectedFailure, KerasVersion, NeededCell, Outcome, Topology

_GOES_ON_AFTER = (Outcome.ok, Outcome.error)
_JOIN_S = 2.0
"""How long a restarted process of a cluster may take to appear, in seconds."""
_LOOK_S = 0.01
_LONGEST_ERROR = 2000
_SEED_S = 30.0
"""How long seeding may take, in seconds: it is Lockstep's code, and on a busy machine it takes longer than a cell."""


class JudgementFault(Exception):
    """Lockstep, the lesson or its checks failed, and not the submission. The text is for instructors."""


class NeededCellFailed(JudgementFault):
    """What comes before the submission failed."""

    def __init__(self, text: str, answered: Answered) -> None:
        super().__init__(text)
        self.answered = answered


@dataclass(frozen=True, slots=True)
class Answered:
    """What came of one piece of code."""

    ending: RunEnding
    answers: tuple[str | None, ...]
    """Of each process of the machine, in the order of its tasks; one if it is no cluster."""
    error: ReportedError | None
    printed: str
    peak_bytes: int | None


class JudgingSandbox:
    """A sandbox that nothing ran in before. ``close`` leaves nothing of it.

    Attributes:
        usable: False once a step ended in a way after which no more should be asked of it.
    """

    def __init__(self, kernel: Kernel, usage: UsageWatcher, watching: contextlib.AsyncExitStack) -> None:
        self.usable = True
        self._waits = False
        self._kernel = kernel
        self._usage = usage
        self._watching = watching
        tasks = Topology.parse(kernel.topology).tasks
        self._lanes = [task.lane for task in tasks]

    @classmethod
    async def open(cls, source: KernelSource, topology: str, keras: KerasVersion, limits: Limits) -> JudgingSandbox:
        """Take a kernel. Raises as ``KernelSource.take`` does, but JudgementFault for a sandbox that ends at once."""
        try:
            kernel = await source.take(topology, keras)
        except SandboxGone as e:
            raise JudgementFault(f"no sandbox for {topology}: {e}") from e
        watching = contextlib.AsyncExitStack()
        try:
            return cls(kernel, await watching.enter_async_context(UsageWatcher(kernel.sandbox, limits)), watching)
        except BaseException:
            await kernel.close()
            raise

    async def close(self) -> None:
        """End it."""
        self.usable = False
        await self._watching.aclose()
        await self._kernel.close()

    async def ask(self, snippet: Snippet, log: RunLog, limits: Limits) -> Answered:
        """Run a piece of code, whose output becomes events of ``log``."""
        execution = Execution(log, limits, snippet)
        ending, peak_bytes = await execution.perform(self._kernel, self._usage)
        log.flush()
        if ending.outcome not in _GOES_ON_AFTER or self._kernel.exited.done():
            self.usable = False
        answers = execution.answers
        own = answers.get(None)
        each = tuple(answers.get(lane, own if not n else None) for n, lane in enumerate(self._lanes)) or (own,)
        return Answered(ending, each, execution.error, execution.printed, peak_bytes)

    # --- clusters -----------------------------------------------------------------------------------------------

    async def kill(self, task: str, at_step: int | None) -> bool:
        """Have a process of the cluster killed, now or at a step; returns whether it was.

        Raises:
            JudgementFault: there is no such process.
            SandboxGone: so are all below.
        """
        if task not in self._lanes[1:]:
            raise JudgementFault(f"{self._kernel.topology} has no {task!r} that could be killed")
        result = await self._do(InjectedFailure(task=task, action="kill", at_step=at_step))
        self._waits = result == "scheduled"
        return result == "done"

    def number(self, task: str) -> int:
        """Where its answer is among those of all processes."""
        return self._lanes.index(task)

    async def end_wait(self, task: str) -> bool:
        """Wait no longer for the step; returns whether it was reached, and the process killed."""
        return self._waits and await self._do(InjectedFailure(task=task, action="cancel")) != "done"

    @property
    def ended(self) -> list[str]:
        """Processes of the cluster that have ended."""
        return [member.task for member in self._kernel.sandbox.members if member.state == "ended"]

    async def restart_ended(self) -> bool:
        """Start again what has ended, with the files as they are; whether that cost all processes their memory."""
        ended = self.ended
        apart = Topology.parse(self._kernel.topology).kind == "ps" or ended == ["evaluator"]
        if not apart or self._kernel.exited.done():
            await self._kernel.sandbox.kill()
            await self._kernel.restart()
            return True
        for task in ended:
            await self._do(InjectedFailure(task=task, action="restart"))
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_JOIN_S):
                while self.ended:  # noqa: ASYNC110 - PID 1 tells of them in its own time
                    await asyncio.sleep(_LOOK_S)
        return False

    async def _do(self, failure: InjectedFailure) -> str:
        return await self._kernel.sandbox.inject_failure(failure)


def line(function: str, *arguments: Any) -> str:
    """The cell of one line that calls a function of ``runners.guest.judging``; the arguments are literals."""
    module, name = function.split(".")
    called = ", ".join(map(repr, arguments))
    return f"__import__('runners.guest.judging.{module}', fromlist=['*']).{name}({called})"


async def prepare(
    sandbox: JudgingSandbox, seed: int, cells: Sequence[NeededCell], log: RunLog, limits: Limits, seconds: float
) -> None:
    """Run what comes before a submission. Raises NeededCellFailed."""
    begun = time.monotonic()
    snippets = [("seed", Snippet(line("submission.seed", seed), _SEED_S))]
    snippets += [(f"cell {cell.name}", Snippet(cell.code, seconds, cell=True)) for cell in cells]
    for name, snippet in snippets:
        answered = await sandbox.ask(snippet, log, limits)
        if answered.ending.outcome != Outcome.ok:
            error = f": {answered.error.name}: {answered.error.value}" if answered.error else ""
            took = f" after {time.monotonic() - begun:.1f} s"
            raise NeededCellFailed(f"the needed {name} ended {answered.ending.outcome}{took}{error}", answered)


def as_answer(answered: Answered, seconds: float) -> dict[str, Any]:
    """The answer for the judge: see ``runners.guest.judging.judge._ask``."""
    return {"outcome": answered.ending.outcome, "seconds": seconds, "answers": answered.answers}


def as_failed_rerun(answered: Answered, seconds: float) -> dict[str, Any]:
    """The same, if nothing could be called because the submission was run once more and did not end well."""
    answers: tuple[str, ...] = ()
    if answered.ending.outcome == Outcome.error and (error := answered.error):
        values = {"error": error.name, "text": error.value[:_LONGEST_ERROR]}
        answers = (json.dumps({"failed": check_messages.RAISED, "values": values}),)
    return as_answer(replace(answered, answers=answers), seconds)
