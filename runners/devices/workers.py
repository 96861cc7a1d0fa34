"""``workers:NxG``: the GPUs that MultiWorkerMirroredStrategy finds in each process are those that ``gpu`` simulates."""

from __future__ import annotations

from typing import Any

from tensorflow.python.distribute import collective_all_reduce_strategy


def show_gpus(count: int) -> None:
    """Have MultiWorkerMirroredStrategy compute on ``count`` stand-ins of this process. Call once; runs no op."""

    def stand_ins(self: Any, cluster_resolver: Any, worker_device: str) -> tuple[tuple[str, ...], str]:
        return tuple(f"{worker_device}/device:CPU:{i}" for i in range(count)), "CPU"

    collective_all_reduce_strategy.CollectiveAllReduceExtended._initialize_local_devices = stand_ins
