"""Restores what code written for TensorFlow 2.6 expects of Keras 2 and TF-Keras 2.21 no longer has.

Courses of that time often use ``tf.keras.mixed_precision.experimental``, ``tf.keras.__version__``, and the optimizers'
``lr`` and ``decay``, the first of which would only cause a warning. Everything else is TF-Keras's own.

``import tensorflow.keras.layers`` would find TF-Keras's files and run them a second time under the other name. The
result would be a second module, different from the one in ``tf.keras``, without these additions.
"""

from __future__ import annotations

import inspect
import sys
import types
from typing import Any

from runners.guest.tf_patches.registry import Subject

_TESTS = "tests/long/runner/test_keras2.py::"
_TF_KERAS = "tf_keras.api._v2.keras"
"""The package behind ``tf.keras``."""
_RATE = "learning_rate"
_FIXED = (
    "A policy can no longer have a loss scale. Give it to the optimizer: "
    "tf.keras.mixed_precision.LossScaleOptimizer(optimizer, dynamic=False, initial_scale=…)."
)
OPTIMIZERS = (
    "Adadelta",
    "Adafactor",
    "Adagrad",
    "Adam",
    "AdamW",
    "Adamax",
    "Ftrl",
    "Lion",
    "Nadam",
    "RMSprop",
    "SGD",
)
"""The optimizers in ``tf.keras.optimizers`` that have a learning rate."""

subject = Subject(
    __name__,
    when="Keras 2",
    because="code written for TensorFlow 2.6 uses names that TF-Keras has dropped",
    since="TF-Keras 2.21",
    test=f"{_TESTS}test_fit_mixed_precision_and_states_of_their_time_run",
)


def install() -> None:
    """Call once, in a process whose ``tf.keras`` is TF-Keras; runs no op."""
    import tensorflow as tf
    import tf_keras

    _ = tf.keras.optimizers, tf.keras.mixed_precision
    subject.apply()
    for name, value in vars(tf_keras).items():
        if (name == "__version__" or not name.startswith("_")) and not hasattr(tf.keras, name):
            setattr(tf.keras, name, value)
    sys.modules["tensorflow.keras.mixed_precision.experimental"] = tf.keras.mixed_precision.experimental
    for name, module in list(sys.modules.items()):
        if name == _TF_KERAS or name.startswith(f"{_TF_KERAS}."):
            sys.modules.setdefault(name.replace(_TF_KERAS, "tensorflow.keras", 1), module)


subject.needs(
    "tf_keras:__version__",
    because="tf.keras lacks names of tf_keras, and tensorflow.keras.layers would be a second copy of tf.keras.layers",
    test=f"{_TESTS}test_the_version_and_the_modules_have_one_name_each_way_of_importing_them",
)


def _with_older_words(original: Any, self: Any, *args: Any, **kwargs: Any) -> None:
    """Accept ``lr`` as the learning rate; with ``decay``, divide it by 1 + ``decay`` × steps, as Keras used to."""
    rate, decay = kwargs.pop("lr", None), kwargs.pop("decay", None)
    if rate is not None and not args:
        kwargs.setdefault(_RATE, rate)
    if decay:
        from tf_keras.optimizers.schedules import InverseTimeDecay

        parameters = inspect.signature(original).parameters
        first, args = (args[0], args[1:]) if args else (kwargs.get(_RATE, parameters[_RATE].default), ())
        kwargs_of_rest = dict(zip(list(parameters)[2:], args, strict=False))
        args, kwargs = (), {**kwargs_of_rest, **kwargs, _RATE: InverseTimeDecay(first, 1, decay)}
    original(self, *args, **kwargs)


for _name in OPTIMIZERS:
    subject.patch(
        f"tf_keras.src.optimizers.{_name.lower()}:{_name}.__init__",
        relies_on=("(self, learning_rate, ...)",),
        test="tests/unit/runners/guest/tf_patches/test_keras2.py"
        "::test_each_optimizer_with_a_learning_rate_takes_it_as_lr_and_lets_it_decay",
    )(_with_older_words)


@subject.add(
    f"{_TF_KERAS}.mixed_precision:experimental",
    also=("tf_keras.mixed_precision:experimental",),
    relies_on=(
        ".Policy",
        ".LossScaleOptimizer",
        ".set_global_policy",
        ".global_policy",
    ),
)
def _mixed_precision() -> types.ModuleType:
    from tf_keras import mixed_precision

    class Policy(mixed_precision.Policy):  # type: ignore[misc]
        """The policy of TensorFlow 2.6: its loss scale is dynamic if it needs one."""

        def __init__(self, name: str, loss_scale: Any = "auto") -> None:
            if loss_scale not in ("auto", "dynamic", None):
                raise ValueError(_FIXED)
            super().__init__(name)

    def loss_scale_optimizer(optimizer: Any, loss_scale: Any = "dynamic") -> Any:
        """The class of TensorFlow 2.6: ``loss_scale`` is ``dynamic`` or a number."""
        if loss_scale == "dynamic":
            return mixed_precision.LossScaleOptimizer(optimizer)
        return mixed_precision.LossScaleOptimizer(optimizer, dynamic=False, initial_scale=float(loss_scale))

    experimental = types.ModuleType("tf_keras.mixed_precision.experimental")
    experimental.Policy = Policy  # type: ignore[attr-defined]
    experimental.LossScaleOptimizer = loss_scale_optimizer  # type: ignore[attr-defined]
    experimental.set_policy = mixed_precision.set_global_policy  # type: ignore[attr-defined]
    experimental.global_policy = mixed_precision.global_policy  # type: ignore[attr-defined]
    return experimental
