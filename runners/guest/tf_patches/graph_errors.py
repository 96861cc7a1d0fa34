"""Errors of graphs: TensorFlow shows where a failed operation was created, from the first frame of the process."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from runners.guest.tf_patches.registry import Subject

_CLASS = "tensorflow.python.eager.polymorphic_function.atomic_function:InterpolateRuntimeError."

subject = Subject(
    __name__,
    when="every process",
    because="frames of the kernel, which called the learner's cell, come before the learner's own",
    since="TensorFlow 2.21",
    test="tests/long/runner/test_cluster_training.py"
    "::test_the_error_of_a_scheduled_function_shows_only_the_learners_lines",
)


def leave_out_frames(phrases: Sequence[str]) -> None:
    """Leave out the frames that contain one of these phrases. Runs no op."""
    subject.apply(phrases)


@subject.value(f"{_CLASS}DENY_LIST_PHRASES", used_by=(f"{_CLASS}interpolate",))
def _phrases(phrases: Sequence[str], original: Any) -> list[str]:
    return [*original, *phrases]
