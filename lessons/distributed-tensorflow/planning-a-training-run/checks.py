"""Checks of "Planning a training run": a diagnosis of hidden plans, and plans for hidden clusters.

The solution's simulator judges every plan. What may be said of a plan without it is decided here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from runners.checks import Work, check, fail, untouched

Numbers = Sequence[float]

DATA, TENSOR, PIPELINE, ZERO, MICROBATCH, REMATERIALIZE = range(6)
PARTS = ("weights", "gradients", "optimizer", "activations")

# A model, a cluster, a plan that does not fit, and the largest part of its memory. In each, another change is the best.
DOES_NOT_FIT: dict[str, tuple[Numbers, Numbers, Numbers, str]] = {
    "zero": (
        (32, 4096, 11008, 4096, 32000, 8192, 512),
        (64, 8, 126e9, 790e12, 150e9, 12.5e9),
        (64, 1, 1, 0, 1, False),
        "optimizer",
    ),
    "microbatch": (
        (40, 5120, 13824, 5120, 32000, 2048, 96),
        (24, 4, 72e9, 790e12, 150e9, 50e9),
        (6, 1, 4, 0, 2, False),
        "optimizer",
    ),
    "rematerialize": (
        (60, 7168, 20480, 1024, 64000, 2048, 384),
        (24, 4, 72e9, 790e12, 150e9, 3e9),
        (12, 1, 2, 2, 1, False),
        "weights",
    ),
    "tensor": (
        (80, 8192, 28672, 1024, 32000, 2048, 192),
        (48, 8, 126e9, 790e12, 150e9, 3e9),
        (12, 1, 4, 1, 1, False),
        "activations",
    ),
    "pipeline": (
        (40, 5120, 13824, 5120, 32000, 2048, 96),
        (24, 4, 40e9, 250e12, 450e9, 3e9),
        (24, 1, 1, 2, 1, False),
        "weights",
    ),
    "nothing": (
        (48, 6144, 16384, 1024, 64000, 8192, 512),
        (64, 8, 24e9, 790e12, 150e9, 3e9),
        (16, 1, 4, 3, 4, False),
        "activations",
    ),
    "odd": (  # 15 replicas cannot be halved
        (60, 7168, 20480, 1024, 64000, 4096, 480),
        (60, 4, 40e9, 790e12, 450e9, 50e9),
        (15, 2, 2, 1, 1, False),
        "activations",
    ),
    "machine": (  # a layer on eight devices would fit, but a machine has four
        (48, 6144, 16384, 1024, 64000, 4096, 512),
        (32, 4, 40e9, 250e12, 150e9, 12.5e9),
        (4, 4, 2, 0, 4, False),
        "activations",
    ),
}

# Models and clusters. A search that leaves out something finds no plan within 8% of the best in at least one of them.
CLUSTERS: tuple[tuple[Numbers, Numbers], ...] = (
    ((48, 6144, 16384, 1024, 64000, 2048, 240), (30, 6, 72e9, 790e12, 25e9, 3e9)),
    ((48, 6144, 16384, 1024, 64000, 8192, 30), (30, 6, 16e9, 400e12, 60e9, 50e9)),
    ((32, 4096, 11008, 4096, 32000, 2048, 30), (30, 6, 40e9, 790e12, 300e9, 25e9)),
    ((60, 7168, 20480, 1024, 64000, 4096, 18), (18, 6, 72e9, 250e12, 60e9, 3e9)),
)


def varied(work: Work, cluster: Numbers) -> list[float]:
    """The cluster with numbers that differ by up to one percent, which changes no answer."""
    devices, machine, *others = cluster
    return [devices, machine, *(number * float(work.rng.uniform(0.99, 1.01)) for number in others)]


def changes(model: Numbers, cluster: Numbers, plan: Numbers) -> dict[str, list[Any]]:
    """The plans that differ in one change."""
    data, tensor, pipeline, zero, microbatch, rematerialize = plan
    changed: dict[str, dict[int, Any]] = {}
    if zero < 3:
        changed["zero"] = {ZERO: zero + 1}
    if not microbatch % 2:
        changed["microbatch"] = {MICROBATCH: microbatch // 2}
    if not rematerialize:
        changed["rematerialize"] = {REMATERIALIZE: True}
    if not data % 2 and not cluster[1] % (2 * tensor):
        changed["tensor"] = {DATA: data // 2, TENSOR: 2 * tensor}
    if not data % 2 and 2 * pipeline <= model[0]:
        changed["pipeline"] = {DATA: data // 2, PIPELINE: 2 * pipeline}
    return {name: [new.get(i, old) for i, old in enumerate(plan)] for name, new in changed.items()}


def plan_of(answer: Any) -> list[Any]:
    """An answer that is a plan: five positive whole numbers, and a truth value."""
    if not isinstance(answer, (list, tuple)) or len(answer) != 6:
        fail("The answer has to be a Plan.")
    numbers = answer[:REMATERIALIZE]
    if not all(isinstance(number, (int, np.integer)) and not isinstance(number, bool) for number in numbers):
        fail("All fields of a plan but the last have to be whole numbers.")
    if not isinstance(answer[REMATERIALIZE], (bool, np.bool_)):
        fail("The last field of a plan has to be True or False.")
    if min(*numbers[:ZERO], numbers[MICROBATCH]) < 1 or not 0 <= numbers[ZERO] <= 3:
        fail("There is no such plan: {got}.", got=list(answer))
    return [*(int(number) for number in numbers), bool(answer[REMATERIALIZE])]


def estimate(work: Work, model: Numbers, cluster: Numbers, plan: Numbers) -> tuple[float, float]:
    """Its bytes and seconds, by the solution's simulator."""
    estimated: Any = work.reference("estimate", list(model), list(cluster), list(plan))
    return float(estimated[0]), float(estimated[1])


