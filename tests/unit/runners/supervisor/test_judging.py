"""What becomes of a judgement when its sandboxes do not do what they should. The sandboxes are scripted."""

from __future__ import annotations

import ast
import json
from collections.abc import Callable
from typing import Any, cast

import pytest

from runners.config.settings import Limits
from runners.sandbox.handle import SandboxGone
from runners.supervisor.execution import Snippet
from runners.supervisor.judging import JudgementBench
from runners.supervisor.judging_sandbox import Answered, JudgingSandbox
from runners.supervisor.outcome import ReportedError, RunEnding
from runners.supervisor.run_log import RunLog
from runners.supervisor.session import KernelSource
from runners.wire import check_messages as messages
from runners.wire.protocol import EVENT_ADAPTER, CheckEvent, Judgement, NeededCell, Outcome, RunRequest, SessionSpec

LIMITED_S = 1.0
CALL = {"sandbox": "submission", "do": "a call"}
KILL = CALL | {"kill": "worker 1", "at_step": 40}


def ended(outcome: Outcome = Outcome.ok, answer: str | None = None, error: ReportedError | None = None) -> Answered:
    return Answered(RunEnding(outcome), (answer,), error, "", None)


RAISED = ended(Outcome.error, error=ReportedError("RuntimeError", "not twice"))


class ScriptedSandbox:
    """A sandbox in which each snippet ends as ``ends`` says, by what its code contains; the last entry is for next."""

    def __init__(self) -> None:
        self.usable = True
        self.ended: list[str] = []
        self.ends: dict[str, list[Answered]] = {}
        self.reaches = False
        """Whether a process to be killed reaches its step."""
        self.gone = False
        self.asked: list[Snippet] = []

    async def ask(self, snippet: Snippet, _log: RunLog, _limits: Limits) -> Answered:
        self.asked.append(snippet)
        answered = next((ends.pop() for code, ends in self.ends.items() if code in snippet.code and ends), ended())
        self.usable &= answered.ending.outcome in (Outcome.ok, Outcome.error)
        return answered

    async def restart_ended(self) -> bool:
        self.ended = []
        return True

    async def kill(self, _task: str, _at_step: int | None) -> bool:
        if self.gone:
            raise SandboxGone
        return False

    def number(self, _task: str) -> int:
        return 0  # of the only answer

    async def end_wait(self, task: str) -> bool:
        self.ended = [task] if self.reaches else []
        return self.reaches

    async def close(self) -> None: ...


class ScriptedJudge(ScriptedSandbox):
    """The judge's sandbox, which asks for ``requests`` one after the other, and keeps the answers."""

    def __init__(self, *requests: dict[str, Any]) -> None:
        super().__init__()
        self.requests = list(requests)
        self.heard: list[dict[str, Any]] = []

    async def ask(self, snippet: Snippet, _log: RunLog, _limits: Limits) -> Answered:
        step: dict[str, Any] = {"request": self.requests.pop(0) if self.requests else None}
        if ".begin(" in snippet.code:
            step["names"] = ["a check"]
        else:
            self.heard.append(json.loads(ast.literal_eval(snippet.code.partition(".resume")[2])))
        if step["request"] is None:
            step["results"] = [{"name": "a check", "outcome": "failed"}]
        return ended(answer=json.dumps(step))


Bench = Callable[..., JudgementBench]


@pytest.fixture
def log() -> RunLog:
    cells = (NeededCell(name="before", code="needed = 1"),)
    judgement = Judgement(exercise="task", needs=cells, solution="", checks="", seconds=LIMITED_S)
    spec = SessionSpec(owner="o", topology="workers:2")
    return RunLog(RunRequest(id="r", session="s", spec=spec, code="the code", judgement=judgement), Limits())


