"""Checks of "Input pipelines": what runs how often, and who reads what."""

from __future__ import annotations

from itertools import zip_longest

import numpy as np

from runners.checks import Work, check, equal, fail


def run_hidden_epochs(work: Work) -> tuple[np.ndarray, int, list[list[np.ndarray]], object]:
    """Hidden numbers, the batch size, the batches of three epochs, and how often ``expensive`` was called."""
    numbers = work.rng.choice(10_000, size=int(work.rng.integers(40, 90)), replace=False)
    size = int(work.rng.integers(5, 9))
    result = work.call("run_epochs", numbers, size, 3)
    if not isinstance(result, (list, tuple)) or len(result) != 2:
        fail("run_epochs has to return two things: the batches and the calls.")
    epochs, calls = result
    if not isinstance(epochs, (list, tuple)) or len(epochs) != 3:
        fail("run_epochs has to return the batches of each epoch.")
    for batches in epochs:
        if not isinstance(batches, (list, tuple)) or any(
            not isinstance(batch, np.ndarray)
            or batch.ndim != 1
            or batch.dtype.kind not in "if"
            or not np.isfinite(batch).all()
            for batch in batches
        ):
            fail("Each epoch has to be a list of batches, and each batch an array of numbers.")
    return numbers, size, [list(batches) for batches in epochs], calls


def whole(batches: list[np.ndarray]) -> list[int]:
    return [int(number) for number in np.floor(np.concatenate(batches or [np.zeros(0)]))]


@check(
    "order-the-steps",
    "Each epoch has all numbers, in batches",
    xp=5,
)
def complete(work: Work) -> None:
    numbers, size, epochs, _ = run_hidden_epochs(work)
    full, rest = divmod(len(numbers), size)
    for batches in epochs:
        equal(sorted(whole(batches)), sorted(int(number) for number in numbers))
        equal([len(batch) for batch in batches], [size] * full + [rest] * (rest > 0))


@check(
    "order-the-steps",
    "`expensive` is called once for each number",
    xp=10,
    hints=["What is kept by a cache does not run again. What has to come before it?"],
)
def called_once(work: Work) -> None:
    numbers, size, epochs, calls = run_hidden_epochs(work)
    if any(sorted(whole(batches)) != sorted(int(number) for number in numbers) for batches in epochs):
        fail("The epochs do not have all numbers.")
    equal(
        calls,
        len(numbers),
        mistakes={
            "It is called again in every epoch.": 3 * len(numbers),
            "It is called again for every batch of every epoch.": 3 * -(-len(numbers) // size),
            "It is called for whole batches: then the members of a batch are fixed before the cache.": -(
                -len(numbers) // size
            ),
        },
    )


@check(
    "order-the-steps",
    "Chance is new in each epoch",
    xp=10,
    hints=[
        "A cache keeps what is random just as it keeps everything else.",
        "How large must the buffer of a shuffle be?",
    ],
)
def random_again(work: Work) -> None:
    numbers, _, epochs, _ = run_hidden_epochs(work)
    values = [np.concatenate(batches or [np.zeros(0)]) for batches in epochs]
    if any(len(value) != len(numbers) for value in values):
        fail("The epochs do not have all numbers.")
    orders = [np.floor(value) for value in values]
    added = [dict(zip(np.floor(value), value - np.floor(value), strict=True)) for value in values]
    if all(added[0][number] == added[1].get(number) for number in added[0]):
        fail("Every number has the same augmentation in each epoch: it was frozen by the cache.")
    if np.array_equal(orders[0], orders[1]):
        fail("The order is the same in each epoch.")
    members = [{frozenset(np.floor(batch)) for batch in batches} for batches in epochs]
    if members[0] == members[1]:
        fail("Whole batches are shuffled: their members are the same in each epoch.")
    position = {number: place for place, number in enumerate(numbers)}
    moved = np.mean([abs(place - position.get(number, place)) for place, number in enumerate(orders[0])])
    if moved < len(numbers) / 8:
        fail("The numbers hardly leave their places: the buffer of the shuffle is too small for them.")


def hidden_files(work: Work) -> tuple[list[list[int]], int]:
    """Files of different lengths with unique record ids, and a number of workers that does not divide their number."""
    workers = int(work.rng.integers(2, 5))
    count = workers * int(work.rng.integers(2, 4)) + 1
    lengths = [int(length) for length in work.rng.integers(1, 9, size=count)]
    ids = [int(number) for number in work.rng.choice(100_000, size=sum(lengths), replace=False)]
    return [[ids.pop() for _ in range(length)] for length in lengths], workers


def read_by_all(work: Work, files: list[list[int]], workers: int) -> list[list[int]]:
    """What each worker reads. A worker is asked in a sandbox of its own: it cannot know what others have read."""
    shares = []
    for worker in range(workers):
        share = work.call("record_ids", files, workers, worker)
        if not isinstance(share, list) or not all(type(number) is int for number in share):
            fail("record_ids has to return a list of whole numbers.")
        shares.append(share)
    return shares


@check(
    "share-the-files",
    "Every record is read once",
    xp=10,
    hints=["`shard(workers, worker)` keeps every so many elements. Elements of what?"],
)
def each_once(work: Work) -> None:
    files, workers = hidden_files(work)
    shares = read_by_all(work, files, workers)
    got = [number for share in shares for number in share]
    wanted = {number for file in files for number in file}
    if missing := wanted - set(got):
        fail("{count} of {all} records are read by nobody.", count=len(missing), all=len(wanted))
    if len(got) > len(set(got)):
        fail("{count} records are read more than once.", count=len(got) - len(set(got)))
    equal(sorted(got), sorted(wanted))


@check(
    "share-the-files",
    "A file is read by one worker",
    xp=5,
    hints=["Share out the files before you open them."],
)
def own_files(work: Work) -> None:
    files, workers = hidden_files(work)
    shares = [set(share) for share in read_by_all(work, files, workers)]
    readers = [sum(bool(share & set(file)) for share in shares) for file in files]
    if max(readers) > 1:
        fail("{count} files are opened by more than one worker.", count=sum(number > 1 for number in readers))
    if min(readers) < 1:
        fail("{count} files are opened by nobody.", count=sum(number < 1 for number in readers))
    if not all(shares):
        fail("A worker has nothing to read, and others have several files.")


@check(
    "share-the-files",
    "A worker mixes its files",
    xp=10,
    hints=["`interleave` takes `cycle_length`, the number of files that are open, and `block_length`."],
)
def mixed(work: Work) -> None:
    files, workers = hidden_files(work)
    for share in read_by_all(work, files, workers):
        own = [file for file in files if set(file) & set(share)]
        rounds = [number for turn in zip_longest(*own) for number in turn if number is not None]
        equal(
            share,
            rounds,
            mistakes={"The files are read one after the other.": [number for file in own for number in file]},
        )
