"""Hooks for ``lockstep.replay`` while it waits for a step: into TensorFlow's reduction and update, and Keras's call.

All of them are removed as soon as the step has been seen.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import tensorflow as tf
from tensorflow.python.distribute import mirrored_strategy

from runners.guest.tf_patches.registry import Subject

_TESTS = "tests/functional/runner/test_visualizations.py::"

subject = Subject(
    __name__,
    when="replay",
    because="TensorFlow does not show what is reduced, nor what a variable is updated with",
    since="TensorFlow 2.21",
    test=f"{_TESTS}test_a_replay_of_ones_own_loop_fits_together",
    essential=True,
)


class Observer(Protocol):
    """Observes each call, and makes it: ``original`` is TensorFlow's own."""

    def see_reduction(self, original: Any, ops: Any, reduce_op: Any, pairs: Any, options: Any = None) -> Any:
        """``CrossDeviceOps.batch_reduce``."""

    def see_update(
        self, original: Any, extended: Any, var: Any, fn: Any, args: Any = (), kwargs: Any = None, group: bool = True
    ) -> Any:
        """``StrategyExtendedV2.update``."""

    def see_names(self, original: Any, optimizer: Any, grads: Any, variables: Any, rate: Any) -> Any:
        """``_backend_update_step`` of an optimizer of Keras 3."""


def observe(observer: Observer) -> Callable[[], None]:
    """Put the hooks in place; returns a function that removes them. A Keras that is not imported gets none."""
    return subject.apply(observer, wait_for_imports=False)


@subject.patch(
    "tensorflow.python.distribute.cross_device_ops:CrossDeviceOps.batch_reduce",
    relies_on=("(self, reduce_op, value_destination_pairs, options)",),
)
def _batch_reduce(observer: Observer, original: Any, *args: Any, **kwargs: Any) -> Any:
    return observer.see_reduction(original, *args, **kwargs)


@subject.patch(
    "tensorflow.python.distribute.distribute_lib:StrategyExtendedV2.update",
    relies_on=("(self, var, fn, args, kwargs, group)",),
)
def _update(observer: Observer, original: Any, *args: Any, **kwargs: Any) -> Any:
    return observer.see_update(original, *args, **kwargs)


@subject.patch(
    "keras.src.backend.tensorflow.optimizer:TFOptimizer._backend_update_step",
    relies_on=("(self, grads, trainable_variables, learning_rate)",),
    since="Keras 3.15",
)
def _backend_update_step(observer: Observer, original: Any, *args: Any, **kwargs: Any) -> Any:
    return observer.see_names(original, *args, **kwargs)


for _name in ("make_train_function", "make_test_function", "make_predict_function"):

    @subject.patch(
        f"tf_keras.src.engine.training:Model.{_name}",
        because="while functions run op by op, Keras 2 makes a step that is not a function, and keeps it permanently",
        since="TF-Keras 2.21",
        test=f"{_TESTS}test_a_replay_of_fit_fits_together_and_the_training_goes_on",
    )
    def _make_function(_: Observer, original: Any, model: Any, *args: Any, **kwargs: Any) -> Any:
        eagerly = tf.config.functions_run_eagerly()
        tf.config.run_functions_eagerly(False)
        try:
            return original(model, *args, **kwargs)
        finally:
            tf.config.run_functions_eagerly(eagerly)


for _name in ("TPUStrategyV2", "TPUStrategy"):

    @subject.patch(
        f"tensorflow.python.distribute.tpu_strategy:{_name}.run",
        relies_on=("(self, fn, args, kwargs, options)",),
        because="a TPU runs graphs only; the logical CPUs that simulate its cores also run op by op",
        test=f"{_TESTS}test_a_replay_works_on_a_simulated_tpu",
    )
    def _run(
        _: Observer, original: Any, strategy: Any, fn: Any, args: Any = (), kwargs: Any = None, **more: Any
    ) -> Any:
        if not tf.executing_eagerly():
            return original(strategy, fn, args, kwargs, **more)
        if not isinstance(strategy.extended, mirrored_strategy.MirroredExtended):
            raise ValueError("lockstep.replay cannot look into the compiled step of a real TPU: choose a simulated one")
        with strategy.scope():
            return strategy.extended.call_for_each_replica(fn, args, kwargs)
