"""Checks of "Input pipelines": what runs how often, who waits for how long, and who reads what."""

from __future__ import annotations

from itertools import combinations, zip_longest

import numpy as np

from runners.checks import Work, check, close, equal, fail, names_behind, untouched


def run_hidden_epochs(work: Work) -> tuple[np.ndarray, int, list[list[np.ndarray]], object]:
    """Hidden numbers, the batch size, the batches of three epochs, and how many numbers ``expensive`` has got."""
    untouched(work, "run_epochs", "counted", "calls")
    numbers = work.rng.choice(10_000, size=int(work.rng.integers(300, 400)), replace=False)
    size = int(work.rng.integers(5, 9))
    result = work.call("run_epochs", numbers, size, 3)
    if not isinstance(result, (list, tuple)) or len(result) != 2:
        fail("run_epochs has to return two things: the batches and how many numbers expensive has got.")
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
            fail("The data set has to consist of batches, each a one-dimensional tensor of numbers.")
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
    hints=["The steps before a cache run once, those after it in every epoch. What belongs before it?"],
)
def called_once(work: Work) -> None:
    numbers, _, epochs, calls = run_hidden_epochs(work)
    if any(sorted(whole(batches)) != sorted(int(number) for number in numbers) for batches in epochs):
        fail("Not every epoch has all the numbers.")
    if "cache" not in names_behind(work, "pipeline"):
        fail("The data set that pipeline returns has no cache.")
    equal(
        calls,
        len(numbers),
        mistakes={
            "It is called again in every epoch.": 3 * len(numbers),
            "It is never called.": 0,
        },
    )


@check(
    "order-the-steps",
    "Chance is new in each epoch",
    xp=10,
    hints=[
        "A cache keeps random results, too.",
        "How large does the buffer of a shuffle have to be?",
    ],
)
def random_again(work: Work) -> None:
    numbers, _, epochs, _ = run_hidden_epochs(work)
    values = [np.concatenate(batches or [np.zeros(0)]) for batches in epochs]
    if any(len(value) != len(numbers) for value in values):
        fail("Not every epoch has all the numbers.")
    orders = [np.floor(value) for value in values]
    added = [dict(zip(np.floor(value), value - np.floor(value), strict=True)) for value in values]
    if all(added[0][number] == added[1].get(number) for number in added[0]):
        fail("Every number has the same augmentation in each epoch: it was frozen by the cache.")
    if np.array_equal(orders[0], orders[1]):
        fail("The order is the same in each epoch.")
    members = [{frozenset(np.floor(batch)) for batch in batches} for batches in epochs]
    if members[0] == members[1]:
        fail("Whole batches are shuffled: each batch has the same members in every epoch.")
    position = {number: place for place, number in enumerate(numbers)}
    moved = np.mean([abs(place - position.get(number, place)) for place, number in enumerate(orders[0])])
    if moved < len(numbers) / 4:  # by a third of their number, when all of them are shuffled
        fail("The numbers stay close to where they were: the buffer of the shuffle is too small.")


def waits(reads: list[float], steps: list[float], ahead: float) -> list[float]:
    """How long each step waits for its element, with up to ``ahead`` elements that are ready."""
    found: list[float] = []
    taken_at: list[float] = []
    ready_at = asked_at = 0.0
    for number, (read, step) in enumerate(zip(reads, steps, strict=True)):
        free_at = taken_at[number - int(ahead)] if number >= ahead else 0.0
        ready_at = max(ready_at, free_at) + read
        taken_at.append(max(ready_at, asked_at))
        found.append(taken_at[-1] - asked_at)
        asked_at = taken_at[-1] + step
    return found


def hidden_times(work: Work) -> tuple[list[float], list[float]]:
    """Times of fast reads with a slow one now and then, and of steps, in seconds."""
    rng, count = work.rng, int(work.rng.integers(20, 30))
    slow = rng.random(count) < 0.25
    reads = np.where(slow, rng.uniform(4, 9, size=count), rng.uniform(0.2, 1, size=count))
    return reads.tolist(), rng.uniform(1, 2, size=count).tolist()


@check(
    "waits-of-steps",
    "One element ahead",
    xp=5,
    hints=["With `ahead = 1`, a read begins when the step before takes its element."],
)
def one_ahead(work: Work) -> None:
    reads, steps = hidden_times(work)
    close(
        work.call("waits_of_steps", reads, steps, 1),
        waits(reads, steps, 1),
        mistakes={
            "Each step waits for its whole read, as without a prefetch.": reads,
            "The reads never stop, although the buffer is full.": waits(reads, steps, np.inf),
            "One element more is ready than `ahead`.": waits(reads, steps, 2),
        },
    )


