"""Decodes files into arrays, and encodes the arrays of stand-ins as files.

Every byte is treated as hostile: sizes are bounded by the catalog before anything is unpacked.
"""

from __future__ import annotations

import gzip
import zlib
from pathlib import Path
from typing import BinaryIO

import numpy as np
import numpy.typing as npt

from runners.datasets.catalog import Arrays, ArraySpec, DataSet, Undecodable, UndecodableFile
from runners.datasets.cifar import read_cifar, write_cifar
from runners.datasets.npz import read_npz, write_npz

_IDX_UBYTE = 8
"""IDX's code for unsigned bytes, the only type the known files use."""


def decode(data_set: DataSet, folder: Path) -> Arrays:
    """Read every array of ``data_set`` from the files in ``folder``.

    Raises:
        UndecodableFile: a file does not contain what the catalog says.
        OSError: a file cannot be read.
    """
    arrays: Arrays = {}
    for file in dict.fromkeys(spec.file for spec in data_set.arrays.values()):
        specs = {name: spec for name, spec in data_set.arrays.items() if spec.file == file}
        try:
            arrays |= _READERS[data_set.format](folder / file, specs)
        except Undecodable as e:
            raise UndecodableFile(file, str(e)) from e
    return arrays


def encode(data_set: DataSet, file: str, arrays: Arrays, path: Path) -> None:
    """Write a stand-in's ``arrays`` to ``path``, in the format of the data set's own ``file``.

    Raises:
        OSError: the disk is full, or the path is not writable.
    """
    held = {name: arrays[name] for name, spec in data_set.arrays.items() if spec.file == file}
    _WRITERS[data_set.format](path, held)


def read_idx_gz(file: BinaryIO, spec: ArraySpec) -> npt.NDArray[np.uint8]:
    """Unpack a gzip file and read the IDX array in it; never holds more than a header and the array in memory.

    Raises:
        Undecodable: not gzip, truncated, longer than declared (such as a gzip bomb), or not the array of ``spec``.
    """
    longest = 4 + 4 * len(spec.shape) + spec.nbytes
    try:
        with gzip.open(file) as unpacked:
            data = unpacked.read(longest + 1)
    except (gzip.BadGzipFile, zlib.error, EOFError) as e:
        raise Undecodable(f"it cannot be unpacked ({e})") from e
    if len(data) > longest:
        raise Undecodable(f"it unpacks to more than the {longest:,} bytes expected")
    return parse_idx(data, spec)


def parse_idx(data: bytes, spec: ArraySpec) -> npt.NDArray[np.uint8]:
    """Read an array in IDX format: two zero bytes, type, number of dimensions, the dimensions (big-endian), the values.

    Raises:
        Undecodable: the header is not that of ``spec``, or values are missing or left over.
    """
    header = 4 + 4 * len(spec.shape)
    if len(data) < header or data[:4] != bytes((0, 0, _IDX_UBYTE, len(spec.shape))):
        raise Undecodable(f"it is not an IDX file of {len(spec.shape)}-dimensional bytes")
    shape = tuple(int.from_bytes(data[at : at + 4], "big") for at in range(4, header, 4))
    if shape != spec.shape:
        raise Undecodable(f"it says its shape is {shape}, not {spec.shape}")
    if len(data) != header + spec.nbytes:
        raise Undecodable(f"it holds {len(data) - header:,} values, not {spec.nbytes:,}")
    return np.frombuffer(data, np.uint8, offset=header).reshape(shape)


def _read_idx(path: Path, specs: dict[str, ArraySpec]) -> Arrays:
    with path.open("rb") as file:
        return {name: read_idx_gz(file, spec) for name, spec in specs.items()}


def _write_idx(path: Path, arrays: Arrays) -> None:
    (array,) = arrays.values()
    shape = b"".join(size.to_bytes(4, "big") for size in array.shape)
    with gzip.GzipFile(path, "wb", compresslevel=1, mtime=0) as file:
        file.write(bytes((0, 0, _IDX_UBYTE, array.ndim)) + shape)
        file.write(np.ascontiguousarray(array).data)


_READERS = {"idx.gz": _read_idx, "npz": read_npz, "cifar.tar.gz": read_cifar}
_WRITERS = {"idx.gz": _write_idx, "npz": write_npz, "cifar.tar.gz": write_cifar}
