"""All-reduces where NCCL cannot run: it is replaced by ops that give the same sums, and a notice says so.

``NcclAllReduce`` would run ops that only CUDA has, and that fail between logical GPUs of one real GPU. Instead, each
device adds up the values of all devices, so every replica gets the same bits. Between workers
(``CommunicationOptions``), TensorFlow itself uses a ring if devices are CPUs. ``HierarchicalCopyAllReduce`` is
TensorFlow's own; with an odd number of replicas it omits one of them, and a notice says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from tensorflow.python.distribute import collective_util
from tensorflow.python.framework import ops
from tensorflow.python.ops import math_ops

from runners.guest.reporting import notices
from runners.guest.tf_patches.registry import Subject

_TESTS = "tests/unit/runners/guest/tf_patches/test_gpu.py::"
_UTILS = "tensorflow.python.distribute.cross_device_utils:"

subject = Subject(
    __name__,
    when="gpu",
    because="NCCL needs a real GPU for each replica",
    since="TensorFlow 2.21",
    test=f"{_TESTS}test_every_all_reduce_gives_the_same_sums_and_nccl_says_once_what_it_is",
    essential=True,
)


def replace(notice: Literal["nccl", "nccl-logical"]) -> None:
    """Replace NCCL in this process.

    Args:
        notice: the code of the notice that says why: the GPUs are simulated, or are logical ones of a real GPU.
    """
    subject.apply(notice)


@subject.patch(
    "tensorflow.python.ops.nccl_ops:all_sum",
    relies_on=("(tensors)",),
    used_by=(f"{_UTILS}aggregate_gradients_using_nccl",),
)
def _all_sum(_notice: str, _original: Any, tensors: Sequence[Any]) -> list[Any]:
    """Add up ``tensors`` on the device of each of them.

    Raises:
        ValueError: ``tensors`` is empty, as with NCCL.
    """
    if not tensors:
        raise ValueError("Must pass >0 tensors to all reduce operations")
    sums = []
    for tensor in tensors:
        with ops.device(tensor.device):
            sums.append(math_ops.add_n(tensors))
    return sums


@subject.patch("tensorflow.python.distribute.cross_device_ops:NcclAllReduce.__init__")
def _notify_of_nccl(notice: str, original: Any, self: Any, *args: Any, **kwargs: Any) -> None:
    original(self, *args, **kwargs)
    notices.notify_once(notice)


@subject.patch(
    "tensorflow.python.distribute.collective_all_reduce_strategy:CollectiveAllReduceExtended._warn_nccl_no_gpu",
    relies_on=("(self)", "._communication_options"),
    test=f"{_TESTS}test_workers_reduce_over_all_their_gpus_whatever_communication_is_asked_for",
)
def _notify_of_the_ring(_notice: str, original: Any, self: Any) -> None:
    original(self)
    if self._communication_options.implementation == collective_util.CommunicationImplementation.NCCL:
        notices.notify_once("nccl-ring")


@subject.patch(
    f"{_UTILS}aggregate_gradients_using_hierarchical_copy",
    relies_on=("(avail_devices, replica_grads)",),
    used_by=("tensorflow.python.distribute.cross_device_ops:AllReduceCrossDeviceOps._do_batch_all_reduce",),
    because="it silently leaves a replica out of the sum if the number of replicas is odd",
    test=f"{_TESTS}test_what_a_hierarchical_copy_leaves_out_is_said",
)
def _notify_of_what_is_left_out(_notice: str, original: Any, avail_devices: Sequence[str], replica_grads: Any) -> Any:
    if len(avail_devices) % 2:
        notices.notify_once("hierarchical-copy", replicas=len(avail_devices))
    return original(avail_devices, replica_grads)
