"""How the processes of a cluster find each other: ports on the sandbox's own loopback, and ``TF_CONFIG``.

Pure except for ``free_ports``; no TensorFlow here.
"""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator, Sequence

from runners.wire.topology import Task, Topology

HOST = "127.0.0.1"
_PORTS = range(20_001, 30_000)
"""Below the system's ephemeral ports, so that a port stays free until its task listens, maybe much later."""


def free_ports(count: int) -> tuple[int, ...]:
    """Find ``count`` ports on which nobody listens."""
    return tuple(port for _, port in zip(range(count), _free(), strict=False))


def address(port: int) -> str:
    """The address of a task, as TensorFlow writes it."""
    return f"{HOST}:{port}"


def tf_config(topology: Topology, ports: Sequence[int], number: int) -> str:
    """The ``TF_CONFIG`` of the task at index ``number`` in ``topology.tasks``; ``ports`` are in that order.

    The evaluator is not part of the training cluster: only its own TF_CONFIG mentions it.
    """
    here = topology.tasks[number]
    cluster: dict[str, list[str]] = {}
    for task, port in zip(topology.tasks, ports, strict=True):
        if task.role != "evaluator" or task == here:
            cluster.setdefault(task.job, []).append(address(port))
    return json.dumps({"cluster": cluster, "task": {"type": here.job, "index": here.index}})


def serves(topology: Topology, task: Task) -> bool:
    """Whether a task only serves a coordinator and runs no cells."""
    return topology.kind == "ps" and task.role in ("worker", "ps")


def _free() -> Iterator[int]:
    for port in _PORTS:
        with socket.socket() as s:
            try:
                s.bind((HOST, port))
            except OSError:
                continue
        yield port
