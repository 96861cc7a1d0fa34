"""Reading a topology."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runners.devices.topology import MOST_DEVICES, Topology, UnknownTopology

ALL = ["cpu", *(f"gpu:{n}" for n in range(1, MOST_DEVICES + 1))]


@pytest.mark.parametrize("text", ALL)
def test_every_possible_topology_reads_and_writes_back_as_it_was(text: str) -> None:
    topology = Topology.parse(text)

    assert str(topology) == text
    assert topology.replicas == topology.devices == (1 if text == "cpu" else int(text[4:]))
    assert topology.simulated == (text != "cpu")


@given(st.one_of(st.text(), st.from_regex(r"(c|g|t)pu:?[0-9 ]*\n?", fullmatch=True)))
def test_any_other_text_is_refused_with_what_is_possible(text: str) -> None:
    if text in ALL:
        return
    with pytest.raises(UnknownTopology, match="possible: cpu, gpu:1 … gpu:8"):
        Topology.parse(text)


@pytest.mark.parametrize("text", ["", "gpu", "gpu:", "gpu:0", "gpu:9", "gpu:04", "gpu:+4", "gpu:4\n", "GPU:4", "gpu:٤"])
def test_nearly_a_topology_is_none(text: str) -> None:
    with pytest.raises(UnknownTopology):
        Topology.parse(text)


def test_a_huge_text_does_not_come_back_whole_in_the_refusal() -> None:
    with pytest.raises(UnknownTopology) as refused:
        Topology.parse("x" * 1_000_000)
    assert len(str(refused.value)) < 200
