"""What a check sees of a submission: it asks for values and calls, and gets plain data back."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np

from runners.checks.plain_data import PlainData


class SubmissionFailed(Exception):
    """The submission could not do what a check asked. Ends the check; authors need not catch it.

    Attributes:
        outcome: what the check ends as.
        message, values: as ``CheckFailed``'s.
    """

    def __init__(
        self, outcome: Literal["error", "too-slow", "not-reached"], message: str, values: Mapping[str, str]
    ) -> None:
        super().__init__(message)
        self.outcome, self.message, self.values = outcome, message, dict(values)


class JudgingFailed(Exception):
    """The reference or Lockstep could not do what a check asked: a fault, and nobody's failed try."""


@dataclass(frozen=True, slots=True)
class Graph:
    """A function of the submission as TensorFlow traced it, examined outside the learner's sandbox.

    Compare ``result``, and limit ``ops`` from above: that an operation is there does not mean that it is needed.

    Attributes:
        ops: how many operations of each type the result depends on. The operations of a function count for each call
            of it, those of a loop once.
        nbytes: size of the serialized graph.
        result: what it gave for the arguments, run in a sandbox that has never run learner code.
        alone: what it gave when all replicas but the first brought zeros to each exchange; None unless asked for. If
            the result comes from the exchange, this is what the first replica contributes to it.
    """

    ops: Mapping[str, int]
    nbytes: int
    result: PlainData
    alone: PlainData = None

    def count(self, *types: str) -> int:
        """How many operations of these types there are."""
        return sum(self.ops.get(kind, 0) for kind in types)

    @property
    def collectives(self) -> int:
        """How many operations exchange numbers with other devices: one on each replica for each all-reduce."""
        return sum(number for kind, number in self.ops.items() if kind.startswith("Collective"))


class Work(Protocol):
    """A submission, run in a sandbox of its own after the cells that the exercise needs.

    Arguments and results are ``PlainData``; tensors come back as arrays. A method that the submission cannot answer
    ends the check with the reason.
    """

    @property
    def rng(self) -> np.random.Generator:
        """Random numbers that no submission has seen: new in each judgement."""

    @property
    def source(self) -> str:
        """The submitted code."""

    @property
    def tree(self) -> ast.Module:
        """The same, parsed. IPython's magics are calls of ``get_ipython`` in it."""

    @property
    def output(self) -> str:
        """What the submitted cell printed on standard output."""

    def call(self, name: str, *args: PlainData, kill: str | None = None, at_step: int | None = None) -> PlainData:
        """Call a function of the submission.

        Random numbers are seeded the same for equal arguments, here and in ``reference``, with a hidden seed.

        Args:
            name: the function; dots lead to attributes, as in ``model.count_params``.
            args: its arguments.
            kill: a process of the cluster to kill meanwhile, as in ``worker 1``. If the call fails for it, None is
                returned; the next call restarts what ended, with the files as they were left.
            at_step: kill it when its training reaches this step; None: at once. A call that never gets there ends the
                check.
        """

    def value(self, name: str) -> PlainData:
        """A variable of the submission; dots lead to attributes."""

    def per_task(self, name: str, *args: PlainData, own: Sequence[PlainData] | None = None) -> list[PlainData]:
        """Call a function on each worker of a cluster at once: one result for each, in the order of their numbers.

        Args:
            name: as for ``call``.
            args: the same for all workers.
            own: a last argument for each worker, which the function does not get on the others.
        """

    def graph(self, name: str, *args: PlainData, alone: bool = False) -> Graph:
        """Trace a ``tf.function`` of the submission, then count and run its graph with these arguments elsewhere.

        The submission sees the shapes and the types of arrays, not their values, but all other arguments as they are.

        Args:
            name: as for ``call``.
            args: as for ``call``.
            alone: whether to run the same graph without what the other replicas bring: see ``Graph.alone``.
        """

    def reference(self, name: str, *args: PlainData, topology: str | None = None) -> PlainData:
        """Call the same function of the solution, in another sandbox.

        Args:
            name: as for ``call``.
            args: as for ``call``.
            topology: the machine to run it on, such as ``cpu``; None: the exercise's own.
        """

    def reference_value(self, name: str, *, topology: str | None = None) -> PlainData:
        """A variable of the solution."""

    def fresh(self) -> Work:
        """The same submission in a new sandbox, without anything that earlier calls have left behind."""
