"""Names and lists of simulated GPUs."""

from __future__ import annotations

import pytest

from runners.guest.accelerators.gpu_rules import Components, cpu_stand_in, index_of, present_devices, visible_gpu_count


@pytest.mark.parametrize(
    ("name", "becomes"),
    [
        ((None, None, None, "GPU", "1"), (None, None, None, "CPU", "1")),
        ((None, None, None, "gpu", 1), (None, None, None, "CPU", 1)),
        (("worker", "0", "1", "GPU", 0), ("worker", "0", "1", "CPU", 0)),
        ((None, None, None, "GPU", None), (None, None, None, "CPU", None)),
    ],
)
def test_a_gpu_is_the_logical_cpu_of_its_number(name: Components, becomes: Components) -> None:
    assert cpu_stand_in(name, 2) == becomes


@pytest.mark.parametrize("gpus", [0, 2])
@pytest.mark.parametrize(
    "name",
    [
        (None, None, None, "GPU", 2),
        (None, None, None, "CPU", 1),
        (None, None, None, "TPU", 0),
        ("ps", 0, 0, None, None),
    ],
)
def test_what_is_no_gpu_of_this_machine_keeps_its_name(name: Components, gpus: int) -> None:
    assert cpu_stand_in(name, gpus) == name


@pytest.mark.parametrize(
    ("name", "index"),
    [
        ("GPU:0", 0),
        ("/gpu:3", 3),
        ("/device:GPU:1", 1),
        ("/job:localhost/replica:0/task:0/device:GPU:12", 12),
        ("/device:CPU:0", None),
        ("GPU", None),
        ("gpu:*", None),
        ("mygpu:0", None),
        (None, None),
    ],
)
def test_the_index_of_a_gpu_is_read_from_its_name(name: object, index: int | None) -> None:
    assert index_of(name) == index


@pytest.mark.parametrize(
    ("setting", "left"),
    [(None, 4), ("0", 1), ("2,0", 2), ("0,1,2,3", 4), (" 1, 3", 2), ("-1", 0), ("", 0), ("0,9,1", 1), ("1,1", 1)],
)
def test_cuda_visible_devices_hides_gpus(setting: str | None, left: int) -> None:
    assert visible_gpu_count(4, setting) == left


def cpus(count: int, place: str = "") -> list[tuple[str, str]]:
    return [(f"{place}/device:CPU:{i}", "CPU") for i in range(count)]


def test_logical_cpus_are_listed_as_one_cpu_and_the_gpus_they_stand_for() -> None:
    assert present_devices(cpus(2), 1, 2) == [
        ("/device:CPU:0", "CPU"),
        ("/device:GPU:0", "GPU"),
        ("/device:GPU:1", "GPU"),
    ]


def test_cpus_that_a_learner_split_are_listed_beside_the_gpus() -> None:
    assert [name for name, _ in present_devices(cpus(3), 3, 2)] == [
        f"/device:{d}" for d in ["CPU:0", "CPU:1", "CPU:2", "GPU:0", "GPU:1"]
    ]


def test_without_gpus_the_list_is_what_it_was() -> None:
    assert present_devices(cpus(2), 2, 0) == cpus(2)


def test_each_machine_of_a_cluster_that_is_like_this_one_has_its_gpus() -> None:
    here, there, other = "/job:worker/replica:0/task:0", "/job:worker/replica:0/task:1", "/job:ps/replica:0/task:0"
    names = [name for name, _ in present_devices([*cpus(2, here), *cpus(2, there), *cpus(1, other)], 1, 2)]
    assert names == [
        *(f"{here}/device:{d}" for d in ("CPU:0", "GPU:0", "GPU:1")),
        *(f"{there}/device:{d}" for d in ("CPU:0", "GPU:0", "GPU:1")),
        f"{other}/device:CPU:0",
    ]
