"""``lockstep.replay``: one all-reduce of the learner's own training, number by number.

While it waits for a step, functions run op by op, so that tensors have values. TensorFlow's own reduction and update
run; their arguments and results are recorded. The numbers are shown only if they are consistent: the reduced value must
be the sum of the replicas' gradients, and the variable must have been updated with it.
"""

from __future__ import annotations

import logging
import os
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType
from typing import Any

import numpy as np
import tensorflow as tf

from runners.guest.api import display
from runners.guest.api.pictures import Reduction, largest_values, replay_picture
from runners.guest.api.placement import name_of, plain_variable
from runners.guest.tf_patches import replay_hooks

_NAMES_SHOWN = 12


@dataclass(frozen=True, slots=True)
class _Reduced:
    """One reduced value: each replica's before, and the result."""

    operation: str
    algorithm: str
    replicas: tuple[Any, ...]
    results: tuple[Any, ...]


class Replay:
    """Returned by ``replay``; after the block it holds the numbers as arrays."""

    def __init__(self, variable: Any = None) -> None:
        if not (variable is None or isinstance(variable, str) or hasattr(variable, "assign")):
            raise TypeError(f"variable must be a name, as in 'dense/kernel', or a variable, not {variable!r}")
        self.variable: str | None = None
        self.gradients: list[np.ndarray[Any, Any]] = []
        """The gradient of each replica."""
        self.reduced: np.ndarray[Any, Any] | None = None
        self.before: np.ndarray[Any, Any] | None = None
        self.after: np.ndarray[Any, Any] | None = None
        self._wanted = variable
        self._reductions: list[_Reduced] = []
        self._names: dict[int, str] = {}
        """Keras 3's variable names, by the ``id`` of the TensorFlow variable."""
        self._updated: dict[int, str] = {}
        self._taken: int = 0
        """Reductions that an update was found for; later ones are tried first."""
        self._undo: list[Callable[[], None]] = []
        self._mismatch = ""

    def __enter__(self) -> Replay:
        """Start waiting for a step.

        Raises:
            ValueError: this is a cluster, where no process sees all gradients.
        """
        if os.environ.get("TF_CONFIG"):
            raise ValueError(
                "lockstep.replay needs all replicas in one process, but in this cluster each process has its own. "
                "Use MirroredStrategy on simulated GPUs for it, or lockstep.shards and lockstep.placement here."
            )
        eagerly = tf.config.functions_run_eagerly()
        tf.config.run_functions_eagerly(True)
        self._undo.append(lambda: tf.config.run_functions_eagerly(eagerly))
        self._undo.append(replay_hooks.observe(self))
        self._leave_out_warnings()
        logger = tf.get_logger()
        logger.addFilter(_no_advice)
        self._undo.append(lambda: logger.removeFilter(_no_advice))
        return self

    def __exit__(self, kind: type[BaseException] | None, _: object, __: TracebackType | None) -> None:
        """Stop waiting.

        Raises:
            ValueError: the block ended without an all-reduce of the variable; the message says why.
        """
        self._stop()
        if kind is None and self.variable is None:
            raise ValueError(self._why_not())

    def _leave_out_warnings(self) -> None:
        """Suppress TensorFlow's warning that ``tf.data`` functions are not run eagerly."""
        warnings.filterwarnings("ignore", message="Even though the `tf.config.experimental_run_functions_eagerly`")
        ours = warnings.filters[0]
        self._undo.append(lambda: _forget_filter(ours))

    def _stop(self) -> None:
        while self._undo:
            self._undo.pop()()
        self._reductions = []

    def _why_not(self) -> str:
        if self._mismatch:
            return self._mismatch
        if not self._updated:
            return (
                "lockstep.replay saw no all-reduce: inside the block, train at least one step with a strategy of more "
                "than one replica and a Keras optimizer"
            )
        names = list(self._updated.values())
        shown = ", ".join(names[:_NAMES_SHOWN]) + (" …" if len(names) > _NAMES_SHOWN else "")
        return f"this step did not update a variable named {self._wanted!r}; it updated: {shown}"

    # --- called by the hooks ------------------------------------------------------------------------------------------

    def see_names(self, original: Any, optimizer: Any, grads: Any, variables: Any, rate: Any) -> Any:
        """Note the names of the variables that Keras 3 updates."""
        for variable in variables:
            self._names[id(plain_variable(variable))] = name_of(variable)
        return original(optimizer, grads, variables, rate)

    def see_reduction(self, original: Any, ops: Any, reduce_op: Any, pairs: Any, options: Any = None) -> Any:
        """Reduce values, and note them before and after."""
        pairs = list(pairs)
        results = original(ops, reduce_op, pairs, options)
        if tf.executing_eagerly():
            operation = str(getattr(reduce_op, "value", reduce_op)).lower()
            self._reductions = [
                _Reduced(operation, _algorithm(ops), _components(value), _components(result))
                for (value, _), result in zip(pairs, results, strict=True)
            ]
            self._taken = 0
        return results

    def see_update(
        self, original: Any, extended: Any, var: Any, fn: Any, args: Any = (), kwargs: Any = None, group: bool = True
    ) -> Any:
        """Update a variable; if it is the wanted one, show it and stop waiting."""
        one = self._reduction_of(var, args) if args and tf.executing_eagerly() else None
        if one is None:
            return original(extended, var, fn, args, kwargs, group)
        if id(var) in self._updated:  # a second step has begun, and the first did not update the wanted variable
            self._stop()
            return original(extended, var, fn, args, kwargs, group)
        name = self._updated[id(var)] = self._names.get(id(var)) or name_of(var)
        if not self._is_wanted(var, name):
            return original(extended, var, fn, args, kwargs, group)
        before = _read(var)
        result = original(extended, var, fn, args, kwargs, group)
        self._take(var, name, one, before)
        return result

    def _reduction_of(self, var: Any, args: Any) -> _Reduced | None:
        """Find the reduction whose result the variable is updated with."""
        given = _components(args[0])
        order: list[int] = [*range(self._taken, len(self._reductions)), *range(self._taken)]
        found: int | None = next((i for i in order if _are_same(given, self._reductions[i].results)), None)
        if found is None:
            return None
        self._taken = found + 1
        return self._reductions[found]

    def _is_wanted(self, var: Any, name: str) -> bool:
        wanted = self._wanted
        if wanted is None:
            return id(_smallest(self._reductions)) == id(self._reductions[self._taken - 1])
        if isinstance(wanted, str):
            return f"/{name}".endswith("/" + wanted.removesuffix(":0"))
        return plain_variable(wanted) is var

    def _take(self, var: Any, name: str, one: _Reduced, before: np.ndarray[Any, Any]) -> None:
        gradients = [_array(value) for value in one.replicas]
        reduced = _array(one.results[0])
        after = _read(var)
        if not _fits(one.operation, gradients, reduced):
            self._mismatch = (
                f"the replicas' gradients do not add up to the one that {name} was updated with, so nothing is shown"
            )
            self._stop()
            return
        self.variable, self.gradients, self.reduced = name, gradients, reduced
        self.before, self.after = before, after
        devices = tuple(display.replica_name(getattr(value, "device", "")) for value in one.replicas)
        self._stop()
        display.show_picture(replay_picture(_few(name, one, devices, gradients, reduced, before, after)))


