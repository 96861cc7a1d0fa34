"""The pictures of the helpers: data for the page, and the same as text."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runners.guest.api.pictures import (
    MAX_EXAMPLES,
    Reduction,
    ReplicaExamples,
    VariablePlacement,
    device_name,
    largest_values,
    placement_picture,
    replay_picture,
    replica_device,
    shards_picture,
)


def test_the_shards_are_named_counted_and_said_in_words() -> None:
    many = tuple(f"#{i}" for i in range(MAX_EXAMPLES + 6))
    content, text = shards_picture(
        [
            ReplicaExamples("replica 0", "GPU:0", ("#0 → 7", "#1 → 3"), 2),
            ReplicaExamples("replica 1", "GPU:1", many, len(many)),
        ],
        batches=1,
    )
    assert content["replicas"][0] == {
        "lane": "replica 0",
        "device": "GPU:0",
        "examples": ["#0 → 7", "#1 → 3"],
        "count": 2,
    }
    assert len(content["replicas"][1]["examples"]) == MAX_EXAMPLES
    assert "replica 0 on GPU:0: 2 examples: #0 → 7, #1 → 3\n" in text
    assert text.endswith(" and 6 more")
    assert "1 batch, 2 replicas" in text


def test_the_places_of_variables_are_said_in_words() -> None:
    place = VariablePlacement("dense/kernel", (4, 3), "float32", "MirroredVariable", ("GPU:0", "GPU:1"), 48)
    content, text = placement_picture([place])
    assert content["variables"][0]["bytes"] == 48
    assert "dense/kernel 4×3 float32, 48 bytes: MirroredVariable on GPU:0, GPU:1" in text


def test_a_replay_shows_each_replica_the_sum_and_the_update() -> None:
    content, text = replay_picture(
        Reduction(
            "dense/bias", (2,), "sum", "NcclAllReduce (simulated)", ("GPU:0", "GPU:1"), ((0,), (1,)),
            ((1.0, float("nan")), (2.0, 3.0)), (3.0, float("inf")), (0.5, 0.5), (0.2, 0.1),
        )
    )  # fmt: skip
    assert json.loads(json.dumps(content, allow_nan=False)) == content
    assert content["replicas"][0]["values"] == [1.0, "nan"]
    assert content["reduced"] == [3.0, "inf"]
    lines = text.splitlines()
    assert "dense/bias 2, all 2 numbers, by NcclAllReduce (simulated)" in lines[0]
    assert [line.split()[0] for line in lines[1:]] == ["position", "replica", "replica", "sum", "before", "after"]


@given(st.lists(st.floats(allow_nan=True), max_size=60))
def test_the_largest_numbers_are_shown_in_their_order(values: list[float]) -> None:
    shown = largest_values(values, 5)
    assert shown == sorted(shown)
    assert len(shown) == min(5, len(values))
    rest = [abs(values[i]) for i in range(len(values)) if i not in shown]
    kept = [abs(values[i]) for i in shown if values[i] == values[i]]
    if kept:
        assert all(not value > min(kept) for value in rest)


@pytest.mark.parametrize(
    ("device", "name"),
    [
        ("/job:localhost/replica:0/task:0/device:CPU:1", "CPU:1"),
        ("/job:ps/replica:0/task:1/device:CPU:0", "ps 1 CPU:0"),
        ("/device:GPU:2", "GPU:2"),
        ("", "CPU:0"),
        ("nonsense", "CPU:0"),
    ],
)
def test_a_device_has_a_short_name(device: str, name: str) -> None:
    assert device_name(device) == name


def test_the_coordinator_goes_by_its_own_name() -> None:
    device = "/job:chief/replica:0/task:0/device:CPU:0"
    assert device_name(device) == "chief 0 CPU:0"
    assert device_name(device, coordinated=True) == "coordinator CPU:0"
    assert device_name("/job:ps/replica:0/task:1/device:CPU:0", coordinated=True) == "ps 1 CPU:0"


def test_what_is_simulated_is_said() -> None:
    device = "/job:localhost/replica:0/task:0/device:CPU:1"
    assert replica_device(device, "GPU") == "GPU:1 (simulated by CPU:1)"
    assert replica_device(device, None) == "CPU:1"
    assert replica_device("/job:localhost/device:GPU:1", "GPU") == "GPU:1"