def given_is_untouched(work: Work, *names: str) -> None:
    untouched(
        work,
        *names,
        *("Model", "Cluster", "Plan", "shape_of", "memory_of", "total_memory", "half_sum", "time_of", "seconds"),
    )


def diagnosis(work: Work, name: str) -> tuple[list[float], Any, Any]:
    """The cluster, and both parts of what the submission says."""
    given_is_untouched(work, "diagnosed")
    model, cluster, plan, _ = DOES_NOT_FIT[name]
    cluster = varied(work, cluster)
    answer: Any = work.call("diagnosed", list(model), cluster, list(plan))
    if not isinstance(answer, (list, tuple)) or len(answer) != 2:
        fail("The answer has to be the name of a part and a plan, or None instead of the plan.")
    return cluster, *answer


@check(
    "diagnose",
    "The largest part of the memory",
    xp=5,
    hints=["`memory_of` returns a dictionary. `max(parts, key=parts.get)` is the key with the largest value."],
)
def largest_part(work: Work) -> None:
    for name in DOES_NOT_FIT:
        largest = diagnosis(work, name)[1]
        if not isinstance(largest, str) or largest not in PARTS:
            fail("{got} is no part of the memory.", got=largest)
        if largest != DOES_NOT_FIT[name][3]:
            fail("{got} is not the largest part of the memory of this plan.", got=largest)


@check(
    "diagnose",
    "The best single change",
    xp=20,
    hints=[
        "Make a list of all plans with one change, keep those that fit, and take the fastest.",
        "More devices for a layer or more stages leave fewer replicas, so that the number of devices stays the same.",
    ],
)
def best_change(work: Work) -> None:
    for name, (model, _, plan, _) in DOES_NOT_FIT.items():
        if name not in {"nothing", "odd", "machine"}:
            compare_change(work, name, model, plan)


def refuse_broken_rule(model: Numbers, cluster: Numbers, plan: Numbers, answer: Sequence[Any]) -> None:
    """Fail if the answer has made one of the changes where it is not possible."""
    replicas, tensor, pipeline = (int(number) for number in plan[:ZERO])
    if answer[TENSOR] == 2 * tensor and replicas % 2:
        fail(
            "Twice as many devices for each layer need half as many replicas, and {replicas} cannot be halved: {got}.",
            replicas=replicas,
            got=answer,
        )
    if answer[PIPELINE] == 2 * pipeline and replicas % 2:
        fail(
            "Twice as many stages need half as many replicas, and {replicas} cannot be halved: {got}.",
            replicas=replicas,
            got=answer,
        )
    if answer[TENSOR] == 2 * tensor and cluster[1] % (2 * tensor):
        fail(
            "Twice as many devices for each layer are {number}, and they do not divide the {machine} of a machine "
            "evenly: {got}.",
            number=2 * tensor,
            machine=int(cluster[1]),
            got=answer,
        )
    if answer[PIPELINE] == 2 * pipeline > model[0]:
        fail(
            "Twice as many stages are {number}, and the model has only {layers} layers: {got}.",
            number=2 * pipeline,
            layers=int(model[0]),
            got=answer,
        )


