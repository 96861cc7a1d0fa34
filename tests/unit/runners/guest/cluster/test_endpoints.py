"""The ``TF_CONFIG`` of each task, and the ports in it."""

from __future__ import annotations

import json
import socket
from typing import Any

from runners.guest.cluster.endpoints import free_ports, serves, tf_config
from runners.wire.topology import Topology


def _told(text: str, number: int) -> dict[str, Any]:
    topology = Topology.parse(text)
    told: dict[str, Any] = json.loads(tf_config(topology, range(20_001, 20_001 + len(topology.tasks)), number))
    return told


def test_workers_are_told_of_each_other() -> None:
    cluster = {"worker": ["127.0.0.1:20001", "127.0.0.1:20002"]}
    assert _told("workers:2", 1) == {"cluster": cluster, "task": {"type": "worker", "index": 1}}
    assert _told("workers:2xgpu:2", 0) == {"cluster": cluster, "task": {"type": "worker", "index": 0}}


def test_a_chief_comes_before_the_workers() -> None:
    told = _told("workers:2+chief", 0)
    assert told["cluster"] == {"chief": ["127.0.0.1:20001"], "worker": ["127.0.0.1:20002"]}
    assert told["task"] == {"type": "chief", "index": 0}


def test_parameter_servers_have_a_chief_that_coordinates() -> None:
    told = _told("ps:2+1", 0)
    assert told["task"] == {"type": "chief", "index": 0}
    assert told["cluster"] == {
        "chief": ["127.0.0.1:20001"],
        "worker": ["127.0.0.1:20002", "127.0.0.1:20003"],
        "ps": ["127.0.0.1:20004"],
    }


def test_only_the_evaluators_config_mentions_the_evaluator() -> None:
    assert "evaluator" not in _told("workers:2+evaluator", 1)["cluster"]
    told = _told("workers:2+evaluator", 2)
    assert told["task"] == {"type": "evaluator", "index": 0}
    assert told["cluster"]["evaluator"] == ["127.0.0.1:20003"]


def test_workers_of_a_coordinator_serve_and_others_run_cells() -> None:
    serving = {task.lane for task in Topology.parse("ps:2+1+evaluator").tasks if serves(Topology.parse("ps:2+1"), task)}
    assert serving == {"worker 0", "worker 1", "ps 0"}
    assert not any(serves(Topology.parse("workers:3"), task) for task in Topology.parse("workers:3").tasks)


def test_ports_are_free_and_differ() -> None:
    with socket.socket() as taken:
        first = free_ports(1)[0]
        taken.bind(("127.0.0.1", first))
        ports = free_ports(3)
    assert len(set(ports)) == 3
    assert first not in ports
