"""What PID 1 gives to each process of a cluster: its task, the others' addresses, and a socket for commands."""

from __future__ import annotations

import json
import os
import socket
from dataclasses import dataclass, field

from runners.guest.cluster import endpoints
from runners.guest.cluster.shared_state import SharedState
from runners.wire.topology import Task, Topology

MAX_COMMAND_BYTES = 512


@dataclass(frozen=True, slots=True)
class TaskContext:
    """One task of a cluster, and how it reaches the others.

    Attributes:
        number: its index in ``topology.tasks``; 0 is the learner's kernel.
        ports: of all tasks, in that order.
        shared_state: see ``SharedState``.
        commands: takes commands for PID 1, each a JSON object of at most ``MAX_COMMAND_BYTES`` in one packet.
        nonce: see ``lanes``.
        left_out: the numbers of the tasks that do not belong to the cluster which this process has joined.
    """

    topology: Topology
    number: int
    ports: tuple[int, ...]
    shared_state: SharedState
    commands: socket.socket
    nonce: str
    left_out: set[int] = field(default_factory=set, compare=False)

    @property
    def task(self) -> Task:
        return self.topology.tasks[self.number]

    def set_tf_config(self) -> None:
        os.environ["TF_CONFIG"] = endpoints.tf_config(self.topology, self.ports, self.number)

    def address_of(self, number: int) -> str:
        """The address on which a task listens once its program starts a server."""
        return endpoints.address(self.ports[number])

    def send_command(
        self, task: str, action: str, at_step: int | None = None, *, reached: bool = False, counted: bool = False
    ) -> None:
        """Ask PID 1 to do ``action`` to a task, or, if ``reached``, to do what was pending for the step just reached.

        PID 1 ignores invalid commands. If ``counted``, it raises ``SharedState.commands_handled`` afterwards.
        """
        sender = self.number if counted else None
        word = {"task": task, "action": action, "at_step": at_step, "reached": reached, "sender": sender}
        self.commands.send(json.dumps(word).encode())


_place: TaskContext | None = None


def set_context(place: TaskContext | None) -> None:
    global _place
    _place = place


def current_context() -> TaskContext | None:
    """This process's context; None if there is no cluster."""
    return _place
