"""All-reduces where GPUs are simulated: for NCCL another one of the same sums, and a sentence that says so.

``NcclAllReduce`` would run ops that only CUDA has. In their place each device adds up the values of all, so every
replica gets the same bits. Between workers (``CommunicationOptions``) TensorFlow itself takes its ring where devices
are CPUs. ``HierarchicalCopyAllReduce`` is TensorFlow's own, and leaves a replica out where their number is odd: that
is said.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from tensorflow.python.distribute import (
    collective_all_reduce_strategy,
    collective_util,
    cross_device_ops,
    cross_device_utils,
)
from tensorflow.python.framework import ops
from tensorflow.python.ops import math_ops, nccl_ops

from runners.guest.reporting import notices


def replace_nccl() -> None:
    """Replace NCCL in this process."""
    nccl_ops.all_sum = all_sum
    algorithm, strategy = cross_device_ops.NcclAllReduce, collective_all_reduce_strategy.CollectiveAllReduceExtended
    init, warn = algorithm.__init__, strategy._warn_nccl_no_gpu

    @functools.wraps(init)
    def with_notice(self: Any, *args: Any, **kwargs: Any) -> None:
        init(self, *args, **kwargs)
        notices.notify_once("nccl")

    def warn_nccl_no_gpu(self: Any) -> None:
        warn(self)
        if self._communication_options.implementation == collective_util.CommunicationImplementation.NCCL:
            notices.notify_once("nccl-ring")

    copy = cross_device_utils.aggregate_gradients_using_hierarchical_copy

    def copy_and_warn(avail_devices: Sequence[str], replica_grads: Any) -> Any:
        if len(avail_devices) % 2:
            notices.notify_once("hierarchical-copy", replicas=len(avail_devices))
        return copy(avail_devices, replica_grads)

    algorithm.__init__ = with_notice
    cross_device_utils.aggregate_gradients_using_hierarchical_copy = copy_and_warn
    strategy._warn_nccl_no_gpu = warn_nccl_no_gpu


def all_sum(tensors: Sequence[Any]) -> list[Any]:
    """The sum of ``tensors``, once on the device of each.

    Raises:
        ValueError: there are none, as with NCCL.
    """
    if not tensors:
        raise ValueError("Must pass >0 tensors to all reduce operations")
    sums = []
    for tensor in tensors:
        with ops.device(tensor.device):
            sums.append(math_ops.add_n(tensors))
    return sums
