"""Watches what ``strategy.run`` traces on a simulated TPU, and raises the error or gives the notice that a TPU calls
for.

A trace is read once, when it is made; later steps cost nothing.
"""

from __future__ import annotations

import functools
import sysconfig
import weakref
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import tensorflow as tf
from tensorflow.python.distribute import values
from tensorflow.python.eager.polymorphic_function import polymorphic_function
from tensorflow.python.framework import func_graph
from tensorflow.python.util import nest, tf_stack

import runners
from runners.guest.accelerators import tpu_rules
from runners.guest.accelerators.tpu_rules import CompilationCounter, Shape, TpuFinding, TracedOperation
from runners.guest.reporting import notices

_NOTICES = {
    "host": "tpu-on-host",
    "dynamic": "tpu-dynamic-operation",
    "computed": "tpu-computed-size",
    "wide": "tpu-wide",
}
_LIBRARIES = [
    *(Path(sysconfig.get_path(which)) for which in ("stdlib", "purelib", "platlib")),
    Path(tf.__file__).parents[1],
    Path(runners.__file__).parent,
]
_NOT_THE_LEARNERS = (*{f"{folder}/" for folder in _LIBRARIES}, "<frozen", "<__array_function__")


@dataclass
class _Reported:
    """The notices already given about one function."""

    compilations: CompilationCounter = field(default_factory=CompilationCounter)
    said: set[tuple[str, str]] = field(default_factory=set)

    def say(self, code: str, about: str, **said: str | float) -> None:
        if (code, about) not in self.said:
            self.said.add((code, about))
            notices.notify(code, **said)


_seen: weakref.WeakKeyDictionary[Any, dict[Any, _Reported]] = weakref.WeakKeyDictionary()


def trace_and_check(function: Any, arguments: Any, device: str, trace: Callable[[], Any]) -> Any:
    """Trace a function and check the result.

    Args:
        function: what every replica runs.
        arguments: its arguments: tensors, values per replica, or plain Python values, nested.
        device: the end of the name of the first replica's device; only its operations are checked.
        trace: adds all replicas' operations to the default graph; what it returns is returned.

    Raises:
        tf.errors.InvalidArgumentError: the first replica runs an operation that a TPU's compiler rejects.
    """
    name, seen = _name(function), _what_was_said_of(function)
    graph = tf.compat.v1.get_default_graph()
    _judge_inputs(name, seen, arguments, graph)
    before = len(graph.get_operations())
    result = trace()
    findings = tpu_rules.find_violations(
        _nodes(graph, graph.get_operations()[before:], device), tf.config.get_soft_device_placement()
    )
    if refused := [finding for finding in findings if finding.kind == "refused"]:
        error = tf.errors.InvalidArgumentError(None, None, tpu_rules.refusal(name, refused))
        error.ag_pass_through = True  # otherwise AutoGraph rewrites it
        raise error
    for finding in findings:
        seen.say(_NOTICES[finding.kind], finding.operation, **_values(name, finding))
    return result


def _values(name: str, finding: TpuFinding) -> dict[str, str]:
    said = {"function": finding.node.place or name, "operation": finding.operation}
    return said | ({"dtype": finding.node.dtypes[0]} if finding.kind == "wide" else {})


def _judge_inputs(name: str, seen: _Reported, arguments: Any, graph: Any) -> None:
    inputs = [_read_input(value) for value in nest.flatten(arguments)]
    unknown = tpu_rules.unknown_sizes([shape for shapes, _ in inputs for shape in shapes])
    # get_next_as_optional, which Keras's steps_per_execution uses, gives batches no static size even if all are equal.
    if unknown != "known" and not _iterators_are_static(graph):
        seen.say("tpu-dynamic-batch", "", function=name, shape=tpu_rules.format_shape(unknown))
    outer = [f"{value!r}"[:40] for value in _python_values(graph)]
    if (again := seen.compilations.note((*(text for _, text in inputs), *outer))) is not None:
        count, new, old = again
        notices.notify("tpu-compiled-again", function=name, count=count, new=new, old=old)


def _read_input(value: Any) -> tuple[list[Shape], str]:
    """The shapes of an argument on the replicas (empty for a Python value), and a description of it."""
    parts = value.values if isinstance(value, values.PerReplica) else (value,)
    read = [_one(part) for part in parts]
    shapes = [shape for shape, _ in read if not isinstance(shape, str)]
    return shapes, " and ".join(dict.fromkeys(text for _, text in read))


def _one(value: Any) -> tuple[Shape | str, str]:
    """A value's shape, or a word for a Python value, and a description with its type."""
    if isinstance(value, values.DistributedValues) or not hasattr(value, "shape") or not hasattr(value, "dtype"):
        return "python", f"{type(value).__name__}" if hasattr(value, "__dict__") else f"{value!r}"[:40]
    shape = tf.TensorShape(value.shape)
    sizes: Shape = None if shape.rank is None else tuple(shape.as_list())
    return sizes, f"{tf.as_dtype(value.dtype).name}{tpu_rules.format_shape(sizes)}"


def _iterators_are_static(graph: Any) -> bool:
    """Whether every iterator passed to the outermost function gives batches of one size."""
    specs = [spec for spec in nest.flatten(_signature(graph)) if hasattr(spec, "_element_spec")]
    leaves = nest.flatten([spec._element_spec for spec in specs], expand_composites=True)
    return bool(leaves) and all(leaf.shape.is_fully_defined() for leaf in leaves)