@pytest.fixture
def bench(log: RunLog, monkeypatch: pytest.MonkeyPatch) -> Bench:
    """Makes a bench with this judge, and these sandboxes for the submission, one after the other."""

    def make(judge: ScriptedJudge, *submissions: ScriptedSandbox | Exception) -> JudgementBench:
        waiting = list(submissions)

        async def take(_source: object, topology: str, *_: object) -> JudgingSandbox:
            sandbox = judge if topology == "cpu" else waiting.pop(0)
            if isinstance(sandbox, Exception):
                raise sandbox
            return cast("JudgingSandbox", sandbox)

        monkeypatch.setattr(JudgingSandbox, "open", take)
        return JudgementBench(log, "workers:2", 3, Limits(), cast("KernelSource", None))

    return make


async def checks(log: RunLog) -> list[str]:
    lines = [line async for piece in log.after(0, 60) for line in (piece or b"").splitlines()]
    events = [EVENT_ADAPTER.validate_json(line) for line in lines]
    return [event.outcome for event in events if isinstance(event, CheckEvent)]


@pytest.mark.parametrize(
    ("code", "outcome", "answer"),
    [
        ("the code", RAISED, {"failed": messages.RAISED, "values": {"error": "RuntimeError", "text": "not twice"}}),
        ("the code", ended(Outcome.timeout), None),
        ("needed", RAISED, {"failed": messages.RAISED, "values": {"error": "RuntimeError", "text": "not twice"}}),
    ],
    ids=["it raises", "it takes too long", "its files break a needed cell"],
)
async def test_a_submission_that_does_not_run_again_after_a_kill_fails_with_the_reason(
    bench: Bench, code: str, outcome: Answered, answer: dict[str, Any] | None
) -> None:
    submission, judge = ScriptedSandbox(), ScriptedJudge(KILL, CALL, CALL)
    submission.ends = {code: [outcome, ended()], "a call": [ended(answer="first")]}
    submission.reaches = True
    await bench(judge, submission).judge()
    first, second, third = judge.heard
    assert (first["killed"], first["answers"]) == (True, ["first"])
    assert second["outcome"] == outcome.ending.outcome
    assert [json.loads(text) for text in second["answers"]] == ([answer] if answer else [])
    assert third["outcome"] == "not-reached"


async def test_a_fresh_sandbox_in_which_the_submission_fails_says_so(bench: Bench) -> None:
    fresh, judge = ScriptedSandbox(), ScriptedJudge(CALL | {"number": 1}, CALL)
    fresh.ends = {"the code": [RAISED]}
    await bench(judge, ScriptedSandbox(), fresh).judge()
    assert [heard["outcome"] for heard in judge.heard] == ["error", "not-reached"]
    assert "not twice" in judge.heard[0]["answers"][0]


async def test_only_cells_and_calls_have_to_keep_to_the_seconds_of_the_exercise(bench: Bench, log: RunLog) -> None:
    submission, judge = ScriptedSandbox(), ScriptedJudge(CALL)

    await bench(judge, submission).judge()

    seed, *others = [snippet.seconds for snippet in submission.asked]
    assert ".seed(" in submission.asked[0].code
    assert (seed, others) == (30, [LIMITED_S] * 3)


async def test_a_process_that_never_reaches_the_step_was_not_killed(bench: Bench) -> None:
    submission, judge = ScriptedSandbox(), ScriptedJudge(KILL, CALL)
    submission.ends = {"a call": [ended(answer="second"), ended(answer="first")]}
    await bench(judge, submission).judge()
    assert [heard.get("killed") for heard in judge.heard] == [False, None]
    assert [heard["answers"] for heard in judge.heard] == [["first"], ["second"]]


async def test_a_submission_that_ends_its_sandbox_is_not_reached_and_no_fault(bench: Bench, log: RunLog) -> None:
    submission, judge = ScriptedSandbox(), ScriptedJudge(KILL, CALL)
    submission.gone = True
    assert await bench(judge, submission).judge() == Outcome.ok
    assert [heard["outcome"] for heard in judge.heard] == ["crash", "not-reached"]
    assert await checks(log) == ["failed"]


async def test_a_runner_that_takes_too_long_is_no_limit_of_the_submission(bench: Bench, log: RunLog) -> None:
    with pytest.raises(TimeoutError):
        await bench(ScriptedJudge(), TimeoutError("the zygote")).judge()
    log.finish(Outcome.crash)
    assert await checks(log) == ["fault"]
