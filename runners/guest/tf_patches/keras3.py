"""Fixes for Keras 3, until a release of Keras has them, and a former name that TensorFlow's own tutorials use.

Keras 3.15.1 creates variables where they are first needed: those of an optimizer in ``apply_gradients``, those of a
layer without an input shape in its first call. Inside ``strategy.run`` in a ``tf.function``, that is the graph of one
replica, and the first step fails with "You must feed a value for placeholder tensor". TensorFlow's own tutorial on
custom training fails this way. Keras 2 creates variables outside the graph in both cases. So does the main branch of
Keras 3 for optimizers (pull request 23087), but no release has that yet.

The same tutorial calls ``reset_states`` of its metrics, which Keras 3 renamed ``reset_state``.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from runners.guest.reporting.notices import notify_once
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


@subject.add(
    "keras.src.metrics.metric:Metric.reset_states",
    relies_on=(".reset_state",),
    because="TensorFlow's tutorials reset their metrics by the name of Keras 2",
    since="Keras 3.0",
    upstream=None,
    test="tests/functional/runner/test_patches.py::test_a_metric_of_keras_3_is_reset_by_its_former_name_too",
)
def _by_its_former_name() -> Callable[[Any], None]:
    def reset_states(self: Any) -> None:
        notify_once("reset-states")
        self.reset_state()

    return reset_states
