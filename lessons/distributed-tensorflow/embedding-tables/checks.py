"""Checks of "Embedding tables on servers": messages to servers of the checker's own, and blocks of a hidden load."""

from __future__ import annotations

import numpy as np

from runners.checks import Work, check, close, equal, fail

ID_BYTES, NUMBER_BYTES = 8, 4
ALLOWED = 0.02


def sizes_of(rows: int, servers: int) -> list[int]:
    """How many rows each server has: the first ones have one more."""
    return [rows // servers + (server < rows % servers) for server in range(servers)]


def place(ids: np.ndarray, rows: int, servers: int) -> tuple[np.ndarray, np.ndarray]:
    starts = np.cumsum([0, *sizes_of(rows, servers)[:-1]])
    server = np.searchsorted(starts, ids, side="right") - 1
    return server, ids - starts[server]


def hidden_batch(work: Work) -> tuple[np.ndarray, np.ndarray, int, int]:
    """Ids of which most come more than once and in no order, their gradients, and a table that can't be cut evenly."""
    servers = int(work.rng.integers(3, 6))
    # Two servers or more have a row less, or blocks of a size that is rounded up would be right.
    rows = servers * int(work.rng.integers(8, 14)) + int(work.rng.integers(1, servers - 1))
    different = work.rng.choice(rows, size=2 * servers, replace=False)
    # Rows of each server, the last row among them: it is where a wrong remainder shows.
    ends = np.cumsum(sizes_of(rows, servers)) - 1
    different = np.unique(np.concatenate([different, ends]))
    ids = work.rng.permutation(np.concatenate([different, work.rng.choice(different, size=len(different))]))
    gradients = np.array(work.rng.uniform(1.0, 3.0, size=(len(ids), 4)), dtype="float32")
    return ids, gradients, rows, servers


def arrays_of(value: object, servers: int, function: str) -> list[np.ndarray]:
    """What ``ask`` returns, as arrays of whole numbers."""
    if not isinstance(value, list | tuple) or len(value) != servers:
        fail("{function} has to return a list with an entry for each server.", function=function)
    arrays = []
    for entry in value:
        array = np.asarray(entry) if isinstance(entry, np.ndarray | list | tuple) else np.array("")
        if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
            fail("The rows of a server have to be an array of whole numbers.")
        arrays.append(array.astype(np.int64))
    return arrays


def check_rows(asked: list[np.ndarray], ids: np.ndarray, rows: int, servers: int) -> None:
    """Fail unless each server gets the rows that the batch needs of it, each once."""
    different = np.unique(ids)

    def per_server(values: np.ndarray, server: np.ndarray) -> list[list[int]]:
        return [sorted(values[server == number].tolist()) for number in range(servers)]

    server, row = place(different, rows, servers)
    every_server, every_row = place(ids, rows, servers)
    base = rows // servers
    equal(
        [sorted(array.tolist()) for array in asked],
        per_server(row, server),
        mistakes={
            "A row that comes more than once in the batch is in the message more than once.": per_server(
                every_row, every_server
            ),
            "These are rows of the whole table: each server numbers the rows of its piece from 0.": per_server(
                different, server
            ),
            "The rows are dealt out in turn. TensorFlow cuts the table into blocks.": per_server(
                different // servers, different % servers
            ),
            "The first servers have one row more if the table can't be cut evenly.": per_server(
                different % base, np.minimum(different // base, servers - 1)
            ),
            "Each server is asked for all of its rows.": [list(range(size)) for size in sizes_of(rows, servers)],
        },
    )


def messages_of(work: Work, batch: tuple[np.ndarray, np.ndarray, int, int]) -> list[tuple[np.ndarray, np.ndarray]]:
    """What ``send`` returns, with the shapes that a server can use."""
    ids, gradients, rows, servers = batch
    sent = work.call("send", ids, gradients, rows, servers)
    if not isinstance(sent, list | tuple) or len(sent) != servers:
        fail("{function} has to return a list with an entry for each server.", function="send")
    if not all(isinstance(pair, list | tuple) and len(pair) == 2 for pair in sent):
        fail("send has to return a pair for each server: the rows, and the gradient of each.")
    row_arrays = arrays_of([pair[0] for pair in sent], servers, "send")
    messages = []
    for array, (_, values) in zip(row_arrays, sent, strict=True):
        got = np.asarray(values) if isinstance(values, np.ndarray | list | tuple) else np.array("")
        if got.dtype.kind not in "fiu" or got.size != array.size * gradients.shape[1]:
            fail("send has to return as many gradients as rows for each server, of {width} numbers each.", width=4)
        messages.append((array, got.reshape(array.size, gradients.shape[1])))
    for size, (array, _) in zip(sizes_of(rows, servers), messages, strict=True):
        if array.size and not 0 <= array.min() <= array.max() < size:
            fail("A server gets a row that it doesn't have: each numbers the rows of its piece from 0.")
    return messages


@check(
    "touched-rows",
    "Each server is asked for its own rows, each once",
    xp=10,
    hints=["`np.unique` gives each id once.", "`place` returns two arrays: the servers, and the rows of their pieces."],
)
def asks(work: Work) -> None:
    ids, _, rows, servers = hidden_batch(work)
    check_rows(arrays_of(work.call("ask", ids, rows, servers), servers, "ask"), ids, rows, servers)
    few = ids[place(ids, rows, servers)[0] != 1]
    check_rows(arrays_of(work.call("ask", few, rows, servers), servers, "ask"), few, rows, servers)


@check(
    "touched-rows",
    "The table is that of one machine after a step",
    xp=10,
    hints=[
        "The gradients of a row are added up before they are sent.",
        "`np.add.at` adds to a position as often as it comes.",
    ],
)
def same_table(work: Work) -> None:
    batch = ids, gradients, rows, servers = hidden_batch(work)
    table = np.array(work.rng.normal(size=(rows, 4)), dtype="float64")
    server, _ = place(np.arange(rows), rows, servers)

    def adagrad(sums: np.ndarray) -> np.ndarray:
        return table - 0.5 * sums / np.sqrt(4 + sums**2)

    def added(values: np.ndarray) -> np.ndarray:
        sums = np.zeros_like(table)
        np.add.at(sums, ids, values)
        return sums

    counts = np.bincount(ids, minlength=rows)[:, None]
    last = np.zeros_like(table)
    last[ids] = gradients
    pieces = [table[server == number] for number in range(servers)]
    for piece, (rows_sent, values) in zip(pieces, messages_of(work, batch), strict=True):
        squares = np.full_like(piece, 4)
        np.add.at(squares, rows_sent, values.astype("float64") ** 2)
        np.subtract.at(piece, rows_sent, 0.5 * values / np.sqrt(squares[rows_sent]))
    each = table - 0.5 * added(gradients) / np.sqrt(4 + added(gradients**2))
    close(
        np.concatenate(pieces),
        adagrad(added(gradients)),
        mistakes={
            "The server has squared each gradient of a row by itself: send their sum.": each,
            "Of a row that comes more than once, one gradient has arrived.": adagrad(last),
            "The gradients of a row are averaged. The gradient of a weight is the sum over all of its uses.": adagrad(
                added(gradients) / np.maximum(counts, 1)
            ),
            "Nothing has moved: no gradient has arrived.": table,
        },
    )


@check(
    "touched-rows",
    "Only touched rows cross the network",
    xp=10,
    hints=["Count: for each different id, its number twice, its row, and its gradient."],
)
def few_bytes(work: Work) -> None:
    batch = ids, gradients, rows, servers = hidden_batch(work)
    width = gradients.shape[1]
    asked = arrays_of(work.call("ask", ids, rows, servers), servers, "ask")
    check_rows(asked, ids, rows, servers)
    sent = messages_of(work, batch)
    moved = sum(array.size for array in asked) + sum(array.size for array, _ in sent)
    needed = 2 * len(np.unique(ids))
    if moved > needed:
        fail(
            "The network carries {got} bytes, and {wanted} are enough.",
            got=moved * (ID_BYTES + width * NUMBER_BYTES),
            wanted=needed * (ID_BYTES + width * NUMBER_BYTES),
        )
    check_rows([array for array, _ in sent], ids, rows, servers)


def hidden_load(work: Work, servers: int) -> np.ndarray:
    """How often each row was needed, with no row above two thirds of what a server has to do."""
    rows = servers * int(work.rng.integers(60, 80)) + int(work.rng.integers(1, servers))
    popularity = 1 / np.arange(3, rows + 3) ** float(work.rng.uniform(1.0, 1.2))
    return np.floor(20_000 * popularity).astype(int)


def load_of(numbers: np.ndarray, counts: np.ndarray, servers: int) -> np.ndarray:
    server, _ = place(numbers, len(counts), servers)
    return np.bincount(server, weights=counts, minlength=servers)


def excess(numbers: np.ndarray, counts: np.ndarray, servers: int) -> float:
    """How far the busiest server is above the mean."""
    load = load_of(numbers, counts, servers)
    return float(load.max() / load.mean() - 1)


def check_balance(work: Work, counts: np.ndarray, servers: int) -> None:
    got = work.call("renumber", counts, servers)
    if isinstance(got, list | tuple):
        got = np.asarray(got)
    if not isinstance(got, np.ndarray) or got.shape != counts.shape or got.dtype.kind not in "iuf":
        fail("renumber has to return an array with a new number for each row.")
    if not np.array_equal(np.sort(got), np.arange(len(counts))):
        fail("Each number from 0 to {last} has to be used once.", last=len(counts) - 1)
    numbers = got.astype(np.int64)
    above = excess(numbers, counts, servers)
    if above <= ALLOWED:
        return
    if excess(np.argsort(numbers), counts, servers) <= ALLOWED:
        fail("These are the rows in their new order. Return the new number of each row.")
    if excess(numbers // servers + numbers % servers * (len(counts) // servers), counts, servers) <= ALLOWED:
        fail("That would be balanced if rows were dealt out in turn. TensorFlow cuts the table into blocks.")
    fail(
        "The busiest server has {above}% more to do than the mean, and {wanted}% are allowed.",
        above=round(100 * above, 1),
        wanted=round(100 * ALLOWED),
    )


@check(
    "renumber",
    "Sorted by popularity",
    xp=10,
    hints=[
        "Which rows are the hardest to place? Begin with those.",
        "Give each row to the server that has the least to do, as long as its block has room.",
    ],
)
def sorted_rows(work: Work) -> None:
    servers = int(work.rng.integers(3, 7))
    check_balance(work, hidden_load(work, servers), servers)


@check("renumber", "In no order", xp=10, hints=["Does your function look at the counts, or at the order of the rows?"])
def mixed_rows(work: Work) -> None:
    servers = int(work.rng.integers(3, 7))
    check_balance(work, work.rng.permutation(hidden_load(work, servers)), servers)


@check(
    "renumber",
    "Popular rows in a pattern",
    xp=5,
    hints=["Rows that are as far apart as there are servers may all be popular."],
)
def in_a_pattern(work: Work) -> None:
    servers = int(work.rng.integers(3, 7))
    counts = hidden_load(work, servers)
    order = np.argsort(np.arange(len(counts)) % servers, kind="stable")  # every n-th row first
    pattern = np.empty_like(counts)
    pattern[order] = counts
    check_balance(work, pattern, servers)
