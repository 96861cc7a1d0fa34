"""Adds advice to the errors of programs that look for a TPU and find none."""

from __future__ import annotations

from typing import Any

from runners.guest.tf_patches.registry import Subject

subject = Subject(
    __name__,
    when="no tpu",
    because="TensorFlow's error says nothing about the machines that can be chosen here",
    since="TensorFlow 2.21",
    test="tests/functional/runner/test_tpu.py::test_without_a_tpu_the_usual_error_says_which_topology_to_choose",
)


def explain_absence(topology: str) -> None:
    """Make the errors of programs that look for a TPU also say that ``topology`` has none."""
    subject.apply(f"Lockstep: this session is {topology}, which has no TPU. Choose a topology from tpu:1 to tpu:8.")


def explain_failure(topology: str) -> None:
    """Make errors of programs that cannot reach a real TPU say so, and what the operator can do."""
    subject.apply(
        f"Lockstep: this session has a real TPU, a {topology}, but TensorFlow cannot reach it. "
        "The operator can run 'lockstep doctor --devices' to find out why."
    )


@subject.patch("tensorflow.python.distribute.cluster_resolver.tpu.tpu_cluster_resolver:TPUClusterResolver.__init__")
@subject.patch(
    "tensorflow.python.tpu.tpu_strategy_util:initialize_tpu_system_impl",
    used_by=("tensorflow.python.distribute.cluster_resolver.tpu.tpu_cluster_resolver:initialize_tpu_system",),
)
def _explain(sentence: str, original: Any, *args: Any, **kwargs: Any) -> Any:
    try:
        return original(*args, **kwargs)
    except Exception as error:
        if sentence not in getattr(error, "__notes__", ()):
            error.add_note(sentence)
        raise
