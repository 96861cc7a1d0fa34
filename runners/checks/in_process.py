"""A ``Work`` without sandboxes, for the tests of checks. It runs the code in this process: only for code you trust."""

from __future__ import annotations

import ast
import contextlib
import io
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from runners.checks.plain_data import NotPlainData, PlainData, decode, encode
from runners.checks.work import Graph, SubmissionFailed, Work
from runners.wire import check_messages as messages


class InProcessWork:
    """See ``Work``. There is one machine: ``topology``, ``kill`` and tasks of a cluster mean nothing here.

    Args:
        submission: the code that is judged.
        solution: the code that ``reference`` runs.
        needs: the code of the cells that run before either.
        seed: of ``rng``; None: new each time.
    """

    def __init__(
        self, submission: str, solution: str = "", needs: Sequence[str] = (), *, seed: int | None = None
    ) -> None:
        self.source = submission
        self.rng = np.random.default_rng(seed)
        self._solution = solution
        self._needs = tuple(needs)

    @cached_property
    def tree(self) -> ast.Module:
        """The submitted code, parsed."""
        return ast.parse(self.source)

    @property
    def output(self) -> str:
        """What the submission printed."""
        return self._submitted[1]

    def call(self, name: str, *args: PlainData, kill: str | None = None, at_step: int | None = None) -> PlainData:
        """Call a function of the submission."""
        return _call(self._submitted[0], name, args)

    def value(self, name: str) -> PlainData:
        """A variable of the submission."""
        return _round_trip(_find(self._submitted[0], name), name)

    def per_task(self, name: str, *args: PlainData, own: Sequence[PlainData] | None = None) -> list[PlainData]:
        """One result: there is one process, which gets the first of ``own``."""
        return [self.call(name, *args, *(() if own is None else own[:1]))]

    def graph(self, name: str, *args: PlainData, alone: bool = False) -> Graph:
        """Not available here."""
        raise NotImplementedError(
            "graph() needs a runner: try this check with `lockstep exercise judge COURSE/LESSON EXERCISE FILE`, "
            "or with a Work of your own whose graph() returns a Graph"
        )

    def reference(self, name: str, *args: PlainData, topology: str | None = None) -> PlainData:
        """Call a function of the solution."""
        return _call(self._solved, name, args)

    def reference_value(self, name: str, *, topology: str | None = None) -> PlainData:
        """A variable of the solution."""
        return _round_trip(_find(self._solved, name), name)

    def fresh(self) -> Work:
        """The same submission, run again."""
        other = InProcessWork(self.source, self._solution, self._needs)
        other.rng = self.rng
        return other

    @cached_property
    def _submitted(self) -> tuple[dict[str, Any], str]:
        try:
            return self._run(self.source)
        except Exception as e:
            raise _raised(e) from e

    @cached_property
    def _solved(self) -> dict[str, Any]:
        return self._run(self._solution)[0]

    def _run(self, code: str) -> tuple[dict[str, Any], str]:
        """The variables that the code leaves behind, and what the last piece of it printed."""
        namespace: dict[str, Any] = {"__name__": "__main__"}
        printed = io.StringIO()
        for piece in (*self._needs, code):
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed):
                exec(compile(piece, "<cell>", "exec"), namespace)  # noqa: S102 - that is what it is for
        return namespace, printed.getvalue()


def _find(namespace: dict[str, Any], name: str) -> Any:
    first, *attributes = name.split(".")
    try:
        found = namespace[first]
        for attribute in attributes:
            found = getattr(found, attribute)
    except (KeyError, AttributeError):
        raise SubmissionFailed("error", messages.NOT_DEFINED, {"name": name}) from None
    return found


def _call(namespace: dict[str, Any], name: str, args: tuple[PlainData, ...]) -> PlainData:
    function = _find(namespace, name)
    if not callable(function):
        raise SubmissionFailed("error", messages.NOT_CALLABLE, {"name": name})
    arguments = decode(encode(list(args)))
    try:
        result = function(*arguments)
    except Exception as e:
        raise _raised(e) from e
    return _round_trip(result, name)


def _round_trip(value: Any, name: str) -> PlainData:
    try:
        return decode(encode(value))
    except NotPlainData as e:
        raise SubmissionFailed("error", messages.NOT_PLAIN, {"name": name, "why": str(e)}) from e


def _raised(error: Exception) -> SubmissionFailed:
    return SubmissionFailed("error", messages.RAISED, {"error": type(error).__name__, "text": str(error)})
