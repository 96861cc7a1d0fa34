"""Makes TensorFlow run ops outside functions directly.

By default it wraps each op in a function of its own and optimizes that function: 3 to 15 ms for the first use of every
op, 36 ms for a MirroredStrategy. TensorFlow can also pass the op straight to its kernel: the same kernel, the same
result.
"""

from __future__ import annotations

from typing import Any

from runners.guest.tf_patches.registry import Subject

subject = Subject(
    __name__,
    when="every process",
    because="TensorFlow wraps every op in a function, which costs 3 to 15 ms when the op is first used",
    since="TensorFlow 2.21",
    test="tests/unit/runners/guest/tf_patches/test_eager_ops.py::test_an_op_runs_without_a_function_around_it",
)


@subject.patch(
    "tensorflow.python.pywrap_tfe:TFE_ContextOptionsSetRunEagerOpAsFunction",
    used_by=("tensorflow.python.eager.context:Context.ensure_initialized",),
)
def _never(original: Any, options: Any, _: bool) -> None:
    original(options, False)
