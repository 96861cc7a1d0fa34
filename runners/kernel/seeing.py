"""Sets up, in a kernel or in another process of a cluster, what shows a training at work."""

from __future__ import annotations

import sys
from typing import Any

from runners.devices.topology import Topology
from runners.kernel import easel, learner, steps, training
from runners.kernel.meter import meter


def install(topology: Topology) -> None:
    """Let this process's code ``import lockstep``, and watch the Kerases that it has imported."""
    easel.know(topology)
    sys.modules["lockstep"] = learner
    training.watch()


def follow(events: Any) -> None:
    """Begin and end runs with the cells of a shell, whose ``events`` these are; for a zygote, which forks kernels."""
    training.watch()
    events.register("pre_run_cell", lambda _info: begin_run())
    events.register("post_run_cell", lambda _result: end_run())


def begin_run() -> None:
    """A run begins. A Keras that was imported since is watched from now on."""
    training.watch()
    steps.begin_again()
    meter().begin_run()


def end_run() -> None:
    """A run ends: what waits is sent, with the numbers in what C++ code printed."""
    for stream in (sys.stdout, sys.stderr):
        getattr(stream, "finish", stream.flush)()  # a program may have put a stream of its own there
    meter().end_run()
    steps.begin_again()
