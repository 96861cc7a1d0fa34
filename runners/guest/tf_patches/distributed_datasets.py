"""How a distributed data set hands its elements to simulated devices.

TensorFlow makes a small data set for each device, which only fetches and prefetches. tf.data tunes each of them in a
thread of its own, and whoever drops such an iterator waits until that thread has slept enough: an epoch of 1.2 s then
took up to 44 s, with every core idle. There is nothing to tune in them, since their buffer is fixed; the learner's own
pipeline is tuned as ever.

And TensorFlow lets go of a distributed data set before the thread that makes its elements has ended. Where it reads the
data set as it is, not a rewritten copy, and so wherever Keras 3 is given arrays, that thread then asks freed memory how
many parts an element has: whoever drops an iterator while it makes one, as ``fit`` and ``evaluate`` drop their first,
may crash, on real GPUs and without a line of ours. Here the data set stays for as long as somebody reads it.
"""

from __future__ import annotations

import functools
from typing import Any

import tensorflow as tf
from tensorflow.python.data.ops import dataset_ops
from tensorflow.python.data.ops import multi_device_iterator_ops as iterators


def disable_autotune() -> None:
    """Switch tuning off in the data sets of devices, in this process. Call before one is made; runs no op."""
    create = iterators._create_device_dataset

    @functools.wraps(create)
    def untuned(*args: Any, **kwargs: Any) -> Any:
        options = tf.data.Options()
        options.autotune.enabled = False
        return create(*args, **kwargs).with_options(options)

    iterators._create_device_dataset = untuned


class _KeptDataset(dataset_ops.UnaryUnchangedStructureDataset):  # type: ignore[misc]
    """A data set that, once it has its last options, is held by whoever reads it.

    TensorFlow reads through a data set of options as if it were not there, so it holds only the one below. One that
    takes all elements it does read, element by element; where it rewrites data sets it leaves this one out.
    """

    def __init__(self, data: Any) -> None:
        super().__init__(data, data._variant_tensor)

    def with_options(self, options: Any, name: str | None = None) -> Any:
        """Called by the iterator over several devices, right before it begins."""
        return super().with_options(options, name).take(-1)


def keep_alive_while_iterated() -> None:
    """Keep distributed data sets until nothing reads them any more, in this process. Runs no op."""
    iterator = iterators.OwnedMultiDeviceIterator
    init = iterator.__init__

    @functools.wraps(init)
    def init_held(self: Any, dataset: Any = None, *args: Any, **kwargs: Any) -> None:
        init(self, None if dataset is None else _KeptDataset(dataset), *args, **kwargs)

    iterator.__init__ = init_held
