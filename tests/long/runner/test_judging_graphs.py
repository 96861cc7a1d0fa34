"""Graphs that end the sandbox in which they are run: the learner's fault, or the platform's."""

from __future__ import annotations

from dataclasses import replace

import pytest

from runners.wire.client import RunnerClient
from tests.functional.runner.judged import Exercise

ROOM = Exercise(
    needs=("import tensorflow as tf",),
    solution="def total(count): return tf.reduce_sum(tf.random.uniform(tf.reshape(count, [1])))",
    checks="""
        @check("task", "A total of many numbers")
        def many(work):
            work.graph("total", np.array(COUNT))
    """,
)


@pytest.mark.parametrize(("count", "outcome", "verdict"), [(3, "error", "failed"), (2**42, "fault", "fault")])
async def test_a_graph_is_nobodys_failed_try_if_that_of_the_solution_ends_alike(
    client: RunnerClient, count: int, outcome: str, verdict: str
) -> None:
    exercise = replace(ROOM, checks=ROOM.checks.replace("COUNT", str(count)))
    told = await exercise.judge(client, "def total(count): return tf.reduce_sum(tf.random.uniform([2**42]))")
    assert [(check.outcome, told.verdict) for check in told.checks] == [(outcome, verdict)], told.checks
