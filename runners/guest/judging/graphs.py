"""A function as TensorFlow traced it: exported where it was written, examined and run where nobody wrote anything."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.python.framework import op_def_registry

from runners.checks.plain_data import NotPlainData, PlainData

_LONGEST_ERROR = 500
_COLLECTIVES = frozenset(
    f"Collective{kind}{version}"
    for kind in ("AllToAll", "Gather", "Reduce", "ReduceScatter")
    for version in ("", "V2", "V3")
)

_CONTROL_FLOW = frozenset(
    {
        *("Enter", "Exit", "LoopCond", "Merge", "NextIteration", "Switch"),
        *("RefEnter", "RefExit", "RefMerge", "RefNextIteration", "RefSwitch"),
    }
)
"""In functions, TensorFlow keeps them like stateful operations."""


def export(function: Any, args: list[PlainData]) -> dict[str, PlainData]:
    """Trace ``function`` with these arguments, and write down its graph and all that it captured, as plain data."""
    arguments = [tf.constant(arg) if isinstance(arg, np.ndarray) else arg for arg in args]
    if not hasattr(function, "get_concrete_function"):
        function = tf.function(function)
    concrete = function.get_concrete_function(*arguments)
    captured = concrete.captured_inputs  # the last inputs, also those that are looked up again in each call
    passed = len(concrete.inputs) - len(captured)
    names = [tensor.name for tensor in concrete.inputs]
    return {
        "graph": concrete.graph.as_graph_def().SerializeToString(),
        "inputs": names[:passed],
        "captures": dict(zip(names[passed:], map(_captured, captured), strict=True)),
        "outputs": [tensor.name for tensor in concrete.outputs],
    }


def _captured(outer: Any) -> PlainData:
    """A tensor's value; of a variable its value and its device, in a list."""
    if outer.dtype != tf.resource:
        return outer.numpy()
    data = outer._handle_data
    if data is None or not data.is_set:
        raise NotPlainData("it uses a resource that is no variable")
    kind = tf.dtypes.as_dtype(data.shape_and_type[0].dtype)
    return [tf.raw_ops.ReadVariableOp(resource=outer, dtype=kind).numpy(), outer.device]


def examine(exported: dict[str, Any], args: list[PlainData], *, alone: bool = False) -> dict[str, PlainData]:
    """Count what the result of a graph depends on, then run the graph. Raises NotPlainData if it is none.

    Args:
        exported: what ``export`` made, or a submission that forged it.
        args: the arguments to run it with.
        alone: whether to run it once more, with zeros from all replicas but the first in each exchange.
    """
    try:
        definition = tf.compat.v1.GraphDef.FromString(exported["graph"])
        ops = _OperationCounter(definition).count(definition.node, exported["outputs"])
        result = _run(definition, exported, args)
        if alone:
            _mute_others(definition)
        return {
            "ops": dict(ops),
            "nbytes": len(exported["graph"]),
            "result": result,
            "alone": _run(definition, exported, args) if alone else None,
        }
    except (NotPlainData, MemoryError, tf.errors.ResourceExhaustedError):
        raise  # the last two end the step: the judge finds out whose fault it is
    except Exception as e:
        raise NotPlainData(f"its graph cannot be run: {type(e).__name__}: {str(e)[:_LONGEST_ERROR]}") from e


def _variable(value: Any, device: str) -> tf.Variable:
    """A variable on the device of the captured one, or on its like here: each replica of a strategy has its own."""
    _job, _, name = device.rpartition("/device:")
    with tf.device(f"/device:{name}" if name else None):
        return tf.Variable(value)


