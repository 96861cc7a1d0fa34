"""``server.join()`` in a cell that every process runs: serves the others as long as one of them computes.

In a script, it would never return, and it would ignore interrupts.
"""

from __future__ import annotations

import time
from typing import Any

from runners.guest.cluster.shared_state import ProcessActivity
from runners.guest.cluster.task_context import TaskContext
from runners.guest.tf_patches.registry import Subject

_LOOK_S = 0.05

subject = Subject(
    __name__,
    when="workers",
    because="it never returns and ignores interrupts, so the cell would never end",
    since="TensorFlow 2.21",
    test="tests/long/runner/test_cluster_training.py"
    "::test_a_worker_that_joins_its_server_serves_until_nobody_else_computes",
)


def install_server_join(own: TaskContext) -> None:
    """Make ``join`` return once all others have finished the cell or serve as well. Runs no op."""
    subject.apply(own)


@subject.patch("tensorflow.python.training.server_lib:Server.join", relies_on=("(self)",))
def _join(own: TaskContext, _: Any, __: Any) -> None:
    others = [n for n in range(own.shared_state.tasks) if n != own.number]
    idle = (ProcessActivity.nothing, ProcessActivity.serving)
    while True:
        own.shared_state.set_work(own.number, ProcessActivity.serving)
        time.sleep(_LOOK_S)
        if all(own.shared_state.work(n) in idle for n in others):
            return
