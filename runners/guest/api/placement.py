"""``lockstep.placement``: where variables live."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import tensorflow as tf
from tensorflow.python.distribute.sharded_variable import ShardedVariableMixin

from runners.guest.api import display
from runners.guest.api.pictures import VariablePlacement, placement_picture

_NAMELESS = "ShardedVariable"
"""TensorFlow's name for every sharded variable; its shards have the learner's name."""


def placement(*what: Any) -> None:
    """Show which devices variables live on, the bytes of each copy, and the kind of each variable.

        lockstep.placement(model)
        lockstep.placement(model.optimizer, counter)

    Args:
        what: models, layers, optimizers, variables, or lists of them.

    Raises:
        TypeError: something has no variables; the message says what to give.
    """
    display.show_picture(placement_picture([place for variable in _variables(what) for place in places_of(variable)]))


def places_of(variable: Any) -> list[VariablePlacement]:
    """Where a variable of Keras or TensorFlow lives, distributed or not. A sharded one lists each of its shards."""
    inner = plain_variable(variable)
    if not isinstance(inner, ShardedVariableMixin):
        return [_place(name_of(variable), inner, type(inner).__name__.removeprefix("Resource"))]
    own_name = name_of(variable)
    parts = inner.variables
    return [
        _place(
            name_of(part) if own_name == _NAMELESS else f"{own_name}/part_{number}",
            part,
            f"{_NAMELESS} {number + 1}/{len(parts)}",
        )
        for number, part in enumerate(parts)
    ]


def _place(name: str, variable: Any, kind: str) -> VariablePlacement:
    dtype = tf.as_dtype(variable.dtype)
    shape = tuple(int(size) for size in variable.shape)
    devices, size = display.variable_devices(variable), math.prod(shape) * (dtype.size or 0)
    return VariablePlacement(name=name, shape=shape, dtype=dtype.name, kind=kind, devices=devices, size=size)


def plain_variable(variable: Any) -> Any:
    """The TensorFlow variable inside a Keras 3 variable; any other is returned as it is."""
    return variable._value if hasattr(variable, "path") and hasattr(variable, "_value") else variable


def name_of(variable: Any) -> str:
    """The name as a learner knows it: ``sequential/dense/kernel``."""
    return str(getattr(variable, "path", None) or variable.name).removesuffix(":0")


def _variables(what: Any) -> Iterator[Any]:
    if isinstance(what, list | tuple):
        for each in what:
            yield from _variables(each)
    elif isinstance(what, Mapping):
        yield from _variables(list(what.values()))
    elif isinstance(what, tf.distribute.Strategy):
        raise TypeError("a strategy does not list its variables: pass the model to lockstep.placement")
    elif _is_variable(what):
        yield what
    elif hasattr(what, "variables"):
        inside = what.variables
        yield from _variables(list(inside() if callable(inside) else inside))
    else:
        raise TypeError(f"lockstep.placement takes models, layers, optimizers and variables, not {type(what).__name__}")


def _is_variable(what: Any) -> bool:
    return all(hasattr(what, name) for name in ("assign", "shape", "dtype"))
