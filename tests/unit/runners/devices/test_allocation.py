"""Which session gets which real device, on recorded machines."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from runners.devices import tpu_vm
from runners.devices.allocation import (
    DeviceAllocation,
    DeviceMode,
    DevicesRefused,
    HardwareListing,
    SimulatedDevices,
    UsableDevices,
    allocate,
    usable_devices,
)
from runners.wire.topology import Topology

LISTINGS = Path(__file__).with_name("listings")


def listing(name: str) -> HardwareListing:
    return HardwareListing.from_json((LISTINGS / f"{name}.json").read_text())


def found(name: str) -> UsableDevices:
    return usable_devices(listing(name))


def allocation(
    name: str, topology: str, held: dict[str, int] | None = None, *, mode: DeviceMode = "auto", sharing: int = 1
) -> DeviceAllocation:
    decision = allocate(mode, Topology.parse(topology), found(name), held or {}, sharing)
    assert isinstance(decision, DeviceAllocation), decision
    return decision


def why(name: str, topology: str, held: dict[str, int] | None = None, *, mode: DeviceMode = "auto") -> str:
    """Why no real device is given: in ``auto`` and in the strict modes for the same reason."""
    decision = allocate(mode, Topology.parse(topology), found(name), held or {})
    assert isinstance(decision, SimulatedDevices if mode == "auto" else DevicesRefused), decision
    return decision.why


@pytest.mark.parametrize("path", sorted(LISTINGS.glob("*.json")), ids=lambda path: path.stem)
def test_a_listing_survives_the_pipe(path: Path) -> None:
    written = HardwareListing.from_json(path.read_text())
    assert HardwareListing.from_json(written.to_json()) == written


# --- one A100 ---------------------------------------------------------------------------------------------------


def test_a_request_for_one_gpu_gets_the_whole_card_and_its_memory_as_needed() -> None:
    real = allocation("one-a100", "gpu:1")
    assert [(share.logical, share.memory_mb) for share in real.shares] == [(1, None)]
    assert real.nodes == ("nvidia0", "nvidiactl", "nvidia-uvm", "nvidia-uvm-tools")
    assert real.words == "NVIDIA A100-SXM4-40GB"


def test_more_gpus_than_there_are_become_logical_ones_of_one_size() -> None:
    (share,) = allocation("one-a100", "gpu:4").shares
    assert (share.logical, share.memory_mb) == (4, (40960 - 512) // 4)
    assert allocation("one-a100", "gpu:4").words == "4 logical GPUs on NVIDIA A100-SXM4-40GB"


def test_a_card_that_is_held_is_given_to_nobody_else() -> None:
    held = Counter(allocation("one-a100", "gpu:1").holds)
    assert why("one-a100", "gpu:1", held) == "every GPU of this machine is in use by other sessions"
    assert why("one-a100", "gpu:1", held, mode="gpu") == "every GPU of this machine is in use by other sessions"


def test_sessions_that_share_a_card_get_equal_parts_and_the_last_place_is_last() -> None:
    first = allocation("one-a100", "gpu:2", sharing=3)
    assert [(share.logical, share.memory_mb) for share in first.shares] == [(2, (40960 // 3 - 512) // 2)]
    held = Counter(first.holds * 2)
    assert allocation("one-a100", "gpu:1", held, sharing=3).shares[0].memory_mb == 40960 // 3 - 512
    held.update(first.holds)
    assert isinstance(allocate("auto", Topology("gpu", 1), found("one-a100"), held, 3), SimulatedDevices)


# --- eight H100, two of them cut up by MIG ----------------------------------------------------------------------


def test_who_wants_one_gets_the_smallest_part_and_only_the_nodes_that_open_it() -> None:
    real = allocation("eight-h100-two-cut-up", "gpu:1")
    (share,) = real.shares
    assert share.unit.name.endswith("1g.10gb")
    assert share.unit.uuid.startswith("MIG-")
    assert real.nodes[0] == "nvidia6"
    assert len([node for node in real.nodes if node.startswith("nvidia-caps/")]) == 2


def test_who_wants_several_gets_whole_cards_that_nobody_holds() -> None:
    four = allocation("eight-h100-two-cut-up", "gpu:4")
    assert [share.unit.part for share in four.shares] == [False] * 4
    two = allocation("eight-h100-two-cut-up", "gpu:2", Counter(four.holds))
    assert not set(two.holds) & set(four.holds)
    assert all(share.logical == 1 and share.memory_mb is None for share in (*four.shares, *two.shares))


def test_where_fewer_are_free_than_asked_for_the_free_ones_are_split() -> None:
    held = Counter(allocation("eight-h100-two-cut-up", "gpu:4").holds)
    shares = allocation("eight-h100-two-cut-up", "gpu:3", held).shares
    assert [(share.logical, share.memory_mb) for share in shares] == [(2, (81559 - 512) // 2), (1, None)]


def test_cuda_shows_one_part_at_a_time_so_several_gpus_come_from_the_largest_one() -> None:
    whole = Counter(unit.uuid for unit in found("eight-h100-two-cut-up").gpus if not unit.part)
    (share,) = allocation("eight-h100-two-cut-up", "gpu:2", whole).shares
    assert (share.unit.name[-7:], share.logical) == ("3g.40gb", 2)


def test_sixteen_sessions_hold_sixteen_different_things_and_the_next_simulates() -> None:
    held: Counter[str] = Counter()
    for _ in range(16):
        held.update(allocation("eight-h100-two-cut-up", "gpu:1", held).holds)
    assert set(held.values()) == {1}
    assert len(held) == 16
    assert why("eight-h100-two-cut-up", "gpu:1", held)


def test_a_card_in_mig_mode_without_parts_says_what_to_do() -> None:
    whole = listing("eight-h100-two-cut-up")
    empty = replace(whole, cards=tuple(replace(card, instances=()) for card in whole.cards))
    assert len(usable_devices(empty).gpus) == 6
    assert "nvidia-smi mig -cgi" in usable_devices(empty).unusable[0]


# --- small, old and broken ones ---------------------------------------------------------------------------------


def test_two_small_cards_carry_two_gpus_and_refuse_what_does_not_fit() -> None:
    assert [share.unit.memory_mb for share in allocation("two-small-cards", "gpu:2").shares] == [4096, 3072]
    assert [share.logical for share in allocation("two-small-cards", "gpu:6").shares] == [3, 3]
    assert [share.logical for share in allocation("two-small-cards", "gpu:8").shares] == [4, 4]
    assert why("two-small-cards", "gpu:8", {"GPU-0a": 1}) == (
        "NVIDIA GeForce GTX 1060 3GB has too little memory for 8 GPUs: each would get 320 MB"
    )


def test_a_small_card_has_fewer_places_than_the_operator_allows() -> None:
    (share,) = allocation("two-small-cards", "gpu:1", {"GPU-0a": 4}, sharing=64).shares
    assert (share.unit.uuid, share.memory_mb) == ("GPU-0b", 3072 // 3 - 512)


def test_the_one_with_the_fewest_holders_comes_first() -> None:
    shares = allocation("two-small-cards", "gpu:1", {"GPU-0b": 1}, sharing=2).shares
    assert [share.unit.uuid for share in shares] == ["GPU-0a"]


def test_an_old_card_is_left_out_in_words() -> None:
    old = found("laptop-with-an-old-card")
    assert not old
    assert old.unusable == ("NVIDIA GeForce 940M (GPU-9e): its compute capability is 5.0, and TensorFlow needs 6.0",)
    assert why("laptop-with-an-old-card", "gpu:1") == "no GPU that TensorFlow can use was found on this machine"


def test_a_card_whose_driver_lacks_a_node_is_left_out_with_the_command_that_makes_it() -> None:
    assert found("no-uvm").unusable == (
        "Tesla T4 (GPU-5f): /dev/nvidia-uvm is missing; as root: nvidia-modprobe -u -c=0",
    )


def test_a_failed_look_is_said() -> None:
    assert usable_devices(HardwareListing(("nvidia0",), trouble="the driver did not answer")).unusable == (
        "the driver did not answer",
    )


# --- a TPU VM ---------------------------------------------------------------------------------------------------


def test_the_tpu_goes_whole_to_one_session() -> None:
    real = allocation("tpu-v3-8", "tpu:8", mode="tpu")
    assert (real.nodes, real.words) == (("accel0", "accel1", "accel2", "accel3"), "TPU v3-8")
    assert why("tpu-v3-8", "tpu:8", Counter(real.holds)) == "the TPU of this machine is in use by another session"


def test_a_part_of_the_tpu_is_not_given() -> None:
    assert why("tpu-v3-8", "tpu:4", mode="tpu") == "the TPU of this machine is a tpu:8, and only that topology gets it"


def test_a_tpu_without_its_software_or_of_several_machines_is_left_out_in_words() -> None:
    bare = usable_devices(replace(listing("tpu-v3-8"), tpu_software=False))
    pod = usable_devices(replace(listing("tpu-v3-8"), tpu="v3-32"))
    assert not bare
    assert not pod
    assert bare.unusable == ("TPU v3-8: the installed TensorFlow cannot drive it; install tensorflow-tpu instead",)
    assert "a single whole machine" in pod.unusable[0]


def test_a_tpu_without_libtpu_is_left_out_or_refused_where_it_is_required() -> None:
    without = usable_devices(replace(listing("tpu-v3-8"), tpu_library=""))
    sentence = "TPU v3-8: libtpu is missing; install it with: pip install libtpu"

    assert without.unusable == (sentence,)
    assert allocate("tpu", Topology("tpu", 8), without, {}) == DevicesRefused(sentence)
    assert allocate("auto", Topology("tpu", 8), without, {}) == SimulatedDevices(sentence)


def test_device_nodes_for_root_only_and_a_locked_memory_limit_come_with_advice() -> None:
    as_it_came = listing("tpu-v5litepod-4")
    opened = replace(as_it_came, closed=())
    ready = replace(opened, pinned_mb=None)

    assert usable_devices(as_it_came).unusable == (
        "TPU v5litepod-4: sessions cannot open /dev/vfio/0; "
        "as root: chmod a+rw /dev/vfio/0 /dev/vfio/1 /dev/vfio/2 /dev/vfio/3",
    )
    assert (
        "locks memory, and the runner may lock only 8 MB: start it with LimitMEMLOCK=infinity"
        in usable_devices(opened).unusable[0]
    )
    assert usable_devices(ready).unusable == ()
    assert usable_devices(replace(listing("tpu-v3-8"), pinned_mb=8)).tpu, "the older driver locks none"


def test_a_session_with_a_tpu_has_its_nodes_its_library_and_what_tells_of_its_chips() -> None:
    ready = usable_devices(replace(listing("tpu-v5litepod-4"), closed=(), pinned_mb=None))
    real = allocate("auto", Topology("tpu", 4), ready, {})

    assert isinstance(real, DeviceAllocation)
    assert real.tpu
    assert real.nodes == ready.nodes == ("vfio/0", "vfio/1", "vfio/2", "vfio/3", "vfio/vfio")
    assert ready.tpu
    assert real.tpu.facts == ready.facts == ready.tpu.facts
    assert dict(tpu_vm.environment(real.tpu)) == {
        "TPU_LIBRARY_PATH": real.tpu.library,
        "TPU_SKIP_MDS_QUERY": "true",
        "TPU_ACCELERATOR_TYPE": "v5litepod-4",
        "TPU_CHIPS_PER_HOST_BOUNDS": "2,2,1",
        "TPU_HOST_BOUNDS": "1,1,1",
        "TPU_WORKER_ID": "0",
        "TPU_WORKER_HOSTNAMES": "localhost",
        "NEXT_PLUGGABLE_DEVICE_USE_C_API": "true",
        "TF_PLUGGABLE_DEVICE_LIBRARY_PATH": real.tpu.library,
    }
    older = allocation("tpu-v3-8", "tpu:8").tpu
    assert older
    assert "TF_PLUGGABLE_DEVICE_LIBRARY_PATH" not in dict(tpu_vm.environment(older))


# --- the mode ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("topology", ["cpu", "workers:2", "workers:2xgpu:2", "ps:2+1"])
@pytest.mark.parametrize("mode", ["auto", "simulate", "gpu", "tpu"])
def test_a_cpu_and_a_cluster_have_no_real_devices_in_any_mode(topology: str, mode: DeviceMode) -> None:
    machine = found("eight-h100-two-cut-up")
    assert allocate(mode, Topology.parse(topology), machine, {}) == SimulatedDevices()


@pytest.mark.parametrize("mode", ["simulate", "tpu"])
def test_gpus_are_simulated_where_the_operator_wants_no_real_ones(mode: DeviceMode) -> None:
    assert allocate(mode, Topology("gpu", 1), found("one-a100"), {}) == SimulatedDevices()


@pytest.mark.parametrize("topology", ["gpu:1", "tpu:8"])
def test_without_hardware_auto_simulates_and_the_strict_modes_refuse(topology: str) -> None:
    parsed = Topology.parse(topology)
    strict: DeviceMode = "gpu" if parsed.kind == "gpu" else "tpu"
    assert isinstance(allocate("auto", parsed, UsableDevices(), {}), SimulatedDevices)
    assert isinstance(allocate(strict, parsed, UsableDevices(), {}), DevicesRefused)
