"""An npz has the arrays in the catalog or is rejected, and nothing in it is ever unpickled."""

from __future__ import annotations

import io
import pickle
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from runners.datasets.catalog import Arrays, ArraySpec, Undecodable
from runners.datasets.npz import parse_npy, read_npz, write_npz

SPECS = {
    "x": ArraySpec(file="a.npz", dtype="float32", shape=(2, 3)),
    "y": ArraySpec(file="a.npz", dtype="uint8", shape=(2,)),
}
GOOD: Arrays = {"x": np.arange(6, dtype=np.float32).reshape(2, 3), "y": np.array([7, 8], np.uint8)}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "a.npz"


@pytest.mark.parametrize(
    "write", [lambda path: write_npz(path, GOOD), lambda path: np.savez_compressed(path, allow_pickle=True, **GOOD)]
)
def test_arrays_come_back_as_they_were(path: Path, write: Callable[[Path], None]) -> None:
    write(path)
    found = read_npz(path, SPECS)
    assert {name: array.tolist() for name, array in found.items()} == {n: a.tolist() for n, a in GOOD.items()}
    assert found["x"].dtype == np.float32


def test_the_same_arrays_make_the_same_file(path: Path, tmp_path: Path) -> None:
    write_npz(path, GOOD)
    write_npz(tmp_path / "again.npz", GOOD)
    assert path.read_bytes() == (tmp_path / "again.npz").read_bytes()


@pytest.mark.parametrize(
    ("arrays", "reason"),
    [
        ({"x": GOOD["x"]}, "it does not contain y"),
        (GOOD | {"x": GOOD["x"].astype(np.float64)}, r"x is float64 \(2, 3\), not float32 \(2, 3\)"),
        (GOOD | {"x": GOOD["x"].T}, r"x is float32 \(3, 2\)"),
        (GOOD | {"x": np.asfortranarray(GOOD["x"])}, r"x is float32 \(2, 3\)"),
        (GOOD | {"y": np.array([[1], [2, 3]], object)}, "y is object"),
        (GOOD | {"y": np.zeros(100_000, np.uint8)}, "y unpacks to more than 4,098 bytes"),
    ],
)
def test_other_arrays_are_refused(path: Path, arrays: Arrays, reason: str) -> None:
    np.savez(path, allow_pickle=True, **arrays)
    with pytest.raises(Undecodable, match=reason):
        read_npz(path, SPECS)


def test_a_member_that_is_a_pickle_is_not_opened(path: Path) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("x.npy", pickle.dumps(print))
        archive.writestr("y.npy", b"")
    with pytest.raises(Undecodable, match="x has no array header"):
        read_npz(path, SPECS)


@pytest.mark.parametrize("kept", [0, 10, 200, -30])
def test_a_file_cut_anywhere_is_refused(path: Path, kept: int) -> None:
    write_npz(path, GOOD)
    path.write_bytes(path.read_bytes()[:kept])
    with pytest.raises(Undecodable):
        read_npz(path, SPECS)


@given(st.binary(max_size=200), st.integers(0, 160))
def test_any_bytes_are_either_an_array_or_refused(tail: bytes, kept: int) -> None:
    good = io.BytesIO()
    np.save(good, GOOD["x"])
    try:
        array = parse_npy(good.getvalue()[:kept] + tail, "x", SPECS["x"])
    except Undecodable:
        return
    assert array.shape == (2, 3)


@pytest.mark.parametrize("header", [b"(" * 4000, b"[0," * 1300, b"'" * 4000, b"{'\0': 1}", b"-" * 4000])
def test_a_header_that_is_no_python_is_refused(header: bytes) -> None:
    data = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header
    with pytest.raises(Undecodable, match="x has no array header"):
        parse_npy(data, "x", SPECS["x"])


def test_values_that_are_missing_or_left_over_are_refused() -> None:
    good = io.BytesIO()
    np.save(good, GOOD["x"])
    for data, count in ((good.getvalue()[:-1], 23), (good.getvalue() + b"?", 25)):
        with pytest.raises(Undecodable, match=f"x has {count} bytes of values, not 24"):
            parse_npy(data, "x", SPECS["x"])
