"""A judgement: a submission in one sandbox, the judge in another, and the solution in further ones if it is asked for.

It is a session that nobody else uses and that ends with its one run, so it is queued, counted, stopped and reported as
any other. The verdict is made in the judge's sandbox; here its questions are carried to the others. See
``docs/develop/judging.md``.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import secrets
from collections.abc import Coroutine
from typing import Any, TypeVar

import structlog
from pydantic import ValidationError

from runners.config.settings import Limits
from runners.sandbox.handle import SandboxGone
from runners.supervisor.execution import Snippet
from runners.supervisor.judging_sandbox import (
    Answered,
    JudgementFault,
    JudgingSandbox,
    NeededCellFailed,
    as_answer,
    as_failed_rerun,
    line,
    prepare,
)
from runners.supervisor.outcome import reached_limit
from runners.supervisor.run_log import RunLog
from runners.supervisor.session import KernelSource, Session
from runners.wire import check_messages
from runners.wire.judging import JudgeRequest, JudgeStep, ReportedCheck
from runners.wire.protocol import Judgement, NeededCell, Outcome, SessionState, Topology

log = structlog.get_logger()
T = TypeVar("T")

_JUDGE_TOPOLOGY = "cpu"
_JUDGE_S = 30.0
"""How long the judge may compute between two questions, in seconds."""
_MOST_SUBMISSIONS = 8
"""Sandboxes of one submission: the first, and fresh ones."""
_MOST_REFERENCES = 4
_REFERENCE = re.compile(r"\.reference(?:_value)?\(")
_TOPOLOGY = re.compile(r"""topology\s*=\s*["']([^"']+)["']""")


class JudgementSession(Session):
    """A session for one judgement. Made by the node, as any session."""

    _judging: asyncio.Task[Outcome] | None = None

    def _stop_current(self, *, kill: bool = False) -> None:
        if self._judging:
            self._judging.cancel()

    async def _take_kernel(self) -> None:
        """Each of its sandboxes has a kernel of its own."""

    async def _work(self) -> str:
        if not self.waiting:
            return self._end or "ended"
        self.state = SessionState.busy
        self.current = run = self.waiting.popleft()
        bench = JudgementBench(run, self.spec.topology, self.spec.keras, self._limits, self._source)
        self._judging = asyncio.create_task(bench.judge(), name=f"judgement-{self.name}")
        try:
            await self._judging
        except asyncio.CancelledError:
            if not self._judging.cancelled():
                raise
            run.finish(Outcome.interrupted)
        finally:
            await asyncio.shield(bench.close())
        self.current = None
        return self._end or "ended"


class JudgementBench:
    """The sandboxes of one judgement and what goes between them."""

    def __init__(self, run: RunLog, topology: str, keras: Any, limits: Limits, source: KernelSource) -> None:
        assert run.request.judgement
        self._run = run
        self._judgement: Judgement = run.request.judgement
        self._code = run.request.code
        self._topology, self._keras = topology, keras
        self._limits = limits
        self._source = source
        self._seed = secrets.randbelow(2**31)
        self._left: list[str] = []
        """Checks that are not judged yet."""
        self._recorded = 0
        self._reached = True
        """Whether the submission can be asked anything."""
        self._peak_bytes: int | None = None
        self._opened: list[JudgingSandbox] = []
        self._opening: set[asyncio.Task[Any]] = set()
        self._submissions: dict[int, JudgingSandbox] = {}
        self._references: dict[str, asyncio.Task[JudgingSandbox]] = {}
        self._graphs: JudgingSandbox | None = None

    async def judge(self) -> Outcome:
        """Judge, to the last event of the run."""
        self._run.add("started", kernel_id="")
        limit, outcome = None, Outcome.ok
        try:
            async with asyncio.timeout(self._limits.run_s) as run_time:
                outcome = await self._judge()
        except JudgementFault as e:
            self._blame_nobody(str(e))
        except Exception as e:
            if not run_time.expired():
                self._blame_nobody(f"{type(e).__name__}: {e}")
                raise
            limit, outcome = reached_limit("time", self._limits, self._limits.run_s), Outcome.timeout
            for name in self._left:
                self._record(ReportedCheck(name=name, outcome="not-reached", message=check_messages.NOT_REACHED))
        self._run.finish(outcome, peak_bytes=self._peak_bytes, limit=limit)
        return outcome

    def _blame_nobody(self, why: str) -> None:
        """Call what is left to judge a fault."""
        log.warning("a judgement failed", exercise=self._judgement.exercise, why=why)
        for name in self._left or ([] if self._recorded else [""]):
            self._record(ReportedCheck(name=name, outcome="fault", message=check_messages.FAULT, detail=why[-8000:]))

    async def close(self) -> None:
        """End every sandbox."""
        for task in self._opening:
            task.cancel()
        await asyncio.gather(*self._opening, return_exceptions=True)
        await asyncio.gather(*(sandbox.close() for sandbox in self._opened))

    async def _judge(self) -> Outcome:
        judge = self._begin(self._open(_JUDGE_TOPOLOGY))
        for topology in self._likely_references():
            self._references[topology] = self._begin(self._open_reference(topology))
        fault, outcome, printed = None, Outcome.ok, ""
        try:
            self._submissions[0], answered = await self._submit(self._run)
            outcome, printed = answered.ending.outcome, answered.printed
            self._reached = outcome == Outcome.ok
        except JudgementFault as e:
            fault, self._reached = e, False
        step = await self._step(await judge, "judge.begin", self._begin_message(printed))
        self._left = list(step.names)
        if fault or step.fault:
            raise fault or JudgementFault(step.fault)
        while True:
            for result in step.results:
                self._record(result)
            if step.request is None:
                break
            step = await self._step(await judge, "judge.resume", await self._carry_out(step.request))
        if self._left:
            raise JudgementFault("the judge ended before it had judged all checks")
        return outcome

    def _begin_message(self, printed: str) -> str:
        """What ``judge.begin`` is called with."""
        task = {"exercise": self._judgement.exercise, "checks": self._judgement.checks, "source": self._code}
        return json.dumps(task | {"output": printed, "seed": self._seed, "reached": self._reached})

    def _record(self, result: ReportedCheck) -> None:
        if result.outcome == "fault":
            log.warning("a check failed itself", exercise=self._judgement.exercise, check=result.name)
        self._left = [name for name in self._left if name != result.name]
        self._recorded += 1
        self._run.add("check", **result.model_dump())

    # --- the judge ----------------------------------------------------------------------------------------------

    async def _step(self, judge: JudgingSandbox, function: str, text: str) -> JudgeStep:
        """Let the judge go on until it asks for something or is done."""
        answered = await judge.ask(Snippet(line(function, text), _JUDGE_S), self._unseen(), self._limits)
        step = answered.answers[0]
        if answered.ending.outcome != Outcome.ok or step is None:
            error = f": {answered.error.name}: {answered.error.value}" if answered.error else ""
            raise JudgementFault(f"the judge ended {answered.ending.outcome}{error}")
        try:
            return JudgeStep.model_validate_json(step)
        except ValidationError as e:
            raise JudgementFault(f"the judge sent an invalid message: {e}") from e

    async def _carry_out(self, request: JudgeRequest) -> str:
        """Ask another sandbox; returns the answer for the judge, as JSON."""
        try:
            match request.sandbox:
                case "submission":
                    return json.dumps(await self._ask_submission(request))
                case "reference":
                    sandbox = await self._reference(request.topology or self._topology)
                case "graph":
                    sandbox = await self._graph_sandbox()
            return json.dumps(await self._ask(sandbox, request, self._unseen()))
        except JudgementFault as e:
            return json.dumps({"fault": str(e)})

    async def _ask(self, sandbox: JudgingSandbox, request: JudgeRequest, log: RunLog) -> dict[str, Any]:
        seconds = self._judgement.seconds
        answered = await sandbox.ask(Snippet(line("submission.answer", request.do), seconds), log, self._limits)
        if request.sandbox == "reference" and not sandbox.usable:
            raise JudgementFault(f"the reference ended {answered.ending.outcome}")
        self._note_peak(answered)
        return as_answer(answered, seconds)

    # --- the submission -----------------------------------------------------------------------------------------

    async def _submit(self, log: RunLog) -> tuple[JudgingSandbox, Answered]:
        """The submission in a new sandbox."""
        sandbox = await self._open(self._topology)
        return sandbox, await self._run_submission(sandbox, log)

    async def _run_submission(self, sandbox: JudgingSandbox, log: RunLog) -> Answered:
        await self._prepare(sandbox)
        submission = Snippet(self._code, self._judgement.seconds, cell=True)
        answered = await sandbox.ask(submission, log, self._limits)
        self._note_peak(answered)
        return answered

    async def _ask_submission(self, request: JudgeRequest) -> dict[str, Any]:
        if not self._reached:
            return {"outcome": "not-reached", "answers": []}
        try:
            sandbox, rerun = await self._submission(request.number)
            if rerun is not None and rerun.ending.outcome != Outcome.ok:
                self._reached = False
                return as_failed_rerun(rerun, self._judgement.seconds)
            if not request.kill:
                answer = await self._ask(sandbox, request, self._run)
                self._reached = sandbox.usable
                return answer
            at_once = await sandbox.kill(request.kill, request.at_step)
            answer = await self._ask(sandbox, request, self._run)
            killed = at_once or await sandbox.end_wait(request.kill)
        except SandboxGone:
            self._reached = False
            return {"outcome": Outcome.crash, "answers": []}
        sandbox.usable |= killed  # whatever that did to the call
        self._reached = sandbox.usable
        return answer | {"killed": killed, "of_killed": answer["answers"][sandbox.number(request.kill)]}

    async def _submission(self, number: int) -> tuple[JudgingSandbox, Answered | None]:
        """The sandbox of that number; and what came of the submission in it, if it had to be run there now."""
        sandbox = self._submissions.get(number)
        if sandbox is None:
            if len(self._submissions) >= _MOST_SUBMISSIONS:
                raise JudgementFault(f"a check asked for more than {_MOST_SUBMISSIONS - 1} fresh sandboxes")
            self._submissions[number], rerun = await self._submit(self._unseen())
            return self._submissions[number], rerun
        if not sandbox.ended or not await sandbox.restart_ended():
            return sandbox, None
        try:
            return sandbox, await self._run_submission(sandbox, self._unseen())
        except NeededCellFailed as e:
            return sandbox, e.answered  # it ran before: only the files are different, and those are the submission's

    # --- the others ---------------------------------------------------------------------------------------------

    def _likely_references(self) -> list[str]:
        """Machines that the solution will probably be asked on: it starts beside the submission, not after it."""
        if not _REFERENCE.search(self._judgement.checks):
            return []
        named = map(_parsed, _TOPOLOGY.findall(self._judgement.checks))
        return [next(filter(None, named), self._topology)]

    async def _reference(self, topology: str) -> JudgingSandbox:
        known = _parsed(topology)
        if known is None:
            raise JudgementFault(f"{topology!r} is no topology")
        if known not in self._references:
            if len(self._references) >= _MOST_REFERENCES:
                raise JudgementFault(f"a check asked for more than {_MOST_REFERENCES} machines of the reference")
            self._references[known] = self._begin(self._open_reference(known))
        return await self._references[known]

    async def _graph_sandbox(self) -> JudgingSandbox:
        """A sandbox for graphs that the submission has exported: they may end it."""
        if self._graphs is None or not self._graphs.usable:
            self._graphs = await self._open(self._topology)
        return self._graphs

    async def _open_reference(self, topology: str) -> JudgingSandbox:
        sandbox = await self._open(topology)
        await self._prepare(sandbox, NeededCell(name="of the solution", code=self._judgement.solution))
        return sandbox

    async def _prepare(self, sandbox: JudgingSandbox, *more: NeededCell) -> None:
        cells = (*self._judgement.needs, *more)
        await prepare(sandbox, self._seed, cells, self._unseen(), self._limits, self._judgement.seconds)

    async def _open(self, topology: str) -> JudgingSandbox:
        sandbox = await JudgingSandbox.open(self._source, topology, self._keras, self._limits)
        self._opened.append(sandbox)
        return sandbox

    def _begin(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        task = asyncio.create_task(work)
        self._opening.add(task)
        return task

    def _unseen(self) -> RunLog:
        """Where output goes that is for nobody; within the limits of a run all the same."""
        return RunLog(self._run.request, self._limits)

    def _note_peak(self, answered: Answered) -> None:
        if answered.peak_bytes is not None:
            self._peak_bytes = max(self._peak_bytes or 0, answered.peak_bytes)


def _parsed(topology: str) -> str | None:
    with contextlib.suppress(ValueError):
        return str(Topology.parse(topology))
    return None
