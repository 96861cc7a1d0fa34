"""Lets the processes that train together wait for each other before TensorFlow connects them.

TensorFlow would wait for the others itself, but meanwhile no Python thread of the process can run: it could neither
report what it waits for nor notice an interrupt.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from runners.guest.cluster.shared_state import ProcessActivity
from runners.guest.cluster.task_context import TaskContext
from runners.guest.tf_patches.registry import Subject

_LOOK_S = 0.01
RENDEZVOUS_TIMEOUT_S = 10.0
"""Seconds after which the others stop waiting for a process that has finished the cell."""

subject = Subject(
    __name__,
    when="workers",
    because="while TensorFlow waits for the other workers, the process can neither report that nor be interrupted",
    since="TensorFlow 2.21",
    test="tests/functional/runner/test_clusters.py::test_a_run_stops_while_one_waits_for_another_and_the_session_lives_on",
)


def install_rendezvous(own: TaskContext) -> None:
    """Make this process wait for the others of its cluster where a strategy connects them. Runs no op."""
    subject.apply(own)


@subject.patch(
    "tensorflow.python.eager.context:Context.enable_collective_ops",
    relies_on=("(self, server_def)", "._context_handle"),
    used_by=(
        "tensorflow.python.distribute.collective_all_reduce_strategy"
        ":CollectiveAllReduceExtended._initialize_multi_worker",
    ),
)
def _enable_when_all_are_there(own: TaskContext, original: Any, self: Any, server_def: Any) -> None:
    tasks = [(n, task) for n, task in enumerate(own.topology.tasks) if task.role in ("chief", "worker")]
    named = {address for job in server_def.cluster.job for address in job.tasks.values()}
    own.left_out.clear()
    own.left_out.update(n for n, _ in tasks if own.address_of(n) not in named)
    if named != {own.address_of(n) for n, _ in tasks}:  # a cluster that the learner set up
        original(self, server_def)
        return
    again = self._context_handle is not None
    numbers = [n for n, _ in tasks]
    nth = own.shared_state.arrive(own.number)
    try:
        _wait(own, numbers, lambda n: own.shared_state.arrived(n) >= nth)
    except BaseException:
        own.shared_state.withdraw(own.number)
        raise
    original(self, server_def)
    own.shared_state.be_ready(own.number)
    if again:  # data sent before the others have reconnected would be lost
        _wait(own, numbers, lambda n: own.shared_state.ready(n) >= nth)


def _wait(own: TaskContext, numbers: list[int], there: Callable[[int], bool]) -> None:
    hoped = time.monotonic()
    while missing := [n for n in numbers if not there(n)]:
        through = [n for n in missing if own.shared_state.work(n) == ProcessActivity.nothing]
        if not through:
            hoped = time.monotonic()
        elif time.monotonic() - hoped > RENDEZVOUS_TIMEOUT_S:
            who = " and ".join(own.topology.tasks[n].lane for n in through)
            raise RuntimeError(f"{who} finished this cell without creating the strategy")
        time.sleep(_LOOK_S)
