"""``server.join()`` in a cell that every process runs: it serves the others for as long as one of them computes.

In a script it would never return, and neither hear an interrupt.
"""

from __future__ import annotations

import time
from typing import Any

from tensorflow.python.training import server_lib

from runners.guest.cluster.shared_state import ProcessActivity
from runners.guest.cluster.task_context import TaskContext

_LOOK_S = 0.05


def install_server_join(own: TaskContext) -> None:
    """Have ``join`` return once all others are through with the cell, or serve as well. Runs no op."""
    others = [n for n in range(own.board.tasks) if n != own.number]

    def join(self: Any) -> None:
        while True:
            own.board.set_work(own.number, ProcessActivity.serving)
            time.sleep(_LOOK_S)
            if all(own.board.work(n) in (ProcessActivity.nothing, ProcessActivity.serving) for n in others):
                return

    server_lib.Server.join = join
