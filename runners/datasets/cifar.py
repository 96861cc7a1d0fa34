"""CIFAR's own files: a tar of pickles, each a dictionary of images as rows of red, then green, then blue.

A pickle can name any function. This reader accepts only the three names that an array needs.
"""

from __future__ import annotations

import gzip
import io
import pickle
import tarfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from runners.datasets.catalog import Arrays, ArraySpec, Undecodable

_SIDE, _COLOURS = 32, 3
_ROW = _SIDE * _SIDE * _COLOURS
_ROOM = 16_000_000
"""Bytes that a batch may hold in addition to its images: names and labels."""
_MOST_MEMBERS = 20
_PROTOCOL = 4
"""The last pickle protocol that builds arrays from those three names, and the first that can hold bytes directly."""


@dataclass(frozen=True, slots=True)
class Layout:
    """Where the arrays are: members of the tar by part, and keys of labels by the array's name after ``y_train``."""

    folder: str
    members: dict[str, tuple[str, ...]]
    labels: dict[str, bytes]


_LAYOUTS = {
    "cifar-10-python.tar.gz": Layout(
        "cifar-10-batches-py",
        {"train": tuple(f"data_batch_{number}" for number in range(1, 6)), "test": ("test_batch",)},
        {"": b"labels"},
    ),
    "cifar-100-python.tar.gz": Layout(
        "cifar-100-python",
        {"train": ("train",), "test": ("test",)},
        {"": b"fine_labels", "_coarse": b"coarse_labels"},
    ),
}


def read_cifar(path: Path, specs: dict[str, ArraySpec]) -> Arrays:
    """Read images as (count, 32, 32, 3) and labels as (count, 1), both uint8.

    Raises:
        Undecodable: not such a tar, damaged, a member is missing, or an array is not the one of its spec.
        OSError: the file cannot be read.
    """
    layout = _LAYOUTS[path.name]
    wanted = {f"{layout.folder}/{member}" for part in layout.members.values() for member in part}
    longest = max(spec.nbytes for spec in specs.values()) + _ROOM
    try:
        batches = {name: _unpickle(data) for name, data in _members(path, wanted, longest)}
    except (tarfile.TarError, gzip.BadGzipFile, zlib.error, EOFError) as e:
        raise Undecodable(f"it cannot be unpacked ({e})") from e
    arrays: Arrays = {}
    for part, members in layout.members.items():
        found = [batches.get(f"{layout.folder}/{member}", {}) for member in members]
        arrays[f"x_{part}"] = _images([batch.get(b"data") for batch in found], specs[f"x_{part}"])
        for suffix, key in layout.labels.items():
            arrays[f"y_{part}{suffix}"] = _labels([batch.get(key) for batch in found], specs[f"y_{part}{suffix}"])
    return arrays


def _members(path: Path, wanted: set[str], longest: int) -> Iterator[tuple[str, bytes]]:
    with tarfile.open(path, "r|gz") as tar:
        for number, member in enumerate(tar):
            if number == _MOST_MEMBERS or member.size > longest:
                raise Undecodable("it holds more than expected")
            if member.name in wanted and (file := tar.extractfile(member)) is not None:
                yield member.name, file.read()


class _ArraysOnly(pickle.Unpickler):
    """Unpickles NumPy arrays, containers, numbers and strings, and rejects everything else."""

    def find_class(self, module: str, name: str) -> Any:
        if module in ("numpy", "numpy.core.multiarray", "numpy._core.multiarray"):
            if name in ("ndarray", "dtype"):
                return getattr(np, name)
            if name == "_reconstruct":
                return _reconstruct
        raise Undecodable(f"it names {module[:40]}.{name[:40]}")


def _reconstruct(_: type, shape: tuple[int, ...], dtype: bytes) -> npt.NDArray[Any]:
    """Create the empty array that a pickled array starts as; its content follows."""
    return np.ndarray((0,), np.int8)


def _unpickle(data: bytes) -> dict[bytes, Any]:
    try:
        batch = _ArraysOnly(io.BytesIO(data), encoding="bytes").load()
    except Undecodable:
        raise
    except Exception as e:  # a damaged pickle can fail in any way
        raise Undecodable(f"a batch cannot be read ({type(e).__name__})") from e
    if not isinstance(batch, dict):
        raise Undecodable("a batch is not a dictionary")
    return batch


def _images(parts: list[Any], spec: ArraySpec) -> npt.NDArray[np.uint8]:
    count = spec.shape[0] // len(parts)
    for rows in parts:
        if not isinstance(rows, np.ndarray) or rows.dtype != np.uint8 or rows.shape != (count, _ROW):
            raise Undecodable(f"its images are not {count} rows of {_ROW} bytes in each batch")
    images = np.empty(spec.shape, np.uint8)
    for at, rows in enumerate(parts):
        images[at * count : (at + 1) * count] = rows.reshape(-1, _COLOURS, _SIDE, _SIDE).transpose(0, 2, 3, 1)
    return images


def _labels(parts: list[Any], spec: ArraySpec) -> npt.NDArray[np.uint8]:
    labels = [label for part in parts if isinstance(part, list) for label in part]
    if len(labels) != spec.shape[0] or not all(isinstance(label, int) and 0 <= label < 256 for label in labels):
        raise Undecodable(f"its labels are not {spec.shape[0]} numbers below 256")
    return np.array(labels, np.uint8).reshape(spec.shape)


def write_cifar(path: Path, arrays: Arrays) -> None:
    """Write images and labels in the layout of CIFAR's own archive of this name; uncompressed, for speed."""
    layout = _LAYOUTS[path.name]
    with gzip.GzipFile(path, "wb", compresslevel=0, mtime=0) as packed, tarfile.open(fileobj=packed, mode="w") as tar:
        for part, members in layout.members.items():
            count = len(arrays[f"x_{part}"]) // len(members)
            for at, member in enumerate(members):
                some = slice(at * count, (at + 1) * count)
                rows = arrays[f"x_{part}"][some].transpose(0, 3, 1, 2).reshape(-1, _ROW)
                batch = {key: arrays[f"y_{part}{s}"][some].ravel().tolist() for s, key in layout.labels.items()}
                _add(tar, f"{layout.folder}/{member}", {b"data": rows, **batch})


def _add(tar: tarfile.TarFile, name: str, batch: dict[bytes, Any]) -> None:
    data = pickle.dumps(batch, _PROTOCOL)
    member = tarfile.TarInfo(name)
    member.size, member.mode = len(data), 0o644
    tar.addfile(member, io.BytesIO(data))