@check(
    "waits-of-steps",
    "Several elements ahead",
    xp=15,
    hints=[
        "Keep three lists of moments in mind: when an element is ready, asked for, and taken.",
        "A read waits for two things: the end of the read before, and a free place. Which step makes that place?",
    ],
)
def several_ahead(work: Work) -> None:
    for ahead in (3, 4):
        while True:
            reads, steps = hidden_times(work)
            mistakes = {
                "Each step waits for its whole read, as without a prefetch.": reads,
                "This is right for `ahead = 1` only.": waits(reads, steps, 1),
                "The reads never stop, although the buffer is full.": waits(reads, steps, np.inf),
                "One element more is ready than `ahead`.": waits(reads, steps, ahead + 1),
                "One element fewer is ready than `ahead`.": waits(reads, steps, ahead - 1),
            }
            if all(
                np.abs(np.subtract(*pair)).max() > 0.1
                for pair in combinations([waits(reads, steps, ahead), *mistakes.values()], 2)
            ):
                break
        close(work.call("waits_of_steps", reads, steps, ahead), waits(reads, steps, ahead), mistakes=mistakes)


def hidden_files(work: Work) -> tuple[list[list[int]], int]:
    """Files of two unique records or more, and a number of workers that does not divide that of the files."""
    workers = int(work.rng.integers(2, 5))
    count = workers * int(work.rng.integers(2, 4)) + 1
    lengths = [int(length) for length in work.rng.integers(2, 9, size=count)]
    ids = [int(number) for number in work.rng.choice(100_000, size=sum(lengths), replace=False)]
    return [[ids.pop() for _ in range(length)] for length in lengths], workers


def read_by_all(work: Work, files: list[list[int]], workers: int) -> list[list[int]]:
    """What each worker reads: something, at least, because there are two files for each."""
    untouched(work, "record_ids")
    shares = []
    for worker in range(workers):
        share = work.call("record_ids", files, workers, worker)
        if not isinstance(share, list) or not all(type(number) is int for number in share):
            fail("records_of has to return a data set of records.")
        if not share:
            fail("Worker {worker} of {workers} has nothing to read.", worker=worker, workers=workers)
        shares.append(share)
    return shares


@check(
    "share-the-files",
    "Every record is read once",
    xp=10,
    hints=["`shard(n, i)` keeps every n-th element, beginning with number i. Elements of what?"],
)
def each_once(work: Work) -> None:
    files, workers = hidden_files(work)
    shares = read_by_all(work, files, workers)
    got = [number for share in shares for number in share]
    wanted = {number for file in files for number in file}
    if missing := wanted - set(got):
        fail("{count} of {all} records are read by no worker.", count=len(missing), all=len(wanted))
    if len(got) > len(set(got)):
        fail("{count} records are read more than once.", count=len(got) - len(set(got)))
    equal(sorted(got), sorted(wanted))


@check(
    "share-the-files",
    "A file is read by one worker",
    xp=5,
    hints=["Divide up the files before you open them."],
)
def own_files(work: Work) -> None:
    files, workers = hidden_files(work)
    shares = [set(share) for share in read_by_all(work, files, workers)]
    readers = [sum(bool(share & set(file)) for share in shares) for file in files]
    if max(readers) > 1:
        fail("{count} files are opened by more than one worker.", count=sum(number > 1 for number in readers))
    if min(readers) < 1:
        fail("{count} files are opened by no worker.", count=sum(number < 1 for number in readers))


@check(
    "share-the-files",
    "A worker mixes its files",
    xp=10,
    hints=[
        "`cycle_length` of `interleave` is the number of files that are open at once, and `block_length` how many "
        "records it takes from one before it goes on to the next."
    ],
)
def mixed(work: Work) -> None:
    files, workers = hidden_files(work)
    for share in read_by_all(work, files, workers):
        own = [file for file in files if set(file) & set(share)]
        rounds = [number for turn in zip_longest(*own) for number in turn if number is not None]
        equal(
            share,
            rounds,
            mistakes={
                "The files are read one after the other: no more than one is open at a time. See `cycle_length` of "
                "`interleave`.": [number for file in own for number in file]
            },
        )
    if not names_behind(work, "records_of") & {"interleave", "choose_from_datasets"}:
        fail("The records are right, but they were read before the data set began. Mix the files with `interleave`.")
