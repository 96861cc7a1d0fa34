"""How a TPU would react to the operations of a step."""

from __future__ import annotations

import pytest

from runners.guest.accelerators.tpu_rules import (
    CompilationCounter,
    TracedOperation,
    could_matter,
    find_violations,
    format_shape,
    known_when,
    refusal,
    sizing_inputs,
    unknown_sizes,
)


def _found(*nodes: TracedOperation, host_allowed: bool = True) -> list[tuple[str, str]]:
    return [(finding.kind, finding.operation) for finding in find_violations(nodes, host_allowed)]


@pytest.mark.parametrize(
    ("op", "found"),
    [
        ("EagerPyFunc", [("host", "EagerPyFunc (tf.py_function)")]),
        ("PyFunc", [("host", "PyFunc (tf.numpy_function)")]),
        ("Where", [("dynamic", "Where (tf.where, tf.boolean_mask)")]),
        ("UniqueV2", [("dynamic", "UniqueV2 (tf.unique)")]),
        ("StringLower", [("host", "StringLower")]),
        ("PrintV2", [("host", "tf.print")]),
        ("DecodeJpeg", [("host", "DecodeJpeg")]),
        *((op, []) for op in ("SelectV2", "MatMul", "Assert", "Const", "DynamicStitch", "StatelessRandomUniformV2")),
    ],
)
def test_an_operation_is_judged_by_its_kind(op: str, found: list[tuple[str, str]]) -> None:
    assert _found(TracedOperation(op, "x", ("float32",))) == found
    assert could_matter(op, ["float32"]) == bool(found)


def test_what_runs_on_the_host_is_refused_where_nothing_may() -> None:
    assert _found(TracedOperation("StringLower", "x"), host_allowed=False) == [("refused", "StringLower")]


def test_only_products_in_wide_numbers_are_worth_a_word() -> None:
    assert _found(TracedOperation("MatMul", "x", ("float64",)), TracedOperation("Cast", "y", ("float64",))) == [
        ("wide", "MatMul")
    ]
    assert could_matter("MatMul", ["float64"])
    assert not could_matter("Cast", ["float64"])


def test_a_size_that_is_computed_is_found_by_the_name_that_people_use() -> None:
    assert _found(TracedOperation("StridedSlice", "s", computed=True), TracedOperation("Fill", "f")) == [
        ("computed", "StridedSlice (x[a:b])")
    ]


def test_a_number_is_known_to_the_compiler_from_shapes_and_to_the_step_from_data() -> None:
    assert [known_when(op) for op in ("Shape", "Const", "ReadVariableOp", "AddV2")] == ["compiling"] * 2 + [
        "running",
        None,
    ]
    assert (sizing_inputs("StridedSlice"), sizing_inputs("MatMul")) == ((1, 2, 3), ())


def test_the_same_operation_at_the_same_place_is_found_once() -> None:
    twice = [
        TracedOperation("Where", "a", place="step:3"),
        TracedOperation("Where", "b", place="step:3"),
        TracedOperation("Where", "c", place="step:4"),
    ]
    assert [finding.node.name for finding in find_violations(twice, host_allowed=True)] == ["a", "c"]


def test_a_print_is_found_as_one_operation() -> None:
    parts = [TracedOperation("StringFormat", "f", place="step:3"), TracedOperation("PrintV2", "p", place="step:3")]
    assert _found(*parts, TracedOperation("StringFormat", "g", place="step:4")) == [
        ("host", "tf.print"),
        ("host", "StringFormat"),
    ]


def test_a_refusal_has_the_words_to_search_for_and_says_what_to_do() -> None:
    refused = find_violations(
        [TracedOperation("PyFunc", "PyFunc_1", place="step:3"), TracedOperation("Substr", "s")], host_allowed=False
    )
    text = refusal("step", refused)
    assert "XLA_TPU_JIT" in text
    assert "no registered 'PyFunc' OpKernel" in text
    assert "{{node PyFunc_1}}, from step:3" in text
    assert "no registered 'Substr' OpKernel" in text
    assert "Lockstep: tf.numpy_function calls Python" in text
    assert "set_soft_device_placement(True)" in refusal(
        "step", find_violations([TracedOperation("PrintV2", "p")], host_allowed=False)
    )


def test_the_first_shape_with_an_unknown_size_is_found() -> None:
    assert unknown_sizes([(), (4, 2), (None, 3), None]) == (None, 3)
    assert unknown_sizes([(4,), None]) is None
    assert unknown_sizes([(), (4, 2)]) == "known"
    assert [format_shape(s) for s in ((None, 3), (4,), (), None)] == ["(None, 3)", "(4,)", "()", "unknown"]


def test_compilations_are_reported_with_what_has_changed_but_not_every_time() -> None:
    compilations = CompilationCounter()
    assert compilations.note(("float32(4, 2)", "1")) is None
    assert compilations.note(("float32(4, 2)", "1")) is None
    assert compilations.note(("float32(3, 2)", "1")) == (2, "float32(3, 2)", "float32(4, 2)")
    told = [compilations.note(("float32(3, 2)", str(number))) for number in range(2, 10)]
    assert told == [None, None, (5, "4", "3"), None, None, None, None, (10, "9", "8")]
    assert compilations.note(("float32(4, 2)", "1")) is None


def test_a_compilation_without_inputs_is_described_in_words() -> None:
    compilations = CompilationCounter()
    assert compilations.note(("0.1",)) is None
    assert compilations.note(()) == (2, "no Python value", "0.1")
