"""Mends how a distributed data set passes its elements to devices.

TensorFlow creates a small data set for each device, which only fetches and prefetches. tf.data tunes each of them in a
separate thread, and deleting such an iterator waits until that thread wakes up: an epoch of 1.2 s took up to 44 s that
way, with every core idle. There is nothing to tune, because their buffers are fixed; the learner's own pipeline is
still tuned.

TensorFlow also releases a distributed data set before the thread that produces its elements has ended. If it reads the
data set itself and not a rewritten copy, as it does whenever Keras 3 gets arrays, that thread then reads freed memory.
Deleting an iterator while it produces an element, as ``fit`` and ``evaluate`` do with their first one, may crash, even
on real GPUs and without Lockstep. With these patches, the data set lives as long as something reads it.
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf
from tensorflow.python.data.ops import dataset_ops

from runners.guest.tf_patches.registry import Subject

_ITERATOR = "tensorflow.python.data.ops.multi_device_iterator_ops:OwnedMultiDeviceIterator.__init__"

tuning = Subject(
    "dataset_tuning",
    when="gpu and tpu",
    because="tf.data tunes data sets in which there is nothing to tune, and waits for that when they are dropped",
    since="TensorFlow 2.21",
    test="tests/unit/runners/guest/tf_patches/test_gpu.py::test_no_thread_tunes_what_only_hands_over_to_a_device",
)
lifetime = Subject(
    "dataset_lifetime",
    when="every kernel",
    because="TensorFlow releases a distributed data set while a thread reads it, and crashes",
    since="TensorFlow 2.21",
    test="tests/unit/runners/guest/tf_patches/test_gpu.py::test_an_iterator_may_be_dropped_while_it_makes_an_element",
)


@tuning.patch("tensorflow.python.data.ops.multi_device_iterator_ops:_create_device_dataset", used_by=(_ITERATOR,))
def _untuned(original: Any, *args: Any, **kwargs: Any) -> Any:
    options = tf.data.Options()
    options.autotune.enabled = False
    return original(*args, **kwargs).with_options(options)


class _KeptDataset(dataset_ops.UnaryUnchangedStructureDataset):  # type: ignore[misc]
    """A data set that its readers keep alive once its final options are set.

    TensorFlow looks through a data set of options, so it keeps only the one below alive. It does read a data set that
    takes all elements; when it rewrites data sets, it removes this one.
    """

    def __init__(self, data: Any) -> None:
        super().__init__(data, data._variant_tensor)

    def with_options(self, options: Any, name: str | None = None) -> Any:
        """Called by the multi-device iterator right before it starts."""
        return super().with_options(options, name).take(-1)


lifetime.needs(
    "tensorflow.python.data.ops.dataset_ops:UnaryUnchangedStructureDataset.__init__",
    relies_on=("(self, input_dataset, variant_tensor)", "tensorflow.python.data.ops.dataset_ops:DatasetV2.take"),
)


@lifetime.patch(_ITERATOR, relies_on=("(self, dataset, ...)",))
def _read_a_kept_dataset(original: Any, self: Any, dataset: Any = None, *args: Any, **kwargs: Any) -> None:
    original(self, None if dataset is None else _KeptDataset(dataset), *args, **kwargs)


lifetime.needs(
    "tensorflow.python.data.ops.dataset_ops:DatasetV2.with_options",
    relies_on=("(self, options, name)",),
    used_by=(_ITERATOR,),
)