def _forget_filter(ours: Any) -> None:
    warnings.filters = [each for each in warnings.filters if each is not ours]


def replay(variable: Any = None) -> Replay:
    """Show one all-reduce of your own training: the gradient of each replica, the sum, the weights before and after.

        with lockstep.replay("dense/kernel"):
            model.fit(dataset, epochs=1)

        with lockstep.replay() as one:
            train_step(next(batches))
        one.gradients, one.reduced, one.before, one.after

    It shows the first step of a Keras optimizer inside the block; later steps run as usual. That step runs op by op
    instead of as a graph: it is slower, and random ops such as dropout draw different numbers. It works with
    MirroredStrategy, a simulated TPU and CentralStorageStrategy.

    Args:
        variable: the variable, its name, or the end of its name; None: the smallest variable.

    Raises:
        ValueError: this is a cluster, or, at the end of the block, it contained no such all-reduce.
    """
    return Replay(variable)


def _few(
    name: str,
    one: _Reduced,
    devices: tuple[str, ...],
    gradients: list[np.ndarray[Any, Any]],
    reduced: np.ndarray[Any, Any],
    before: np.ndarray[Any, Any],
    after: np.ndarray[Any, Any],
) -> Reduction:
    shown = largest_values(reduced.ravel().tolist())

    def some(values: np.ndarray[Any, Any]) -> tuple[float, ...]:
        return tuple(float(value) for value in values.ravel()[shown])

    return Reduction(
        variable=name,
        shape=tuple(reduced.shape),
        operation=one.operation,
        algorithm=one.algorithm,
        devices=devices,
        positions=tuple(tuple(int(k) for k in np.unravel_index(i, reduced.shape)) for i in shown),
        replicas=tuple(some(gradient) for gradient in gradients),
        reduced=some(reduced),
        before=some(before),
        after=some(after),
    )


def _components(value: Any) -> tuple[Any, ...]:
    values = getattr(value, "values", None)
    return values if isinstance(values, tuple) else (value,)


def _array(value: Any) -> np.ndarray[Any, Any]:
    """Convert a gradient to an array, even the sparse ones of embeddings."""
    array: np.ndarray[Any, Any] = tf.convert_to_tensor(value).numpy()
    return array


def _read(variable: Any) -> np.ndarray[Any, Any]:
    """Read the first copy of a variable."""
    array: np.ndarray[Any, Any] = np.array(_components(variable)[0].numpy())
    return array


def _are_same(some: tuple[Any, ...], others: tuple[Any, ...]) -> bool:
    return len(some) == len(others) and all(map(_is_same, some, others))


def _is_same(one: Any, other: Any) -> bool:
    if one is other:
        return True
    if tuple(getattr(one, "shape", ())) != tuple(getattr(other, "shape", ())):
        return False
    return bool(np.array_equal(_array(one), _array(other), equal_nan=True))


def _fits(operation: str, gradients: list[np.ndarray[Any, Any]], reduced: np.ndarray[Any, Any]) -> bool:
    wide = np.sum([gradient.astype("float64") for gradient in gradients], axis=0)
    expected = wide / len(gradients) if operation == "mean" else wide
    tolerance = 1e-4 if reduced.dtype.itemsize >= 4 else 2e-2
    scale = max((float(np.abs(gradient).max(initial=0)) for gradient in gradients), default=0.0)
    return bool(np.allclose(expected, reduced.astype("float64"), tolerance, tolerance * scale, equal_nan=True))


def _smallest(reductions: list[_Reduced]) -> _Reduced:
    """The last one with the fewest numbers, but more than one: a single number shows little."""
    sizes = [int(np.prod(one.results[0].shape)) for one in reductions]
    several = [size for size in sizes if size > 1] or sizes
    return next(one for one, size in zip(reversed(reductions), reversed(sizes), strict=True) if size == min(several))


def _algorithm(ops: Any) -> str:
    name = type(ops).__name__
    return f"{name} (simulated)" if name == "NcclAllReduce" and display.is_simulated() else name


def _no_advice(record: logging.LogRecord) -> bool:
    """Filter out TensorFlow's advice against running op by op, which is intended here."""
    return "eagerly has significant overhead" not in record.getMessage()
