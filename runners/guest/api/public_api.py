"""Lockstep's helpers for your own code.

    import lockstep

    lockstep.log(step, loss=loss, accuracy=accuracy)     plots the numbers of your own training loop
    for batch in lockstep.progress(batches): ...         shows a progress bar with the time left
    lockstep.shards(dataset, strategy)                   shows which examples go to which replica
    lockstep.placement(model)                            shows where its variables live
    with lockstep.replay("dense/kernel"):                shows one all-reduce of your own training: each gradient,
        model.fit(...)                                   the sum, and the weights before and after

In a cluster, make its processes fail, at once or when they reach a step:

    lockstep.kill("worker 1", at_step=5), lockstep.pause(…), lockstep.slow(…)
    lockstep.resume("worker 1"), lockstep.restart("worker 1")

`model.fit`, `evaluate` and `predict` are reported automatically. `help(lockstep.log)` tells more about each function.
"""

from __future__ import annotations

import builtins
import math
import numbers
from collections.abc import Iterable, Iterator
from typing import Any, TypeVar

from runners.guest.api.cluster_failures import kill, pause, restart, resume, slow
from runners.guest.api.placement import placement
from runners.guest.api.replay import replay
from runners.guest.api.shards import shards
from runners.guest.cluster import training_step
from runners.guest.reporting.metric_reporter import ProgressReporter, Value, metric_reporter

__all__ = [
    "help",
    "kill",
    "log",
    "pause",
    "placement",
    "progress",
    "replay",
    "restart",
    "resume",
    "shards",
    "slow",
]

T = TypeVar("T")

_MOST_NAMES = 20
_LARGEST_STEP = 2**53
_UNITS = ("step", "epoch", "item")


def help() -> None:
    """Print an overview of the functions."""
    print(__doc__.strip())


def log(step: Any, **values: Any) -> None:
    """Report numbers of your own training loop; the page plots them while it runs.

        for step, batch in enumerate(batches):
            loss = train_step(batch)
            lockstep.log(step, loss=loss)

    Call it at every step: at most ten reports a second are sent, and always the last one.

    Args:
        step: the number of steps done, an integer of 0 or more; `optimizer.iterations` works, too.
        values: named numbers: Python or NumPy numbers, or TensorFlow scalars. At most 20 names.

    Raises:
        TypeError: a value or the step is not one number; the message names it.
        ValueError: the step is negative, or there are no values or too many.
    """
    count = _step(step)
    if not 0 < len(values) <= _MOST_NAMES:
        raise ValueError(f"lockstep.log takes 1 to {_MOST_NAMES} named values, as in lockstep.log(step, loss=0.3)")
    read = {name: _value(name, value) for name, value in values.items()}
    training_step.reached(count)
    metric_reporter().tell(count, read)


def progress(iterable: Iterable[T], label: str = "steps", total: int | None = None, unit: str = "step") -> Iterator[T]:
    """Iterate over `iterable` and show the progress and the estimated time left.

        for batch in lockstep.progress(dataset, label="epoch 1"):
            train_step(batch)

    Args:
        iterable: anything that `for` takes; a `tf.data.Dataset` too.
        label: what is being done, in a word or two.
        total: the number of items, if `len(iterable)` does not tell it.
        unit: what the items are: "step", "epoch" or "item".

    Raises:
        TypeError, ValueError: an argument is invalid; the message names it.
    """
    if not isinstance(label, str):
        raise TypeError(f"label must be a string, not {_kind(label)}")
    if unit not in _UNITS:
        raise ValueError(f'unit must be "step", "epoch" or "item", not {unit!r}')
    if total is not None and (not isinstance(total, int) or isinstance(total, bool) or total < 0):
        raise ValueError(f"total must be a whole number of 0 or more, not {total!r}")
    return _counted(
        builtins.iter(iterable), ProgressReporter(label, unit), _length(iterable) if total is None else total
    )


def _counted(items: Iterator[T], course: ProgressReporter, total: int | None) -> Iterator[T]:
    done = 0
    course.reached(0, total)
    try:
        for item in items:
            yield item
            done += 1
            course.reached(done, total)
        course.reached(done, done)
    finally:
        course.end()


def _length(iterable: Any) -> int | None:
    """The number of items; None if unknown, as for an infinite data set."""
    try:
        length = len(iterable)
    except (TypeError, ValueError, OverflowError):
        return None
    return length if length >= 0 else None


def _step(step: Any) -> int:
    if _is_symbolic(step):
        raise TypeError(_IN_GRAPH.format(name="step"))
    if not isinstance(step, numbers.Integral) and hasattr(step, "numpy"):
        step = step.numpy()
    if getattr(step, "shape", None) == () and hasattr(step, "item"):
        step = step.item()
    if isinstance(step, bool) or not isinstance(step, numbers.Integral):
        raise TypeError(f"step must be a whole number, as in lockstep.log(100, loss=0.3), not {_kind(step)}")
    count = int(step)
    if not 0 <= count < _LARGEST_STEP:
        raise ValueError(f"step counts up from 0, so it cannot be {count}")
    return count


def _value(name: str, value: Any) -> Value:
    if isinstance(value, bool) or value is None:
        raise TypeError(f"{name} must be a number, not {value}")
    if isinstance(value, numbers.Real):
        return _plain(value)
    if _is_symbolic(value):
        raise TypeError(_IN_GRAPH.format(name=name))
    if type(value).__name__ in ("PerReplica", "DistributedValues"):
        raise TypeError(
            f"{name} has a value for each replica; combine them first: "
            f"strategy.reduce(tf.distribute.ReduceOp.SUM, {name}, axis=None)"
        )
    shape, dtype = getattr(value, "shape", None), getattr(value, "dtype", None)
    if shape is None or dtype is None:
        raise TypeError(f"{name} must be a number, not {_kind(value)}")
    if tuple(shape) != ():
        raise TypeError(
            f"{name} must be a single number, but its shape is {tuple(shape)}; tf.reduce_mean({name}) gives one"
        )
    if not any(kind in str(getattr(dtype, "name", dtype)) for kind in ("float", "int")):
        raise TypeError(f"{name} must be a number, not of the type {getattr(dtype, 'name', dtype)}")
    if type(value).__name__ == "EagerTensor":
        return lambda: float(value)  # it is immutable, and reading it now might wait for a GPU
    return _plain(value)


def _plain(value: Any) -> float:
    try:
        return float(value.numpy() if hasattr(value, "numpy") else value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


_IN_GRAPH = (
    "{name} has no value yet: lockstep.log was called inside a tf.function, while TensorFlow traces it into a graph. "
    "Return {name} from the function and call lockstep.log where you call the function, or print it with tf.print"
)


def _is_symbolic(value: Any) -> bool:
    return type(value).__name__ in ("SymbolicTensor", "KerasTensor") or (
        hasattr(value, "graph") and hasattr(value, "op") and not hasattr(value, "numpy")
    )


def _kind(value: Any) -> str:
    return f"{type(value).__name__} {value!r}"[:80]
