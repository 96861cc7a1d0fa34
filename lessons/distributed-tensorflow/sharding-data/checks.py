"""Checks of "Sharding files and records": who reads what in an epoch, and whether all workers take as many steps."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from runners.checks import Work, check, equal, fail


def hidden_files(work: Work, count: int) -> list[list[int]]:
    """Files of one to eight records, each with a number that no other record has."""
    lengths = [int(length) for length in work.rng.integers(1, 9, size=count)]
    ids = [int(number) for number in work.rng.choice(100_000, size=sum(lengths), replace=False)]
    return [[ids.pop() for _ in range(length)] for length in lengths]


def shares_of(work: Work, files: list[list[int]], workers: int, epoch: int) -> list[list[int]]:
    """What each worker reads in an epoch, complete and disjoint."""
    shares = []
    for worker in range(workers):
        share = work.call("record_ids", files, workers, worker, epoch)
        if not isinstance(share, list) or not all(type(number) is int for number in share):
            fail("records_of has to return a data set of records.")
        shares.append(share)
    got = [number for share in shares for number in share]
    wanted = {number for file in files for number in file}
    if len(got) > len(set(got)):
        fail(
            "{count} records are read more than once. Do all workers have the files in the same order?",
            count=len(got) - len(set(got)),
        )
    if missing := wanted - set(got):
        fail("{count} of {all} records are read by no worker.", count=len(missing), all=len(wanted))
    equal(sorted(got), sorted(wanted))
    return shares


def readers_of(files: list[list[int]], shares: list[list[int]]) -> list[tuple[int, ...]]:
    """The workers that read from each file."""
    return [tuple(worker for worker, share in enumerate(shares) if set(share) & set(file)) for file in files]


@check(
    "deal-the-files",
    "Many files: each is read by one worker",
    xp=10,
    hints=[
        "What all workers shuffle alike, they can cut. A shuffle of a data set also depends on the global seed.",
        "Cut the numbers of the files before you read them.",
    ],
)
def many_files(work: Work) -> None:
    workers = int(work.rng.integers(2, 5))
    files = hidden_files(work, workers * int(work.rng.integers(3, 5)) + int(work.rng.integers(workers)))
    first = int(work.rng.integers(1, 50))
    for epoch in (first, first + 1):
        shares = shares_of(work, files, workers, epoch)
        if shared := sum(len(readers) > 1 for readers in readers_of(files, shares)):
            fail("{count} files are read by more than one worker.", count=shared)
        held = [sum(worker in readers for readers in readers_of(files, shares)) for worker in range(workers)]
        if max(held) > min(held) + 1:
            fail("One worker has {most} files and another {fewest}.", most=max(held), fewest=min(held))


@check(
    "deal-the-files",
    "Other files in other epochs, also after a restart",
    xp=10,
    hints=["A seed that is always the same gives an order that is always the same."],
)
def other_files(work: Work) -> None:
    workers = int(work.rng.integers(2, 5))
    files = hidden_files(work, 6 * workers + 1)  # so many that chance hardly ever deals them out alike three times
    first = int(work.rng.integers(1, 50))
    deals = [readers_of(files, shares_of(work, files, workers, epoch)) for epoch in range(first, first + 3)]
    if deals[0] == deals[1] == deals[2]:
        fail("Each worker has the same files in every epoch.")
    restarted = readers_of(files, shares_of(work.fresh(), files, workers, first + 2))
    if restarted != deals[2]:
        fail("After a restart, the workers have other files in the same epoch.")


@check(
    "deal-the-files",
    "Fewer files than workers: records are shared out",
    xp=10,
    hints=["`shard` can also cut the records. Do all workers have them in the same order?"],
)
def few_files(work: Work) -> None:
    workers = int(work.rng.integers(4, 7))
    files = hidden_files(work, int(work.rng.integers(2, workers)))
    files[0] += [int(number) for number in 100_000 + work.rng.choice(1000, size=2 * workers, replace=False)]
    for epoch in (0, int(work.rng.integers(1, 50))):
        sizes = [len(share) for share in shares_of(work, files, workers, epoch)]
        if min(sizes) == 0:
            fail("{count} workers have nothing to read.", count=sizes.count(0))
        if max(sizes) > min(sizes) + 1:
            fail("One worker reads {most} records and another {fewest}.", most=max(sizes), fewest=min(sizes))


def compare_batches(work: Work, lengths: Sequence[int], size: int) -> None:
    """Records of these numbers are read by the workers, in batches of this size."""
    ids = work.rng.choice(np.arange(1, 100_000), size=sum(lengths), replace=False)
    own = [[int(number) for number in part] for part in np.split(ids, np.cumsum(lengths)[:-1])]
    results = work.per_task("padded_batches", size, own=own)
    if len(results) != len(own):
        fail("There has to be a result from each worker.")
    arrays = []
    for result in results:
        match result:
            case (np.ndarray() as records, np.ndarray() as weights) | [
                np.ndarray() as records,
                np.ndarray() as weights,
            ]:
                pass
            case _:
                fail("padded_batches has to return two arrays.")
        if records.shape != weights.shape or records.ndim != 2 or records.shape[1] != size:
            fail("Both arrays need a row for each step and `size` columns.")
        if records.dtype.kind not in "iuf" or weights.dtype.kind not in "biuf":
            fail("Both arrays have to consist of numbers.")
        arrays.append((records, weights))
    steps = [-(-length // size) for length in lengths]
    equal(
        [len(records) for records, _ in arrays],
        [max(steps)] * len(lengths),
        mistakes={
            "The workers take different numbers of steps: those with fewer stop the others.": steps,
            "The last batch of the longest share is missing.": [max(lengths) // size] * len(lengths),
            "All workers stop with the shortest share: records are lost.": [min(steps)] * len(lengths),
            "These are as many steps as for the records of all workers together.": [-(-sum(lengths) // size)]
            * len(lengths),
            "These are as many steps as there are records.": [max(lengths)] * len(lengths),
        },
    )
    for (records, weights), wanted in zip(arrays, own, strict=True):
        if not np.isin(weights, (0, 1)).all():
            fail("A weight is 1 for a record and 0 for what fills up.")
        counted = records[weights == 1].tolist()
        if len(counted) > len(wanted):
            fail("What fills up the batches counts, too: its weight has to be 0.")
        equal(sorted(counted), sorted(wanted))


@check(
    "same-steps",
    "All workers take as many steps as the longest share needs",
    xp=20,
    hints=[
        "`numbers_of_all` gives each worker the numbers of all. Which number does each bring, and which counts?",
        "Make arrays of zeros that are long enough, fill in the records, and cut them into rows with `reshape`.",
    ],
)
def as_many_steps(work: Work) -> None:
    size = int(work.rng.integers(3, 6))
    longest = size * int(work.rng.integers(4, 7)) + int(work.rng.integers(1, size))
    lengths = [longest, longest // 2, size + 1]
    compare_batches(work, [int(length) for length in work.rng.permutation(lengths)], size)


@check(
    "same-steps",
    "A worker without records takes part",
    xp=15,
    hints=["Does every worker reach `numbers_of_all`, whatever it has read?"],
)
def without_records(work: Work) -> None:
    size = int(work.rng.integers(3, 6))
    lengths = [0, size * int(work.rng.integers(2, 5)), int(work.rng.integers(1, size))]
    compare_batches(work, [int(length) for length in work.rng.permutation(lengths)], size)
