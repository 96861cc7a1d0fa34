"""Checks of "Many workers": who a worker is, and what all of them compute together."""

from __future__ import annotations

import json

import numpy as np

from runners.checks import Work, check, close, equal, fail


def hidden_cluster(work: Work, *, chief: bool, evaluator: bool) -> dict[str, list[str]]:
    rng = work.rng

    def addresses(count: int) -> list[str]:
        return [
            f"10.{rng.integers(256)}.{rng.integers(256)}.{rng.integers(256)}:{rng.integers(1024, 65536)}"
            for _ in range(count)
        ]

    cluster = {"worker": addresses(int(rng.integers(2, 9)))}
    if chief:
        cluster["chief"] = addresses(1)
    if evaluator:
        cluster["evaluator"] = addresses(1)
    return cluster


def compare_description(work: Work, cluster: dict[str, list[str]], role: str, index: int) -> None:
    workers, named = len(cluster["worker"]), "chief" in cluster
    got = work.call("describe", json.dumps({"cluster": cluster, "task": {"type": role, "index": index}}))
    if not isinstance(got, (list, tuple)) or len(got) != 3:
        fail("describe has to return three things: a number, an address, and whether this is the chief.")
    equal(
        got[0],
        workers + named,
        mistakes={
            "A chief trains as well: count it.": workers,
            "An evaluator does not train.": sum(len(addresses) for addresses in cluster.values()),
        },
    )
    equal(
        got[1],
        cluster[role][index],
        mistakes={"This is the address of a worker, but the task has another role.": cluster["worker"][index]},
    )
    is_chief = (role, index) == ("chief" if named else "worker", 0)
    equal(
        got[2],
        is_chief,
        mistakes={
            "Worker 0 is not the chief where the cluster names another."
            if (role, index) == ("worker", 0)
            else "Only one is the chief.": True,
            "This is the chief.": False,
        },
    )


@check("read-tf-config", "Workers only", xp=5)
def plain(work: Work) -> None:
    cluster = hidden_cluster(work, chief=False, evaluator=False)
    compare_description(work, cluster, "worker", 0)
    compare_description(work, cluster, "worker", int(work.rng.integers(1, len(cluster["worker"]))))


@check(
    "read-tf-config",
    "With a chief and an evaluator",
    xp=10,
    hints=[
        "`task` has a type, and the cluster lists the addresses by type.",
        "Who is the chief, if there is no role of that name?",
    ],
)
def with_chief(work: Work) -> None:
    cluster = hidden_cluster(work, chief=True, evaluator=bool(work.rng.integers(2)))
    compare_description(work, cluster, "chief", 0)
    compare_description(work, cluster, "worker", 0)
    cluster = hidden_cluster(work, chief=False, evaluator=True)
    compare_description(work, cluster, "worker", 0)
    compare_description(work, cluster, "evaluator", 0)


def compare_means(work: Work, sizes: list[int]) -> None:
    # Small numbers and large ones, so that no mistake cancels out.
    lows = work.rng.permutation([1.0, 5.0])
    parts = [work.rng.uniform(low, low + 2, size=size).astype("float32") for low, size in zip(lows, sizes, strict=True)]
    mean = np.float32(np.concatenate(parts).mean())
    got = work.per_task("mean_of_all", own=parts)
    if len(got) != len(parts):
        fail("There has to be a result from each worker.")
    for own, result in zip(parts, got, strict=True):
        close(
            result,
            mean,
            mistakes={
                "This is the mean of the workers' means: few values count as much as many.": np.mean(
                    [part.mean() for part in parts]
                ),
                "This is the mean of the worker's own values.": own.mean(),
                "The means of the workers are added up.": np.sum([part.mean() for part in parts]),
                "The sums are added up, but divided by the worker's own count.": np.concatenate(parts).sum() / len(own),
                "This is the sum of all values.": np.concatenate(parts).sum(),
                "The sums of the workers are averaged, not added up.": mean / len(parts),
            },
        )


def hidden_sizes(work: Work) -> list[int]:
    """A few values and many. Of a single one, a sum divided by its number would be the sum."""
    small = int(work.rng.integers(2, 5))
    return [small, small + int(work.rng.integers(3, 9))]


@check(
    "mean-over-workers",
    "All workers return the mean of all values",
    xp=15,
    hints=["Which two numbers does the mean of a part consist of?"],
)
def mean_of_all(work: Work) -> None:
    compare_means(work, hidden_sizes(work)[::-1])


@check("mean-over-workers", "When the other worker has read more", xp=10)
def the_other_way(work: Work) -> None:
    compare_means(work, hidden_sizes(work))