def compare_change(work: Work, name: str, model: Numbers, plan: Numbers) -> None:
    cluster, _, answer = diagnosis(work, name)
    if answer is None:
        fail("One of the changes makes this plan fit: {plan}.", plan=list(plan))
    answer = plan_of(answer)
    refuse_broken_rule(model, cluster, plan, answer)
    if answer[DATA] * answer[TENSOR] * answer[PIPELINE] != cluster[0]:
        fail("The plan does not use all devices: {got}.", got=answer)
    possible = changes(model, cluster, plan)
    if answer not in possible.values():
        fail("The plan does not differ in exactly one of the changes: {got}.", got=answer)
    estimates = {key: estimate(work, model, cluster, changed) for key, changed in possible.items()}
    fitting = {key: seconds for key, (size, seconds) in estimates.items() if size <= cluster[2]}
    chosen = next(key for key, changed in possible.items() if changed == answer)
    if chosen not in fitting:
        fail("The plan does not fit either: {got}.", got=answer)
    if fitting[chosen] > 1.001 * min(fitting.values()):
        fail("Another change makes the plan fit, and its step is faster than that of {got}.", got=answer)


@check(
    "diagnose",
    "Sometimes no single change is enough",
    xp=5,
    hints=["`min(…, default=None)` returns None if there is nothing to choose from.", "Can 15 replicas be halved?"],
)
def no_change(work: Work) -> None:
    for name in ("nothing", "odd", "machine"):
        model, _, plan, _ = DOES_NOT_FIT[name]
        cluster, _, answer = diagnosis(work, name)
        if answer is None:
            continue
        answer = plan_of(answer)
        refuse_broken_rule(model, cluster, plan, answer)
        if answer in changes(model, cluster, plan).values():
            fail("The plan does not fit either: {got}.", got=answer)
        fail("No single change makes this plan fit: {plan}. Yours is {got}.", plan=list(plan), got=answer)


def planned(work: Work, model: Numbers, cluster: Numbers) -> list[Any]:
    """A plan of the submission that uses the whole cluster and the whole batch."""
    given_is_untouched(work, "planned")
    plan = plan_of(work.call("planned", list(model), list(cluster)))
    data, tensor, pipeline, _, microbatch, _ = plan
    if data * tensor * pipeline != cluster[0]:
        fail(
            "The cluster has {devices} devices, and the plan does not use exactly those: {got}.",
            devices=cluster[0],
            got=plan,
        )
    if model[6] % (data * microbatch):
        fail("A batch of {batch} cannot be divided like this: {got}.", batch=model[6], got=plan)
    if pipeline > model[0]:
        fail("There are more stages than layers: {got}.", got=plan)
    return plan


@check(
    "plan-for-cluster",
    "The plan uses the whole cluster and fits",
    xp=15,
    hints=[
        "`sweep` knows only powers of two. Which numbers can `tensor` be if a cluster has 30 devices?",
        "Leave out plans whose `total_memory` is more than `cluster.memory`.",
    ],
)
def fits(work: Work) -> None:
    for model, cluster in CLUSTERS:
        cluster = varied(work, cluster)
        plan = planned(work, model, cluster)
        size, _ = estimate(work, model, cluster, plan)
        if size > cluster[2]:
            fail(
                "The plan needs {times} times the memory of a device: {got}.",
                times=round(size / cluster[2], 2),
                got=plan,
            )


@check(
    "plan-for-cluster",
    "Its step is within 5% of the best",
    xp=25,
    hints=[
        "Try all divisors of the number of devices for `tensor`, and of the sequences of a replica for `microbatch`.",
        "Try each of them with all four stages of ZeRO, with and without rematerialization.",
    ],
)
def as_fast_as_the_best(work: Work) -> None:
    for model, cluster in CLUSTERS:
        cluster = varied(work, cluster)
        plan = planned(work, model, cluster)
        best: Any = work.reference("planned", list(model), cluster)
        _, took = estimate(work, model, cluster, plan)
        _, least = estimate(work, model, cluster, best)
        if took > 1.05 * least:
            fail(
                "A step takes {times} times as long as with the best plan: {got}.",
                times=round(took / least, 2),
                got=plan,
            )
