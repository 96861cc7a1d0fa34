"""Hostile bytes are rejected with a reason, and never take more memory than the catalog allows."""

from __future__ import annotations

import contextlib
import gzip
import io
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from runners.datasets.catalog import ArraySpec, Undecodable
from runners.datasets.decode import parse_idx, read_idx_gz

SPEC = ArraySpec(file="x.gz", dtype="uint8", shape=(2, 3))
HEADER = bytes((0, 0, 8, 2, 0, 0, 0, 2, 0, 0, 0, 3))


def test_an_idx_array_is_read_in_row_order() -> None:
    assert parse_idx(HEADER + bytes(range(6)), SPEC).tolist() == [[0, 1, 2], [3, 4, 5]]


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "not an IDX file"),
        (HEADER[:11], "not an IDX file"),
        (b"\x1f\x8b" + HEADER[2:] + bytes(6), "not an IDX file"),
        (HEADER.replace(b"\x08", b"\x0d") + bytes(6), "not an IDX file"),
        (bytes((0, 0, 8, 1)) + HEADER[4:] + bytes(6), "not an IDX file"),
        (HEADER[:7] + b"\x03" + HEADER[8:] + bytes(9), r"shape is \(3, 3\), not \(2, 3\)"),
        (HEADER[:4] + b"\xff" * 8 + bytes(6), r"shape is \(4294967295, 4294967295\)"),
        (HEADER + bytes(5), "holds 5 values, not 6"),
        (HEADER + bytes(7), "holds 7 values, not 6"),
    ],
)
def test_other_bytes_are_refused(data: bytes, reason: str) -> None:
    with pytest.raises(Undecodable, match=reason):
        parse_idx(data, SPEC)


@given(st.binary(max_size=40) | st.binary(max_size=12).map(lambda tail: HEADER + tail))
def test_any_bytes_are_either_the_array_or_refused(data: bytes) -> None:
    try:
        array = parse_idx(data, SPEC)
    except Undecodable:
        assert len(data) != 18 or data[:12] != HEADER
    else:
        assert data == HEADER + array.tobytes()


@given(st.binary(max_size=200) | st.builds(gzip.compress, st.binary(max_size=60)))
def test_any_file_is_either_the_array_or_refused(data: bytes) -> None:
    with contextlib.suppress(Undecodable):
        assert read_idx_gz(io.BytesIO(data), SPEC).shape == (2, 3)


@given(flipped=st.integers(0, 10_000), bit=st.integers(0, 7))
def test_a_flipped_bit_gives_the_same_array_or_a_refusal(flipped: int, bit: int) -> None:
    good = gzip.compress(HEADER + bytes(range(6)), mtime=0)
    bad = bytearray(good)
    bad[flipped % len(good)] ^= 1 << bit
    try:
        array = read_idx_gz(io.BytesIO(bytes(bad)), SPEC)
    except Undecodable:
        return
    assert array.tobytes() == bytes(range(6))


@pytest.mark.parametrize("kept", [0, 1, 9, 10, 15, -9, -1])
def test_a_file_cut_anywhere_is_refused(kept: int) -> None:
    whole = gzip.compress(HEADER + bytes(6), mtime=0)
    with pytest.raises(Undecodable):
        read_idx_gz(io.BytesIO(whole[:kept]), SPEC)


def test_a_gzip_bomb_is_refused_without_being_unpacked() -> None:
    bomb = io.BytesIO(gzip.compress(HEADER + bytes(300_000_000), compresslevel=9))
    tracemalloc.start()
    with pytest.raises(Undecodable, match="more than the 18 bytes expected"):
        read_idx_gz(bomb, SPEC)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1_000_000


def test_the_array_shares_no_memory_with_another_read() -> None:
    data = gzip.compress(HEADER + bytes(6))
    first, second = read_idx_gz(io.BytesIO(data), SPEC), read_idx_gz(io.BytesIO(data), SPEC)
    assert not np.shares_memory(first, second)
