"""What a process of a cluster is given by PID 1: which task it is, where the others are, and how to ask for things."""

from __future__ import annotations

import json
import os
import socket
from dataclasses import dataclass

from runners.guest.cluster import endpoints
from runners.guest.cluster.shared_state import SharedState
from runners.wire.topology import Task, Topology

MAX_COMMAND_BYTES = 512


@dataclass(frozen=True, slots=True)
class TaskContext:
    """One task's place in its cluster.

    Attributes:
        number: its place in ``topology.tasks``; 0 is the learner's kernel.
        ports: of all tasks, in that order.
        board: see ``shared_state``.
        wishes: takes what PID 1 shall do, a JSON object of at most LONGEST_WISH bytes a packet.
        nonce: see ``lanes``.
    """

    topology: Topology
    number: int
    ports: tuple[int, ...]
    shared_state: SharedState
    commands: socket.socket
    nonce: str

    @property
    def task(self) -> Task:
        """The task itself."""
        return self.topology.tasks[self.number]

    def set_tf_config(self) -> None:
        """Set ``TF_CONFIG``."""
        os.environ["TF_CONFIG"] = endpoints.tf_config(self.topology, self.ports, self.number)

    def address_of(self, number: int) -> str:
        """Where a task listens, once its program has it listen."""
        return endpoints.address(self.ports[number])

    def send_command(self, task: str, action: str, at_step: int | None = None, *, reached: bool = False) -> None:
        """Ask PID 1 to do something to a task, or, if ``reached``, what it was to do at a step that has come now.

        What makes no sense PID 1 drops.
        """
        word = {"task": task, "action": action, "at_step": at_step, "reached": reached}
        self.commands.send(json.dumps(word).encode())


_place: TaskContext | None = None


def set_context(place: TaskContext | None) -> None:
    """Note this process's own place."""
    global _place
    _place = place


def current_context() -> TaskContext | None:
    """This process's place; None where there is no cluster."""
    return _place
