"""Sets up the reporting of training in a kernel or in another process of a cluster."""

from __future__ import annotations

import sys
from typing import Any

from runners.guest.api import display, public_api
from runners.guest.cluster import training_step
from runners.guest.cluster.task_context import current_context
from runners.guest.reporting import notices
from runners.guest.reporting.metric_reporter import metric_reporter
from runners.guest.runtime import keras_choice
from runners.guest.tf_patches import keras_training
from runners.wire.topology import Topology


def install(topology: Topology) -> None:
    """Let this process's code ``import lockstep``."""
    display.set_topology(topology)
    sys.modules["lockstep"] = public_api


def watch_cells(events: Any) -> None:
    """Watch Keras, and begin and end runs with the cells of the shell that has these ``events``.

    For a zygote, which forks kernels.
    """
    keras_training.subject.apply()
    events.register("pre_run_cell", lambda _info: begin_run())
    events.register("pre_run_cell", lambda info: keras_choice.offer_keras_2(info.raw_cell or ""))
    events.register("post_run_cell", lambda result: end_run(ok=result.success))


def begin_run() -> None:
    training_step.reset()
    metric_reporter().begin_run()


def end_run(*, ok: bool) -> None:
    """A run ends: send what is pending, including metrics in the output of C++ code. ``ok``: without an error."""
    for stream in (sys.stdout, sys.stderr):
        getattr(stream, "finish", stream.flush)()  # a program may have replaced the stream
    metric_reporter().end_run()
    if ok and training_step.waits_in_vain() and (own := current_context()) is not None:
        notices.notify("no-steps-counted", task=own.task.lane)
    training_step.reset()
