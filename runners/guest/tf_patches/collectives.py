"""Lets one session create several strategies, as happens whenever a learner reruns an edited cell.

TensorFlow numbers the groups of devices that reduce tensors from 1 for each strategy, but remembers the shapes of a
group's sums for the life of the process. A second strategy whose model differs from the first one's therefore fails
with "Shape mismatch in the collective instance", even on real GPUs, until the program is restarted. With these patches,
each strategy numbers its groups from a base that no other strategy in the process or its cluster uses: the first worker
keeps track of all groups. Workers that reduce together must use the same numbers, so those stay unchanged.

Once a process is connected to other workers, TensorFlow counts the devices of all of them as its own. It would give
them to a MirroredStrategy that names no devices, and crash in its first step. With these patches such a strategy gets
the devices of its own process.
"""

from __future__ import annotations

import itertools
from typing import Any

from tensorflow.python.eager import context
from tensorflow.python.framework.device_spec import DeviceSpecV2

from runners.guest.reporting import notices
from runners.guest.tf_patches.registry import Subject

subject = Subject(
    __name__,
    when="every kernel",
    because="a second strategy whose model has other shapes fails: Shape mismatch in the collective instance",
    since="TensorFlow 2.21",
    upstream="tensorflow/tensorflow#62790",
    test="tests/functional/runner/test_gpus.py"
    "::test_a_cell_can_be_changed_and_run_again_with_a_strategy_and_a_model_of_its_own",
)

_BASE_STEP = 1_000
"""The number of device groups that one strategy may have."""


_bases = itertools.count(_BASE_STEP, _BASE_STEP)


def separate_collective_keys(process: int, processes: int) -> None:
    """Use numbers of its own in this process, number ``process`` of ``processes`` that train together. Runs no op."""
    global _bases
    _bases = itertools.count(_BASE_STEP * (1 + process), _BASE_STEP * processes)


@subject.patch(
    "tensorflow.python.distribute.mirrored_strategy:MirroredExtended._make_collective_ops_with_fallbacks",
    relies_on=("(self)", "._collective_key_base"),
    used_by=("tensorflow.python.distribute.mirrored_strategy:MirroredExtended._initialize_strategy",),
)
@subject.patch(
    "tensorflow.python.distribute.collective_all_reduce_strategy:CollectiveAllReduceExtended._initialize_local",
    relies_on=("(self, cluster_resolver, devices)", "._collective_key_base"),
)
def _number_from_the_next_base(original: Any, self: Any, *args: Any, **kwargs: Any) -> Any:
    self._collective_key_base += next(_bases)
    return original(self, *args, **kwargs)


@subject.patch(
    "tensorflow.python.distribute.mirrored_strategy:all_local_devices",
    relies_on=("tensorflow.python.eager.context:Context._collective_ops_server_def",),
    used_by=("tensorflow.python.distribute.mirrored_strategy:MirroredExtended.__init__",),
    because="a MirroredStrategy in a worker takes the devices of all workers, and crashes",
    upstream=None,
    test="tests/functional/runner/test_clusters.py"
    "::test_a_mirrored_strategy_beside_that_of_all_workers_keeps_to_its_own_worker",
)
def _own_devices(original: Any, *args: Any, **kwargs: Any) -> list[Any]:
    devices: list[Any] = original(*args, **kwargs)
    server = context.context()._collective_ops_server_def
    if server is None:
        return devices
    own = [device for device in devices if _task_of(device.name) == (server.job_name, server.task_index)]
    if own != devices:
        notices.notify_once("mirrored-among-workers")
    return own


def _task_of(device: str) -> tuple[str | None, int | None]:
    spec = DeviceSpecV2.from_string(device)
    return spec.job, spec.task
