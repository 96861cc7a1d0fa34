"""What Lockstep fixes in Keras 3 until a release of Keras does.

Keras 3.15.1 creates variables where they are first needed: those of an optimizer in ``apply_gradients``, those of a
layer without an input shape in its first call. Inside ``strategy.run`` in a ``tf.function``, that is the graph of one
replica, and the first step fails with "You must feed a value for placeholder tensor". TensorFlow's own tutorial on
custom training stops there. Keras 2 creates variables outside the graph in both cases. So does the main branch of
Keras 3 for optimizers (keras issue 23085, pull request 23087), but no release has that yet.
"""

from __future__ import annotations

import contextlib
import functools
from typing import Any


def install() -> None:
    """Create Keras's variables outside the graph under a strategy. Call once in a process; runs no op."""
    import tensorflow as tf
    from keras.src.backend.tensorflow.core import Variable

    initialize = Variable._initialize_with_initializer

    @functools.wraps(initialize)
    def outside_the_graph(self: Any, initializer: Any) -> None:
        with tf.init_scope() if tf.distribute.has_strategy() else contextlib.nullcontext():
            initialize(self, initializer)

    Variable._initialize_with_initializer = outside_the_graph
