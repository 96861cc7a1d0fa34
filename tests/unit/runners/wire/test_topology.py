"""Parsing a topology."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runners.wire.topology import MAX_DEVICES, MAX_TASKS, TooLargeTopology, Topology, UnknownTopology

_COUNTS = range(1, 9)
_CLUSTERS = [
    *(f"workers:{n}{end}" for n in _COUNTS for end in ("", "+chief")),
    *(f"workers:{n}xgpu:{g}" for n, g in itertools.product(_COUNTS, _COUNTS) if n * g <= MAX_DEVICES),
    *(f"workers:{n}{end}+evaluator" for n in range(1, 8) for end in ("", "+chief")),
    *(f"workers:{n}xgpu:{g}+chief" for n, g in itertools.product(_COUNTS, _COUNTS) if n * g <= MAX_DEVICES),
    *(
        f"workers:{n}xgpu:{g}{end}+evaluator"
        for n, g in itertools.product(range(1, 8), _COUNTS)
        for end in ("", "+chief")
        if n * g <= MAX_DEVICES
    ),
    *(f"ps:{w}+{p}" for w, p in itertools.product(_COUNTS, _COUNTS) if 1 + w + p <= MAX_TASKS),
    *(f"ps:{w}+{p}+evaluator" for w, p in itertools.product(_COUNTS, _COUNTS) if 2 + w + p <= MAX_TASKS),
]
ALL = ["cpu", *(f"{kind}:{n}" for kind in ("gpu", "tpu") for n in _COUNTS), *_CLUSTERS]


@pytest.mark.parametrize("text", ALL)
def test_every_possible_topology_reads_and_writes_back_as_it_was(text: str) -> None:
    topology = Topology.parse(text)

    assert str(topology) == text
    assert 1 <= topology.replicas <= MAX_DEVICES
    assert len(topology.tasks) <= MAX_TASKS
    assert topology.cluster == bool(topology.tasks)
    assert topology.simulated == (text != "cpu")


@given(st.one_of(st.text(), st.from_regex(r"(cpu|gpu|tpu|workers|ps):?[0-9+xgpu: chiefr]*\n?", fullmatch=True)))
def test_any_other_text_is_refused_with_what_is_possible(text: str) -> None:
    if text in ALL:
        return
    with pytest.raises(UnknownTopology, match="possible: cpu, gpu:1 … gpu:8"):
        Topology.parse(text)


@pytest.mark.parametrize(
    "text",
    [
        *["", "gpu", "gpu:", "gpu:0", "gpu:9", "gpu:04", "gpu:+4", "gpu:4\n", "GPU:4", "gpu:٤", "tpu:9", "cpu+chief"],
        *[
            "workers:0",
            "workers:9",
            "workers:2x4",
            "workers:3xgpu:4",
            "workers:8+evaluator",
            "workers:2+evaluator+chief",
        ],
        *["ps:2", "ps:0+1", "ps:1+0", "ps:4+4", "ps:2+1+chief"],
    ],
)
def test_an_almost_valid_topology_is_rejected(text: str) -> None:
    with pytest.raises(UnknownTopology):
        Topology.parse(text)


@pytest.mark.parametrize(
    ("text", "bound"),
    [
        ("gpu:9", "gpu:1 to gpu:8"),
        ("tpu:256", "tpu:1 to tpu:8"),
        ("workers:9", "9 processes, and the limit is 8"),
        ("workers:8+chief+evaluator", "9 processes, and the limit is 8"),
        ("workers:999999999xgpu:999999999", "999999999 processes, and the limit is 8"),
        ("workers:3xgpu:4", "12 GPUs together, and the limit is 8"),
        ("ps:4+4", "9 processes, including the coordinator, and the limit is 8"),
    ],
)
def test_a_topology_that_is_only_too_large_gets_the_limit(text: str, bound: str) -> None:
    with pytest.raises(TooLargeTopology) as refused:
        Topology.parse(text)
    assert str(refused.value).startswith(f"topology '{text}' is too large: {bound}; possible: cpu, ")


def test_a_huge_text_does_not_come_back_whole_in_the_refusal() -> None:
    with pytest.raises(UnknownTopology) as refused:
        Topology.parse("x" * 1_000_000)
    assert len(str(refused.value)) < 600


@pytest.mark.parametrize(
    ("text", "lanes", "replicas"),
    [
        ("gpu:4", [], 4),
        ("workers:2", ["worker 0", "worker 1"], 2),
        ("workers:2xgpu:2", ["worker 0", "worker 1"], 4),
        ("workers:3+chief+evaluator", ["chief", "worker 0", "worker 1", "evaluator"], 3),
        ("ps:2+1", ["coordinator", "worker 0", "worker 1", "ps 0"], 2),
    ],
)
def test_a_cluster_has_a_lane_for_each_process(text: str, lanes: list[str], replicas: int) -> None:
    topology = Topology.parse(text)
    assert [task.lane for task in topology.tasks] == lanes
    assert topology.replicas == replicas
