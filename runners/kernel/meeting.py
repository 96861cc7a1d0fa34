"""Where the processes that train together meet before TensorFlow connects them.

TensorFlow would wait for the others itself, but deaf: no thread of Python's could run meanwhile, so nobody could be
told for whom, and no interrupt would be heard.
"""

from __future__ import annotations

import functools
import time
from typing import Any

from tensorflow.python.eager import context

from runners.kernel.place import Place

_LOOK_S = 0.01


def wait_for_each_other(own: Place) -> None:
    """Have this process wait for the others of its cluster where a strategy connects them. Runs no op."""
    tasks = [(n, task) for n, task in enumerate(own.topology.tasks) if task.role in ("chief", "worker")]
    addresses = {own.address_of(n) for n, _ in tasks}
    enable = context.Context.enable_collective_ops

    @functools.wraps(enable)
    def enable_when_all_are_there(self: Any, server_def: Any) -> None:
        named = {address for job in server_def.cluster.job for address in job.tasks.values()}
        if named == addresses:  # and not a cluster of the learner's own
            own.board.come(own.number)
            while not all(own.board.came(n) for n, _ in tasks):
                time.sleep(_LOOK_S)
        enable(self, server_def)

    context.Context.enable_collective_ops = enable_when_all_are_there
