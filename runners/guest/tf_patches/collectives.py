"""Lets one session make several strategies, as who runs an edited cell again does.

TensorFlow numbers the groups of devices that add up tensors from 1 for each strategy, but remembers for the whole
process which shapes a group's sums have. So a second strategy whose model differs from the first one's fails with
"Shape mismatch in the collective instance", on real GPUs too, until the program is restarted. Here each strategy of
one process numbers its groups from where no other does, in other processes of its cluster neither: the first worker
keeps the groups of all. Where several workers add up, all have to use the same numbers: there it is left as it is.

Once a process is connected to other workers, TensorFlow takes the devices of all of them for its own: it would give
them to a MirroredStrategy that names none, and crash in its first step. Such a one gets the process's own here.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator
from typing import Any

from tensorflow.python.distribute import collective_all_reduce_strategy, mirrored_strategy
from tensorflow.python.eager import context
from tensorflow.python.framework.device_spec import DeviceSpecV2

from runners.guest.reporting import notices

_APART = 1_000
"""Groups of devices that one strategy may have."""


def separate_collective_keys(process: int = 0, processes: int = 1) -> None:
    """Do so in this process, the ``process``th of so many that train together; runs no op."""
    bases = itertools.count(_APART * (1 + process), _APART * processes)
    _renumber(mirrored_strategy.MirroredExtended, "_make_collective_ops_with_fallbacks", bases)
    _renumber(collective_all_reduce_strategy.CollectiveAllReduceExtended, "_initialize_local", bases)
    _keep_to_own_devices(mirrored_strategy)


def _renumber(owner: Any, name: str, bases: Iterator[int]) -> None:
    """Change where a strategy's numbers begin, before ``owner.name`` takes them."""
    make: Callable[..., Any] = getattr(owner, name)

    @functools.wraps(make)
    def make_apart(self: Any, *args: Any, **kwargs: Any) -> Any:
        self._collective_key_base += next(bases)
        return make(self, *args, **kwargs)

    setattr(owner, name, make_apart)


def _keep_to_own_devices(owner: Any) -> None:
    """Have ``owner.all_local_devices`` list no other worker's."""
    listed: Callable[..., list[Any]] = owner.all_local_devices

    @functools.wraps(listed)
    def all_local_devices(*args: Any, **kwargs: Any) -> list[Any]:
        devices, server = listed(*args, **kwargs), context.context()._collective_ops_server_def
        if server is None:
            return devices
        own = [device for device in devices if _task_of(device.name) == (server.job_name, server.task_index)]
        if own != devices:
            notices.notify_once("mirrored-among-workers")
        return own

    owner.all_local_devices = all_local_devices


def _task_of(device: str) -> tuple[str | None, int | None]:
    spec = DeviceSpecV2.from_string(device)
    return spec.job, spec.task
