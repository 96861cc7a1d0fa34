"""A function as TensorFlow traced it: exported where it was written, examined and run where nobody wrote anything."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import tensorflow as tf

from runners.checks.plain_data import NotPlainData, PlainData


def export(function: Any, args: list[PlainData]) -> dict[str, PlainData]:
    """Trace ``function`` with these arguments, and write down its graph and all that it captured, as plain data."""
    arguments = [tf.constant(arg) if isinstance(arg, np.ndarray) else arg for arg in args]
    if not hasattr(function, "get_concrete_function"):
        function = tf.function(function)
    concrete = function.get_concrete_function(*arguments)
    captures = {inner.name: _captured(outer) for outer, inner in concrete.graph.captures}
    return {
        "graph": concrete.graph.as_graph_def().SerializeToString(),
        "inputs": [tensor.name for tensor in concrete.inputs if tensor.name not in captures],
        "captures": captures,
        "outputs": [tensor.name for tensor in concrete.outputs],
    }


def _captured(outer: Any) -> PlainData:
    """A tensor's value; of a variable its value too, in a list."""
    if outer.dtype != tf.resource:
        return outer.numpy()
    data = outer._handle_data
    if data is None or not data.is_set:
        raise NotPlainData("it uses a resource that is no variable")
    kind = tf.dtypes.as_dtype(data.shape_and_type[0].dtype)
    return [tf.raw_ops.ReadVariableOp(resource=outer, dtype=kind).numpy()]


def examine(exported: dict[str, Any], args: list[PlainData]) -> dict[str, PlainData]:
    """Count what a graph is made of, then run it. Raises whatever TensorFlow says about a graph that is none."""
    definition = tf.compat.v1.GraphDef.FromString(exported["graph"])
    nodes = [node for part in (definition, *definition.library.function) for node in _nodes(part)]
    ops = Counter(node.op for node in nodes)
    return {"ops": dict(ops), "nbytes": len(exported["graph"]), "result": _run(definition, exported, args)}


def _nodes(part: Any) -> Any:
    return part.node if hasattr(part, "node") else part.node_def


def _run(definition: Any, exported: dict[str, Any], args: list[PlainData]) -> PlainData:
    captures = exported["captures"]
    variables = {name: tf.Variable(value[0]) for name, value in captures.items() if isinstance(value, list)}
    fed = dict(zip(exported["inputs"], (arg for arg in args if isinstance(arg, np.ndarray)), strict=True))
    feeds = fed | {name: variables[name].handle if name in variables else value for name, value in captures.items()}
    imported = tf.compat.v1.wrap_function(lambda: tf.graph_util.import_graph_def(definition, name=""), [])
    element = imported.graph.as_graph_element
    pruned = imported.prune([element(name) for name in feeds], [element(name) for name in exported["outputs"]])
    results = [result.numpy() for result in pruned(*map(tf.convert_to_tensor, feeds.values()))]
    return results[0] if len(results) == 1 else results
