"""Where the processes that train together meet before TensorFlow connects them.

TensorFlow would wait for the others itself, but deaf: no thread of Python's could run meanwhile, so nobody could be
told for whom, and no interrupt would be heard.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from typing import Any

from tensorflow.python.eager import context

from runners.guest.cluster.shared_state import ProcessActivity
from runners.guest.cluster.task_context import TaskContext

_LOOK_S = 0.01
RENDEZVOUS_TIMEOUT_S = 10.0
"""After which nobody waits any longer for one who is through with the cell."""


def install_rendezvous(own: TaskContext) -> None:
    """Have this process wait for the others of its cluster where a strategy connects them. Runs no op."""
    tasks = [(n, task) for n, task in enumerate(own.topology.tasks) if task.role in ("chief", "worker")]
    addresses = {own.address_of(n) for n, _ in tasks}
    enable = context.Context.enable_collective_ops

    @functools.wraps(enable)
    def enable_when_all_are_there(self: Any, server_def: Any) -> None:
        named = {address for job in server_def.cluster.job for address in job.tasks.values()}
        if named == addresses:  # and not a cluster of the learner's own
            again = self._context_handle is not None
            numbers = [n for n, _ in tasks]
            nth = own.board.come(own.number)
            try:
                _wait(own, numbers, lambda n: own.board.came(n) >= nth)
            except BaseException:
                own.board.turn_back(own.number)
                raise
            enable(self, server_def)
            own.board.be_ready(own.number)
            if again:  # what one sent before another is connected anew would be lost
                _wait(own, numbers, lambda n: own.board.ready(n) >= nth)
        else:
            enable(self, server_def)

    context.Context.enable_collective_ops = enable_when_all_are_there


def _wait(own: TaskContext, numbers: list[int], there: Callable[[int], bool]) -> None:
    hoped = time.monotonic()
    while missing := [n for n in numbers if not there(n)]:
        through = [n for n in missing if own.board.work(n) == ProcessActivity.nothing]
        if not through:
            hoped = time.monotonic()
        elif time.monotonic() - hoped > RENDEZVOUS_TIMEOUT_S:
            who = " and ".join(own.topology.tasks[n].lane for n in through)
            raise RuntimeError(f"{who} is through with this cell and has not made the strategy")
        time.sleep(_LOOK_S)
