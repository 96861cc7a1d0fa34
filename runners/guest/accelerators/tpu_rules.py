"""Finds operations of a traced function that a TPU's compiler rejects, leaves to the host or runs slowly.

Pure: no TensorFlow here. A TPU runs one compiled program of fixed shapes; the kind of an operation tells whether it can
be part of one. The messages are ours, but contain the words of TensorFlow's errors, so that a search finds them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal

FindingKind = Literal["refused", "host", "dynamic", "computed", "wide"]
"""Rejected by the compiler, run on the host, with an output size that depends on values, with a size that the step
computes, or in emulated precision."""
Shape = tuple[int | None, ...] | None
"""A size for each dimension, None if unknown; or None if the number of dimensions is unknown."""

_PYTHON = {
    "EagerPyFunc": "tf.py_function",
    "PyFunc": "tf.numpy_function",
    "PyFuncStateless": "tf.numpy_function",
}
_DYNAMIC = {
    "DynamicPartition": "tf.dynamic_partition",
    "ListDiff": "tf.sets.difference",
    "NonMaxSuppression": "tf.image.non_max_suppression",
    "NonMaxSuppressionV2": "tf.image.non_max_suppression",
    "NonMaxSuppressionV3": "tf.image.non_max_suppression",
    "NonMaxSuppressionV5": "tf.image.non_max_suppression",
    "RaggedRange": "tf.ragged.range",
    "Unique": "tf.unique",
    "UniqueV2": "tf.unique",
    "UniqueWithCounts": "tf.unique_with_counts",
    "UniqueWithCountsV2": "tf.unique_with_counts",
    "Where": "tf.where, tf.boolean_mask",
}
_SIZED: dict[str, tuple[tuple[int, ...], str]] = {
    "BroadcastTo": ((1,), "tf.broadcast_to"),
    "Fill": ((0,), "tf.fill"),
    "LinSpace": ((2,), "tf.linspace"),
    "OneHot": ((1,), "tf.one_hot"),
    "Pad": ((1,), "tf.pad"),
    "PadV2": ((1,), "tf.pad"),
    "RandomStandardNormal": ((0,), "tf.random.normal"),
    "RandomUniform": ((0,), "tf.random.uniform"),
    "RandomUniformInt": ((0,), "tf.random.uniform"),
    "Range": ((0, 1, 2), "tf.range"),
    "Reshape": ((1,), "tf.reshape"),
    "Slice": ((1, 2), "tf.slice"),
    "StridedSlice": ((1, 2, 3), "x[a:b]"),
    "Tile": ((1,), "tf.tile"),
}
"""By operation: the inputs that determine the size of its output, and its user-facing name."""
_KNOWN_BY_THEN = frozenset({"Const", "Rank", "Shape", "ShapeN", "Size"})
"""Operations whose results the compiler knows, because it knows every shape."""
_VALUES = frozenset({"IteratorGetNext", "Placeholder", "RandomUniform", "RandomUniformInt", "ReadVariableOp"})
"""Operations whose results are known only when the step runs."""
_HOST_BEGINNINGS = (
    "AudioSummary",
    "DecodeAndCropJpeg",
    "DecodeBmp",
    "DecodeCSV",
    "DecodeCompressed",
    "DecodeGif",
    "DecodeImage",
    "DecodeJSON",
    "DecodeJpeg",
    "DecodePng",
    "DecodeRaw",
    "DecodeWav",
    "EncodeJpeg",
    "EncodePng",
    "HashTable",
    "ImageSummary",
    "LookupTable",
    "MutableHashTable",
    "ParseExample",
    "ParseSequenceExample",
    "ParseSingleExample",
    "ReadFile",
    "Regex",
    "StaticRegex",
    "String",
    "Unicode",
    "WriteAudioSummary",
    "WriteFile",
    "WriteGraphSummary",
    "WriteHistogramSummary",
    "WriteImageSummary",
    "WriteRawProtoSummary",
    "WriteScalarSummary",
    "WriteSummary",
)
_HOST = frozenset(
    {
        "AsString",
        "Print",
        "PrintV2",
        "ReduceJoin",
        "Substr",
        "UnravelIndex",
        "UnsortedSegmentJoin",
    }
)
_PRINTS = frozenset({"Print", "PrintV2"})
_PARTS_OF_PRINTS = frozenset({"StringFormat", "StringJoin"})
_WIDE = frozenset({"float64", "complex128"})
_MATMULS = frozenset({"MatMul", "BatchMatMul", "BatchMatMulV2", "BatchMatMulV3", "Einsum", "Conv2D", "Conv3D"})
_ANNOUNCED = (2, 5, 10, 20, 50, 100)


@dataclass(frozen=True, slots=True)
class TracedOperation:
    """One operation of a traced function.

    Attributes:
        op: its kind, such as ``MatMul``.
        name: its name in the graph.
        dtypes: those of its outputs, such as ``float32``.
        place: where the learner's program created it, such as ``step_fn:12``; empty if unknown.
        computed: whether its output is used and has a size that is known only when the step runs.
    """

    op: str
    name: str
    dtypes: tuple[str, ...] = ()
    place: str = ""
    computed: bool = False


@dataclass(frozen=True, slots=True)
class TpuFinding:
    """A finding about one operation on a TPU; ``operation`` is its user-facing name."""

    kind: FindingKind
    operation: str
    node: TracedOperation


def could_matter(op: str, dtypes: Iterable[str]) -> bool:
    """Whether ``find_violations`` could find anything: a cheap check before the expensive ones."""
    return _kind_of(op) is not None or (op in _MATMULS and not _WIDE.isdisjoint(dtypes))


def sizing_inputs(op: str) -> tuple[int, ...]:
    """The inputs that determine the output size of an operation; empty if it follows from shapes alone."""
    return _SIZED[op][0] if op in _SIZED else ()


def known_when(op: str) -> Literal["compiling", "running"] | None:
    """When the result of an operation is known; None if that depends on its inputs."""
    if op in _KNOWN_BY_THEN:
        return "compiling"
    return "running" if op in _VALUES else None


def find_violations(nodes: Iterable[TracedOperation], host_allowed: bool) -> list[TpuFinding]:
    """Find the operations that a TPU cannot run as they are, in order; of duplicates only the first.

    Args:
        nodes: the operations that one replica runs.
        host_allowed: whether operations that cannot be compiled may run on the host: TensorFlow's soft device
        placement, which a program has to enable for functions.
    """
    nodes = list(nodes)
    printing = {node.place for node in nodes if node.op in _PRINTS}
    found: dict[tuple[FindingKind, str, str], TpuFinding] = {}
    for node in nodes:
        if node.op in _PARTS_OF_PRINTS and node.place in printing:
            continue
        kind = _kind_of(node.op)
        if kind is None and node.computed:
            kind = "computed"
        if kind is None and node.op in _MATMULS and not _WIDE.isdisjoint(node.dtypes):
            kind = "wide"
        if kind is None:
            continue
        if kind == "host" and not host_allowed:
            kind = "refused"
        finding = TpuFinding(kind, _operation(node.op), node)
        found.setdefault((kind, finding.operation, node.place), finding)
    return list(found.values())


def refusal(function: str, findings: Sequence[TpuFinding]) -> str:
    """The error message for a compilation that failed because of ``findings`` of the kind ``refused``."""
    operations = ", ".join(
        f"{f.node.op} (no registered '{f.node.op}' OpKernel for XLA_TPU_JIT devices, "
        f"node {{{{node {f.node.name}}}}}{f', from {f.node.place}' if f.node.place else ''})"
        for f in findings
    )
    first = findings[0]
    return (
        f"Compilation failure: unsupported operations in the graph of {function} on XLA_TPU_JIT, "
        f"the compiler of a TPU: {operations}\n\tTPU compilation failed\n"
        f"Lockstep: {_advice(first.node.op)}"
    )


def unknown_sizes(shapes: Iterable[Shape]) -> Shape | Literal["known"]:
    """The first shape with an unknown size or an unknown number of dimensions."""
    return next((shape for shape in shapes if shape is None or None in shape), "known")


def format_shape(shape: Shape) -> str:
    """Format a shape as TensorFlow does: ``(None, 28, 28)``."""
    if shape is None:
        return "unknown"
    return f"({', '.join(map(str, shape))}{',' if len(shape) == 1 else ''})"


@dataclass(slots=True)
class CompilationCounter:
    """Counts the compilations of one function, and remembers their signatures."""

    _signatures: list[tuple[str, ...]] = field(default_factory=list)

    def note(self, signature: tuple[str, ...]) -> tuple[int, str, str] | None:
        """Note a trace for these shapes and values.

        Returns:
            The number of compilations so far, what is new, and what it was before; None if it is not worth a notice.
        """
        if signature in self._signatures:
            return None
        before = self._signatures[-1] if self._signatures else ()
        self._signatures.append(signature)
        if (count := len(self._signatures)) not in _ANNOUNCED:
            return None
        if len(before) == len(signature):
            pairs = [(new, old) for new, old in zip(signature, before, strict=True) if new != old][:3]
            return count, ", ".join(new for new, _ in pairs), ", ".join(old for _, old in pairs)
        return count, _first_of(signature), _first_of(before)


def _first_of(signature: tuple[str, ...]) -> str:
    return ", ".join(signature[:3]) or "no Python value"


def _kind_of(op: str) -> FindingKind | None:
    if op in _DYNAMIC:
        return "dynamic"
    if op in _PYTHON or op in _HOST or op.startswith(_HOST_BEGINNINGS):
        return "host"
    return None


def _operation(op: str) -> str:
    if op in _PRINTS:
        return "tf.print"
    known = {**_PYTHON, **_DYNAMIC, **{sized: name for sized, (_, name) in _SIZED.items()}}.get(op)
    return f"{op} ({known})" if known else op


def _advice(op: str) -> str:
    if op in _PYTHON:
        return (
            f"{_PYTHON[op]} calls Python, which a TPU cannot do. Call it in the input pipeline (Dataset.map), which "
            "runs on the host, or write the step with TensorFlow's own operations."
        )
    if op in _PRINTS:
        return (
            "a TPU cannot print. Return the value from the step and print it outside, or let TensorFlow run the print "
            "on the host: tf.config.set_soft_device_placement(True)."
        )
    return (
        "a TPU handles only numbers, not text, files, tables, or summaries. Do this in the input pipeline or outside "
        "the step, or let TensorFlow run it on the host: tf.config.set_soft_device_placement(True)."
    )
