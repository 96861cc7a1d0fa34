"""The memory in which a kernel keeps its output: whatever happens in between, each byte is read once."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runners.wire import journal
from runners.wire.journal import KEPT_BYTES, StreamJournal


@pytest.fixture
def stdout() -> Iterator[StreamJournal]:
    """The journal of standard output."""
    memory = journal.create()
    yield journal.open_streams(memory)["stdout"]
    os.close(memory)


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    """A pipe, its read end first."""
    ends = os.pipe()
    yield ends
    for end in ends:
        os.close(end)


def test_two_processes_see_the_same_bytes_of_each_stream() -> None:
    memory = journal.create()
    here, there = journal.open_streams(memory), journal.open_streams(memory)
    os.close(memory)
    here["stdout"].append(b"out")
    here["stderr"].append(b"error")
    assert [there[name].after(0) for name in journal.STREAMS] == [(b"out", 0), (b"error", 0)]


def test_its_size_cannot_be_changed() -> None:
    memory = journal.create()
    for size in (0, 2**30):
        with pytest.raises(PermissionError):
            os.ftruncate(memory, size)
    os.close(memory)


def test_what_comes_after_a_position_is_read(stdout: StreamJournal) -> None:
    stdout.append(b"heard")
    heard = stdout.end
    stdout.append(b", not heard")
    assert stdout.after(heard) == (b", not heard", 0)
    assert stdout.after(stdout.end) == stdout.after(10**30) == (b"", 0)


@given(st.lists(st.sampled_from([1, 1000, KEPT_BYTES // 3, KEPT_BYTES - 1, KEPT_BYTES + 7]), min_size=3, max_size=6))
def test_of_more_than_it_keeps_the_latest_are_read_and_the_others_counted(sizes: list[int]) -> None:
    memory = journal.create()
    stdout = journal.open_streams(memory)["stdout"]
    os.close(memory)
    pieces = [bytes([65 + n]) * size for n, size in enumerate(sizes)]
    for piece in pieces:
        stdout.append(piece)
    whole = b"".join(pieces)
    assert stdout.after(0) == (whole[-KEPT_BYTES:], max(0, len(whole) - KEPT_BYTES))
    assert stdout.after(len(whole) - 1) == (whole[-1:], 0)


def test_staged_bytes_are_read_until_they_are_written(stdout: StreamJournal, pipe: tuple[int, int]) -> None:
    for text in (b"a longer first", b"then"):
        before = stdout.end
        os.write(pipe[1], text)
        assert stdout.stage(pipe[0]) == text
        assert stdout.after(before) == (text, 0), "the program ended before it wrote them"
        stdout.append(b"print")
        assert stdout.after(before) == (b"print" + text, 0)
        stdout.append(text, taken=len(text))
        assert stdout.after(before) == (b"print" + text, 0), "they were written, and are still staged"


@pytest.mark.parametrize("staged", [False, True])
def test_the_end_of_the_kernel_settles_what_is_in_its_pipe(
    stdout: StreamJournal, pipe: tuple[int, int], staged: bool
) -> None:
    os.write(pipe[1], b"first ")
    if staged:
        stdout.stage(pipe[0])
    os.write(pipe[1], b"last")
    stdout.settle(pipe[0])
    assert stdout.after(0) == (b"first last", 0)


def test_the_next_kernel_begins_with_nothing(stdout: StreamJournal, pipe: tuple[int, int]) -> None:
    stdout.append(b"printed")
    stdout.nonce = "0badcafe"
    os.write(pipe[1], b"staged")
    stdout.stage(pipe[0])
    stdout.begin()
    assert (stdout.after(0), stdout.end, stdout.nonce) == ((b"", 0), 0, "")
