"""A machine's icon shows how many devices there are, of what kind, and to which process they belong."""

from __future__ import annotations

import pytest

from app.web.topology_icon import lane_color, topology_icon
from runners.wire.protocol import Topology


def drawn(topology: str) -> str:
    """The icon as text: brackets are frames."""
    hosts = []
    for host in topology_icon(topology):
        marks = " ".join(f"{mark.shape}/{mark.color}" for mark in host.marks)
        hosts.append(f"[{marks}]" if host.framed else marks)
    return " ".join(hosts)


@pytest.mark.parametrize(
    ("topology", "expected"),
    [
        ("cpu", "cpu/r0"),
        ("gpu:2", "gpu/r0 gpu/r1"),
        ("tpu:3", "tpu/r0 tpu/r1 tpu/r2"),
        ("workers:2", "[cpu/r0] [cpu/r1]"),
        ("workers:2xgpu:2", "[gpu/r0 gpu/r1] [gpu/r2 gpu/r3]"),
        ("workers:2+chief+evaluator", "[cpu/r0] [cpu/r1] helper/r-ink"),
        ("ps:2+1", "helper/r-ink [cpu/r0] [cpu/r1] server/r-ink"),
    ],
)
def test_a_machine_is_drawn(topology: str, expected: str) -> None:
    assert drawn(topology) == expected


def test_a_replica_has_its_colour_in_whatever_worker_it_is() -> None:
    machine = Topology.parse("workers:2xgpu:2")

    lanes = ("worker 1", "replica 3", "worker 1 · replica 3", "ps 0", "coordinator", "worker x", "")
    assert [lane_color(machine, lane) for lane in lanes] == ["r2", "r3", "r3", "r-ink", "r-ink", "r-ink", "r-ink"]
