"""The judge, in a sandbox in which only the checks of an exercise have ever run.

It is stepped from outside. The checks run in a thread; each of its questions to another sandbox ends a step, and the
answer begins the next one. What comes from a submission is decoded here, by code that is made for hostile data.
"""

from __future__ import annotations

import ast
import json
import linecache
import queue
import threading
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import cached_property
from typing import Any

import numpy as np
from IPython.core.inputtransformer2 import TransformerManager

from runners.checks.declare import DeclaredCheck, checks_of
from runners.checks.plain_data import NotPlainData, PlainData, decode, encode
from runners.checks.results import JudgedCheck, run_check
from runners.checks.work import Graph, JudgingFailed, SubmissionFailed, Work
from runners.guest.reporting import publisher
from runners.wire import check_messages as messages
from runners.wire.reports import ANSWER

_FILE = "checks.py"
_LONGEST_DETAIL = 8000
_LONGEST_TEXT = 3000
_LONGEST_KEY = 100
_MOST_VALUES = 20
_OK = "ok"
_WAIT_BROKEN_OFF = "CancelledError"
"""What a process raises that waited for one that has ended its cell."""

_requests: queue.SimpleQueue[dict[str, Any] | None] = queue.SimpleQueue()
_answers: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
_results: list[JudgedCheck] = []


def begin(task: str) -> None:
    """Begin to judge.

    Args:
        task: JSON of ``{"exercise": …, "checks": source, "source": …, "output": …, "seed": …}``; with ``"reached":
            false`` nothing is run, and every check says that it was not reached.
    """
    told = json.loads(task)
    try:
        checks = checks_of(_namespace(told["checks"]), told["exercise"])
    except BaseException:
        _report(fault=traceback.format_exc()[-_LONGEST_DETAIL:])
        return
    if not checks:
        _report(fault=f"{_FILE} has no check of {told['exercise']}")
        return
    work = JudgedWork(told, 0, np.random.default_rng())
    reached = told.get("reached", True)
    threading.Thread(target=_judge, args=(checks, work, reached), daemon=True, name="checks").start()
    _next_step(names=[check.name for check in checks])


def resume(answer: str) -> None:
    """Continue with what another sandbox answered: see ``_ask``."""
    _answers.put(json.loads(answer))
    _next_step()


def _judge(checks: list[DeclaredCheck], work: Work, reached: bool) -> None:
    for check in checks:
        if reached:
            _results.append(run_check(check, work))
        else:
            _results.append(JudgedCheck(check.name, "not-reached", messages.NOT_REACHED))
    _requests.put(None)


def _next_step(**more: Any) -> None:
    request = _requests.get()
    results, _results[:] = [_presentable(asdict(result)) for result in _results], []
    _report(results=results, request=request, **more)


def _report(**step: Any) -> None:
    publisher.send("display_data", {"data": {ANSWER: json.dumps(step)}, "metadata": {}, "transient": {}})


def _presentable(value: Any) -> Any:
    """Texts as any database takes them, and none too long: a submission may have written them."""
    if isinstance(value, str):
        text = value.encode("utf-8", "replace").decode().replace("\0", "␀")
        return text if len(text) <= _LONGEST_TEXT else text[:_LONGEST_TEXT] + " …"
    if isinstance(value, dict):
        return {
            _presentable(key)[:_LONGEST_KEY]: _presentable(item) for key, item in list(value.items())[:_MOST_VALUES]
        }
    return value


def _namespace(source: str) -> dict[str, Any]:
    linecache.cache[_FILE] = len(source), None, source.splitlines(keepends=True), _FILE
    namespace: dict[str, Any] = {"__name__": "checks"}
    exec(compile(source, _FILE, "exec"), namespace)  # noqa: S102 - the course's own code
    return namespace


def _ask(**request: Any) -> dict[str, Any]:
    """Have something done in another sandbox.

    Returns:
        ``{"outcome": …, "seconds": …, "answers": [text or None, …]}``: how the step ended, as ``protocol.Outcome``, or
        ``not-reached``; and what each process of the machine answered, in the order of its tasks. With ``kill`` also
        ``"killed"``, whether the process was killed, and ``"of_killed"``, what it answered itself.

    Raises:
        JudgingFailed: it could not be done there, and the submission is not why.
    """
    _requests.put(request)
    answered = _answers.get()
    if fault := answered.get("fault"):
        raise JudgingFailed(fault)
    return answered