def _signature(graph: Any) -> Any:
    """The call signature of the outermost function that contains ``graph``."""
    while isinstance(outer := getattr(graph, "outer_graph", None), func_graph.FuncGraph):
        graph = outer
    return getattr(graph, "structured_input_signature", None) or ()


def _python_values(graph: Any) -> Iterator[Any]:
    """Numbers, strings and booleans passed to the outermost function: each new one causes another trace."""
    for value in nest.flatten(_signature(graph)):
        if isinstance(value, bool | int | float | str):
            yield value


def _nodes(graph: Any, operations: list[Any], device: str) -> Iterator[TracedOperation]:
    for operation in operations:
        if operation.device.endswith(device):
            yield from _read(operation, graph, set())


def _read(operation: Any, graph: Any, within: set[str]) -> Iterator[TracedOperation]:
    op = operation.type
    dtypes = tuple(output.dtype.base_dtype.name for output in operation.outputs)
    computed = _is_of_computed_size(operation, inner=bool(within))
    if computed or tpu_rules.could_matter(op, dtypes):
        yield TracedOperation(op, operation.name, dtypes, _place(operation), computed)
    for body in _bodies(operation, graph):
        if body.name not in within:
            for inner in body.get_operations():
                yield from _read(inner, body, within | {body.name})


def _is_of_computed_size(operation: Any, inner: bool) -> bool:
    """Whether the output is used and its size is known only when the step runs.

    TensorFlow has already inferred what follows from constants. A size that derives from an unknown size in the data is
    reported where the data enter. Unused outputs are dropped before compilation; AutoGraph leaves behind such a
    ``tf.range`` of a loop. An argument of an ``inner`` function, such as a loop's body, may come from a shape.
    """
    sizing = tpu_rules.sizing_inputs(operation.type)
    if not sizing or operation.outputs[0].shape.is_fully_defined() or not operation.outputs[0].consumers():
        return False
    data = [tensor for index, tensor in enumerate(operation.inputs) if index not in sizing]
    if not all(tensor.shape.is_fully_defined() for tensor in data):
        return False
    return any(_is_value(operation.inputs[index], inner) for index in sizing if index < len(operation.inputs))


def _is_value(tensor: Any, inner: bool) -> bool:
    """Whether a number is known only when the step runs: it depends on data or variables, not just on shapes."""
    waiting, seen = [tensor.op], set()
    while waiting:
        operation = waiting.pop()
        if operation.name in seen:
            continue
        seen.add(operation.name)
        if inner and operation.type == "Placeholder":
            continue
        known = tpu_rules.known_when(operation.type)
        if known == "running":
            return True
        if known is None:
            waiting.extend(source.op for source in operation.inputs)
    return False


def _bodies(operation: Any, graph: Any) -> Iterator[Any]:
    """The functions that an operation calls: a loop's body, the branches of a conditional."""
    for attribute in ("body", "cond", "then_branch", "else_branch", "f"):
        if attribute in operation.node_def.attr if operation.type in _CALLERS else ():
            called = graph._get_function(operation.node_def.attr[attribute].func.name)
            if (body := getattr(called, "graph", None)) is not None:
                yield body


_CALLERS = frozenset({"While", "StatelessWhile", "If", "StatelessIf", "PartitionedCall", "StatefulPartitionedCall"})


def _place(operation: Any) -> str:
    """The learner's function and line that created an operation.

    The replicas' threads record the lines that AutoGraph generated; this thread has the map to the learner's lines.
    """
    sources = tf_stack._source_mapper_stacks[tf_stack._get_thread_key()][-1].get_effective_source_map()
    for frame in reversed(operation.traceback or ()):
        file, line, name = sources.get((frame.filename, frame.lineno), (frame.filename, frame.lineno, frame.name))
        if not file.startswith(_NOT_THE_LEARNERS):
            return f"{name}:{line}"
    return ""


def _plain(function: Any) -> Any:
    while True:
        if isinstance(function, polymorphic_function.Function):
            function = function.python_function
        elif isinstance(function, functools.partial):
            function = function.func
        else:
            return function


def _name(function: Any) -> str:
    function = _plain(function)
    name = str(getattr(function, "__name__", type(function).__name__))
    owner = _owner(function)
    return name if owner is None else f"{type(owner).__name__}.{name}"


def _owner(function: Any) -> Any:
    """The object that a function belongs to: that of a method, or the model in the closure of a Keras function."""
    owner = getattr(function, "__self__", None)
    code = getattr(function, "__code__", None)
    if owner is None and code is not None and code.co_filename.startswith(_NOT_THE_LEARNERS):
        around = [cell.cell_contents for cell in function.__closure__ or ()]
        owner = next((thing for thing in around if hasattr(thing, "layers")), None)
    return owner


def _what_was_said_of(function: Any) -> _Reported:
    """The notices about a function, which stays the same if its definition runs again; a method, per object."""
    function = _plain(function)
    code = getattr(function, "__code__", None)
    owner = _owner(function)
    if owner is None:
        own = code is not None and not code.co_filename.startswith(_NOT_THE_LEARNERS)
        owner = code if own else function
    try:
        return _seen.setdefault(owner, {}).setdefault(code, _Reported())
    except TypeError:  # it cannot be weakly referenced: remember nothing
        return _Reported()
