"""Fixes for Keras 3, until a release of Keras has them.

Keras 3.15.1 creates variables where they are first needed: those of an optimizer in ``apply_gradients``, those of a
layer without an input shape in its first call. Inside ``strategy.run`` in a ``tf.function``, that is the graph of one
replica, and the first step fails with "You must feed a value for placeholder tensor". TensorFlow's own tutorial on
custom training fails this way. Keras 2 creates variables outside the graph in both cases. So does the main branch of
Keras 3 for optimizers (pull request 23087), but no release has that yet.
"""

from __future__ import annotations

import contextlib
from typing import Any

import tensorflow as tf

from runners.guest.tf_patches.registry import Subject

subject = Subject(
    __name__,
    when="Keras 3",
    because="variables that are made within a replica's graph fail: You must feed a value for placeholder tensor",
    since="Keras 3.15",
    upstream="keras-team/keras#23085",
    test="tests/long/runner/test_keras3.py::test_tensorflows_custom_training_tutorial_trains_as_on_one_device",
)


@subject.patch(
    "keras.src.backend.tensorflow.core:Variable._initialize_with_initializer", relies_on=("(self, initializer)",)
)
def _outside_the_graph(original: Any, self: Any, initializer: Any) -> None:
    with tf.init_scope() if tf.distribute.has_strategy() else contextlib.nullcontext():
        original(self, initializer)
