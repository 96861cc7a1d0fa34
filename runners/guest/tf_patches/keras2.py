"""What code written for TensorFlow 2.6 asks of Keras 2, and TF-Keras 2.21 does not give any more.

Common in courses of that time are optimizers' ``lr`` and ``decay``, the first of which would be ignored with nothing
but a warning, ``tf.keras.mixed_precision.experimental``, and ``tf.keras.__version__``. All else is TF-Keras's own.

``import tensorflow.keras.layers`` finds the folder of TF-Keras that ``tf.keras`` comes from, and would run its files
once more under the other name: a module that is not the one that ``tf.keras`` has, without what is added here.
"""

from __future__ import annotations

import functools
import inspect
import sys
import types
from typing import Any

_RATE = "learning_rate"
_BEHIND = "tf_keras.api._v2.keras"
"""The package behind ``tf.keras``."""
_FIXED = (
    "A policy cannot have a loss scale any more. Give it to the optimizer: "
    "tf.keras.mixed_precision.LossScaleOptimizer(optimizer, dynamic=False, initial_scale=…)."
)


def install() -> None:
    """Call once, in a process whose ``tf.keras`` is TF-Keras; runs no op."""
    import tensorflow as tf
    import tf_keras

    for name in dir(tf.keras.optimizers):
        each = getattr(tf.keras.optimizers, name)
        if isinstance(each, type) and _RATE in inspect.signature(each).parameters:
            _understand_older_words(each)
    experimental = _mixed_precision()
    for module in (tf.keras.mixed_precision, tf_keras.mixed_precision):
        module.experimental = experimental
    for name, value in vars(tf_keras).items():
        if (name == "__version__" or not name.startswith("_")) and not hasattr(tf.keras, name):
            setattr(tf.keras, name, value)
    sys.modules["tensorflow.keras.mixed_precision.experimental"] = experimental
    for name, module in list(sys.modules.items()):
        if name == _BEHIND or name.startswith(f"{_BEHIND}."):
            sys.modules.setdefault(name.replace(_BEHIND, "tensorflow.keras", 1), module)


def _understand_older_words(optimizer: type) -> None:
    """``lr`` is the learning rate; with ``decay`` it is divided by 1 + ``decay`` × steps, as ever."""
    init = optimizer.__init__  # type: ignore[misc]
    usual = inspect.signature(init).parameters[_RATE].default

    @functools.wraps(init)
    def with_older_words(self: Any, *args: Any, **kwargs: Any) -> None:
        rate, decay = kwargs.pop("lr", None), kwargs.pop("decay", None)
        if rate is not None and not args:
            kwargs.setdefault(_RATE, rate)
        if decay:
            from tf_keras.optimizers.schedules import InverseTimeDecay

            first, args = (args[0], args[1:]) if args else (kwargs.get(_RATE, usual), ())
            kwargs_of_rest = dict(zip(list(inspect.signature(init).parameters)[2:], args, strict=False))
            args, kwargs = (), {**kwargs_of_rest, **kwargs, _RATE: InverseTimeDecay(first, 1, decay)}
        init(self, *args, **kwargs)

    optimizer.__init__ = with_older_words  # type: ignore[misc]


def _mixed_precision() -> types.ModuleType:
    from tf_keras import mixed_precision

    class Policy(mixed_precision.Policy):  # type: ignore[misc]
        """As it was: a loss scale is dynamic where the policy needs one."""

        def __init__(self, name: str, loss_scale: Any = "auto") -> None:
            if loss_scale not in ("auto", "dynamic", None):
                raise ValueError(_FIXED)
            super().__init__(name)

    def loss_scale_optimizer(optimizer: Any, loss_scale: Any = "dynamic") -> Any:
        """As it was: ``loss_scale`` is ``dynamic`` or a number."""
        if loss_scale == "dynamic":
            return mixed_precision.LossScaleOptimizer(optimizer)
        return mixed_precision.LossScaleOptimizer(optimizer, dynamic=False, initial_scale=float(loss_scale))

    experimental = types.ModuleType("tf_keras.mixed_precision.experimental")
    experimental.Policy = Policy  # type: ignore[attr-defined]
    experimental.LossScaleOptimizer = loss_scale_optimizer  # type: ignore[attr-defined]
    experimental.set_policy = mixed_precision.set_global_policy  # type: ignore[attr-defined]
    experimental.global_policy = mixed_precision.global_policy  # type: ignore[attr-defined]
    return experimental
