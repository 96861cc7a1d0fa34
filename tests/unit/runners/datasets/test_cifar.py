"""CIFAR's archives give images and labels; other archives are rejected, and no pickle runs code."""

from __future__ import annotations

import io
import os
import pickle
import tarfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from runners.datasets.catalog import Arrays, ArraySpec, Undecodable
from runners.datasets.cifar import read_cifar, write_cifar
from runners.datasets.portable_rng import PortableRandom

TEN, HUNDRED = "cifar-10-python.tar.gz", "cifar-100-python.tar.gz"
TRAIN, TEST = 10, 4


def _arrays(coarse: bool) -> Arrays:
    rolls = PortableRandom(1)
    arrays: Arrays = {}
    for part, count in (("train", TRAIN), ("test", TEST)):
        arrays[f"x_{part}"] = rolls.below(256, count * 3072).astype(np.uint8).reshape(count, 32, 32, 3)
        for name in (f"y_{part}", f"y_{part}_coarse")[: 1 + coarse]:
            arrays[name] = rolls.below(10, count).astype(np.uint8).reshape(count, 1)
    return arrays


def _specs(arrays: Arrays, file: str) -> dict[str, ArraySpec]:
    return {name: ArraySpec(file=file, dtype="uint8", shape=array.shape) for name, array in arrays.items()}


def _pack(path: Path, members: dict[str, Any]) -> Path:
    with tarfile.open(path, "w:gz") as tar:
        for name, batch in members.items():
            data = batch if isinstance(batch, bytes) else pickle.dumps(batch, 4)
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return path


@pytest.mark.parametrize("file", [TEN, HUNDRED])
def test_arrays_come_back_as_they_were(tmp_path: Path, file: str) -> None:
    arrays = _arrays(coarse=file == HUNDRED)
    write_cifar(tmp_path / file, arrays)
    found = read_cifar(tmp_path / file, _specs(arrays, file))
    assert found.keys() == arrays.keys()
    assert all(np.array_equal(found[name], array) and found[name].dtype == np.uint8 for name, array in arrays.items())


def test_the_layout_is_that_of_the_original(tmp_path: Path) -> None:
    write_cifar(tmp_path / TEN, _arrays(coarse=False))
    with tarfile.open(tmp_path / TEN) as tar:
        batches = [f"data_batch_{number}" for number in range(1, 6)]
        assert tar.getnames() == [f"cifar-10-batches-py/{name}" for name in (*batches, "test_batch")]
        member = tar.extractfile("cifar-10-batches-py/data_batch_1")
        assert member is not None
        batch = pickle.load(member)
    assert batch[b"data"].shape == (2, 3072)
    assert batch[b"data"][0, :32].tolist() == _arrays(coarse=False)["x_train"][0, 0, :, 0].tolist()
    assert batch[b"labels"] == _arrays(coarse=False)["y_train"][:2, 0].tolist()


def _text(word: bytes) -> bytes:
    return b"U" + bytes([len(word)]) + word


def _numbers(array: np.ndarray) -> bytes:
    return b"](" + b"".join(b"K" + bytes([number]) for number in array.ravel()) + b"e"


def _pickled_by_python_2(rows: bytes, count: int, labels: dict[bytes, Any]) -> bytes:
    """Protocol 2, strings as bytes, NumPy's old names: like the originals."""
    dtype = b"cnumpy\ndtype\n(U\x02u1K\x00K\x01tR(K\x03U\x01|NNN" + b"J\xff\xff\xff\xff" * 2 + b"K\x00tb"
    array = b"cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\nK\x00\x85U\x01btR"
    state = (
        b"(K\x01K"
        + bytes([count])
        + b"M\x00\x0c\x86"
        + dtype
        + b"\x89T"
        + len(rows).to_bytes(4, "little")
        + rows
        + b"tb"
    )
    items = b"".join(_text(key) + _numbers(array) for key, array in labels.items())
    return b"\x80\x02}(" + _text(b"data") + array + state + items + b"u."


def test_the_pickles_of_python_2_are_read(tmp_path: Path) -> None:
    arrays, members = _arrays(coarse=True), {}
    for part, count in (("train", TRAIN), ("test", TEST)):
        rows = arrays[f"x_{part}"].transpose(0, 3, 1, 2).tobytes()
        labels = {b"fine_labels": arrays[f"y_{part}"], b"coarse_labels": arrays[f"y_{part}_coarse"]}
        members[f"cifar-100-python/{part}"] = _pickled_by_python_2(rows, count, labels)
    found = read_cifar(_pack(tmp_path / HUNDRED, members), _specs(arrays, HUNDRED))
    assert all(np.array_equal(found[name], array) for name, array in arrays.items())


class _Evil:
    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, ("pwned",)


GOOD: dict[bytes, Any] = {
    b"data": np.zeros((TRAIN, 3072), np.uint8),
    b"fine_labels": [0] * TRAIN,
    b"coarse_labels": [0] * TRAIN,
}


@pytest.mark.parametrize(
    ("batch", "reason"),
    [
        (_Evil(), r"it names posix\.mkdir"),
        ([1], "a batch is not a dictionary"),
        (b"\x80\x04", "a batch cannot be read"),
        ({}, "its images are not 10 rows of 3072 bytes"),
        (GOOD | {b"data": np.zeros((TRAIN, 3071), np.uint8)}, "its images"),
        (GOOD | {b"data": np.zeros((TRAIN, 3072), np.int16)}, "its images"),
        (GOOD | {b"data": np.array([[{}] * 3072] * TRAIN)}, "its images"),
        (GOOD | {b"fine_labels": [0] * 9}, "its labels are not 10 numbers below 256"),
        (GOOD | {b"fine_labels": [256] * 10}, "its labels"),
        (GOOD | {b"coarse_labels": ["0"] * 10}, "its labels"),
    ],
)
def test_another_batch_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, batch: Any, reason: str) -> None:
    monkeypatch.chdir(tmp_path)
    test = {key: value[:TEST] for key, value in GOOD.items()}
    path = _pack(tmp_path / HUNDRED, {"cifar-100-python/train": batch, "cifar-100-python/test": test})
    with pytest.raises(Undecodable, match=reason):
        read_cifar(path, _specs(_arrays(coarse=True), HUNDRED))
    assert not Path("pwned").exists()


@pytest.mark.parametrize("kept", [0, 5, 100, 5000])
def test_a_file_cut_anywhere_is_refused(tmp_path: Path, kept: int) -> None:
    arrays = _arrays(coarse=False)
    path = tmp_path / TEN
    write_cifar(path, arrays)
    path.write_bytes(path.read_bytes()[:kept])
    with pytest.raises(Undecodable):
        read_cifar(path, _specs(arrays, TEN))


def test_a_member_that_is_far_too_large_ends_the_reading(tmp_path: Path) -> None:
    path = _pack(tmp_path / TEN, {"cifar-10-batches-py/readme.html": bytes(20_000_000)})
    with pytest.raises(Undecodable, match="it holds more than expected"):
        read_cifar(path, _specs(_arrays(coarse=False), TEN))
