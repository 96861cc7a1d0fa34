"""``coordinator.done()``: a program that polls it waits for a worker, but nothing shows for which one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from runners.guest.tf_patches.registry import Subject

subject = Subject(
    __name__,
    when="ps",
    because="a program that polls looks busy, though it waits for a worker that is paused or gone",
    since="TensorFlow 2.21",
    test="tests/long/runner/test_cluster_training.py"
    "::test_a_worker_paused_after_another_restarts_is_named_and_catches_up",
)


def report_polls(polled: Callable[[bool], None]) -> None:
    """Call ``polled`` with each result of ``done()``. Runs no op."""
    subject.apply(polled)


@subject.patch(
    "tensorflow.python.distribute.coordinator.cluster_coordinator:ClusterCoordinator.done", relies_on=("(self)",)
)
def _done(polled: Callable[[bool], None], original: Any, self: Any) -> bool:
    finished = bool(original(self))
    polled(finished)
    return finished