class JudgedWork:
    """``Work`` whose submission is in another sandbox."""

    def __init__(self, told: dict[str, Any], number: int, rng: np.random.Generator) -> None:
        self._told = told
        self._number = number
        self._fresh = 0
        self._rng = rng

    @property
    def rng(self) -> np.random.Generator:
        """See ``Work``; so are all below."""
        return self._rng

    @property
    def source(self) -> str:
        return str(self._told["source"])

    @property
    def output(self) -> str:
        return str(self._told["output"])

    @cached_property
    def tree(self) -> ast.Module:
        try:
            tree: ast.Module = ast.parse(TransformerManager().transform_cell(self.source))
        except (SyntaxError, ValueError, RecursionError, MemoryError) as e:
            values = {"error": type(e).__name__, "text": str(e)}
            raise SubmissionFailed("error", messages.RAISED, values) from None
        return tree

    def call(self, name: str, *args: PlainData, kill: str | None = None, at_step: int | None = None) -> PlainData:
        if kill is None:
            return _first(self._ask_submission(self._call("call", name, args)), name)
        answered = self._ask_submission(self._call("call", name, args), kill=kill, at_step=at_step)
        killed = answered.get("killed", False)
        try:
            result = _first(answered, name)
        except SubmissionFailed:
            if killed:
                return None
            raise
        if not killed:
            if (own := answered["of_killed"]) is not None:
                _read(own, answered, name)  # that its code failed says more than that it was not killed
            values = {"task": kill, "step": str(at_step)}
            raise SubmissionFailed("error", messages.NOT_AT_STEP, values)
        return result

    def value(self, name: str) -> PlainData:
        return _first(self._ask_submission(json.dumps({"do": "value", "name": name})), name)

    def per_task(self, name: str, *args: PlainData, own: Sequence[PlainData] | None = None) -> list[PlainData]:
        each = None if own is None else [encode([arg]) for arg in own]
        answered = self._ask_submission(self._call("call", name, args, own=each))
        if each is not None and len(each) != (workers := len(answered["answers"]) or len(each)):
            raise JudgingFailed(f"per_task has {len(each)} arguments of their own for {workers} workers")
        return _read_all(answered["answers"] or [None], answered, name)

    def graph(self, name: str, *args: PlainData, alone: bool = False) -> Graph:
        # Tracing needs shapes and types only; code that knew the values could export a graph that contains the result.
        blank = tuple(np.zeros_like(arg) if isinstance(arg, np.ndarray) else arg for arg in args)
        export = self._call("graph", name, blank)
        exported = _first(self._ask_submission(export), name)

        def examine(graph: PlainData) -> dict[str, Any]:
            request = {
                "do": "examine",
                "name": name,
                "graph": encode(graph),
                "args": encode(list(args)),
                "alone": alone,
            }
            return _ask(sandbox="graph", do=json.dumps(request))

        answered = examine(exported)
        if answered["outcome"] != _OK:  # whose fault? the graph of the solution tells
            again = examine(_reference(export, name, None))
            if again["outcome"] != _OK:
                raise JudgingFailed(f"the sandbox for graphs ended {again['outcome']} with that of the solution, too")
        examined = _first(answered, name)
        return Graph(examined["ops"], examined["nbytes"], examined["result"], examined["alone"])

    def reference(self, name: str, *args: PlainData, topology: str | None = None) -> PlainData:
        return _reference(self._call("call", name, args), name, topology)

    def reference_value(self, name: str, *, topology: str | None = None) -> PlainData:
        return _reference(json.dumps({"do": "value", "name": name}), name, topology)

    def fresh(self) -> Work:
        self._told["fresh"] = number = self._told.get("fresh", 0) + 1
        return JudgedWork(self._told, number, self._rng)

    def _call(self, do: str, name: str, args: tuple[PlainData, ...], **more: Any) -> str:
        return json.dumps({"do": do, "name": name, "args": encode(list(args)), "seed": self._told["seed"], **more})

    def _ask_submission(self, do: str, **more: Any) -> dict[str, Any]:
        return _ask(sandbox="submission", number=self._number, do=do, **more)


def _reference(do: str, name: str, topology: str | None) -> PlainData:
    answered = _ask(sandbox="reference", do=do, topology=topology)
    try:
        return _first(answered, name)
    except SubmissionFailed as e:
        raise JudgingFailed(f"the solution gave no {name}: {messages.fill(e.message, e.values)}") from None


def _first(answered: Mapping[str, Any], name: str) -> PlainData:
    try:
        return _read(next(iter(answered["answers"]), None), answered, name)
    except SubmissionFailed as e:
        raise _cause(e, answered, name) from None


def _read_all(answers: Sequence[str | None], answered: Mapping[str, Any], name: str) -> list[PlainData]:
    try:
        return [_read(answer, answered, name) for answer in answers]
    except SubmissionFailed as e:
        raise _cause(e, answered, name) from None


def _cause(failed: SubmissionFailed, answered: Mapping[str, Any], name: str) -> SubmissionFailed:
    """The error of a process that kept another one waiting until the wait was broken off; otherwise ``failed``."""
    if failed.values.get("error") == _WAIT_BROKEN_OFF:
        for answer in filter(None, answered["answers"]):
            try:
                _read(answer, answered, name)
            except SubmissionFailed as e:
                if e.values.get("error") != _WAIT_BROKEN_OFF:
                    return e
    return failed


def _read(answer: str | None, answered: Mapping[str, Any], name: str) -> PlainData:
    """One process's answer, whatever it may be."""
    outcome = answered["outcome"]
    if outcome == "not-reached":
        raise SubmissionFailed("not-reached", messages.NOT_REACHED, {})
    if outcome == "output":
        raise SubmissionFailed("error", messages.PRINTED_TOO_MUCH, {})
    if outcome == "timeout":
        raise SubmissionFailed("too-slow", messages.TOO_SLOW, {"seconds": f"{answered['seconds']:g}"})
    if answer is None:
        raise SubmissionFailed("error", messages.ENDED, {"outcome": outcome})
    try:
        match json.loads(answer):
            case {"value": str(text)}:
                return decode(text)
            case {"failed": str(message), "values": dict(values)} if message in messages.OWN_FAILURES:
                raise SubmissionFailed(
                    "error", message, {key: str(value)[:_LONGEST_TEXT] for key, value in values.items()}
                )
    except NotPlainData as e:
        raise SubmissionFailed("error", messages.NOT_PLAIN, {"name": name, "why": str(e)}) from None
    except (ValueError, RecursionError):
        pass
    raise SubmissionFailed("error", messages.NOT_PLAIN, {"name": name, "why": "it is not in the agreed form"})