class _OperationCounter:
    """Counts operations by type: only what the outputs depend on, and a function's own ones for each call of it.

    So nothing can be added to a graph that only looks like work, and nothing be hidden in a function called often.
    TensorFlow also runs the stateful operations of a function, whatever it returns, so they and what they depend on
    count as well.
    """

    def __init__(self, definition: Any) -> None:
        self._functions = {function.signature.name: function for function in definition.library.function}
        self._counted: dict[str, Counter[str]] = {}
        self._changing: dict[str, bool] = {}

    def count(self, nodes: Sequence[Any], outputs: Sequence[str]) -> Counter[str]:
        """Operations among ``nodes`` that ``outputs`` depend on; all of them if there is no output."""
        by_name = {node.name: node for node in nodes}
        found, waiting = {}, list(outputs or by_name)
        while waiting:
            name = waiting.pop().lstrip("^").split(":")[0]
            if name in by_name and name not in found:
                found[name] = by_name[name]
                waiting += by_name[name].input
        total: Counter[str] = Counter()
        for node in found.values():
            total[node.op] += 1
            for name in _called(node):
                total += self._of_function(name)
        return total

    def _of_function(self, name: str) -> Counter[str]:
        if name not in self._counted and (function := self._functions.get(name)):
            outputs = [*function.ret.values(), *function.control_ret.values()]
            outputs += [node.name for node in function.node_def if self._changes_state(node)]
            self._counted[name] = self.count(function.node_def, outputs)
        return self._counted.get(name, Counter())

    def _changes_state(self, node: Any) -> bool:
        """Whether a node may change what others read, itself or in a function that it calls."""
        kind = op_def_registry.get(node.op)
        if (kind is None and node.op not in self._functions) or (kind is not None and _is_stateful(kind)):
            return True
        return any(map(self._function_changes_state, _called(node)))

    def _function_changes_state(self, name: str) -> bool:
        if name not in self._changing and (function := self._functions.get(name)):
            self._changing[name] = any(map(self._changes_state, function.node_def))
        return self._changing.get(name, False)


def _is_stateful(kind: Any) -> bool:
    return kind.is_stateful or kind.name in _CONTROL_FLOW


def _called(node: Any) -> Iterator[str]:
    """The functions that a node calls; its type is the name of one in graphs of TensorFlow 1."""
    yield node.op
    for value in node.attr.values():
        yield from (function.name for function in (value.func, *value.list.func) if function.name)


def _mute_others(definition: Any) -> None:
    """Have all replicas but the first bring zeros to each exchange. A result that ignores it stays the same."""
    _rename_functions(definition)
    _mute(definition.node, "{}")
    for function in definition.library.function:
        _mute(function.node_def, "{}:y:0")


def _rename_functions(definition: Any) -> None:
    """TensorFlow knows those of the graph that has been run, and takes no others by the same name."""
    names = {function.signature.name: f"{function.signature.name}_alone" for function in definition.library.function}
    for function in definition.library.function:
        function.signature.name = names[function.signature.name]
    for nodes in (definition.node, *(function.node_def for function in definition.library.function)):
        for node in nodes:
            node.op = names.get(node.op, node.op)
            for value in node.attr.values():
                for called in (value.func, *value.list.func):
                    if called.name:
                        called.name = names.get(called.name, called.name)
    del definition.library.gradient[:]


def _mute(nodes: Any, output: str) -> None:
    devices = {node.name: node.device for node in nodes}
    for node in list(nodes):
        for index in _brought_by_others(node, devices):
            zeros = nodes.add(name=f"{node.name}/muted_{index}", op="ZerosLike", input=[node.input[index]])
            zeros.attr["T"].CopyFrom(node.attr["T"])
            node.input[index] = output.format(zeros.name)


def _brought_by_others(node: Any, devices: dict[str, str]) -> list[int]:
    """The inputs of an exchange between devices that do not come from the first one."""
    if node.op in _COLLECTIVES:
        return [] if _is_first(node.device) else [0]
    if node.op != "AddN":
        return []
    origins = [devices.get(name.split(":")[0], "") for name in node.input if not name.startswith("^")]
    return [index for index, device in enumerate(origins) if not _is_first(device)] if len(set(origins)) > 1 else []


def _is_first(device: str) -> bool:
    return device.rpartition(":")[2] in ("0", "")


def _run(definition: Any, exported: dict[str, Any], args: list[PlainData]) -> PlainData:
    captures = exported["captures"]
    variables = {name: _variable(*value) for name, value in captures.items() if isinstance(value, list)}
    fed = dict(zip(exported["inputs"], (arg for arg in args if isinstance(arg, np.ndarray)), strict=True))
    feeds = fed | {name: variables[name].handle if name in variables else value for name, value in captures.items()}
    imported = tf.compat.v1.wrap_function(lambda: tf.graph_util.import_graph_def(definition, name=""), [])
    element = imported.graph.as_graph_element
    pruned = imported.prune([element(name) for name in feeds], [element(name) for name in exported["outputs"]])
    results = [result.numpy() for result in pruned(*map(tf.convert_to_tensor, feeds.values()))]
    return results[0] if len(results) == 1 else results
