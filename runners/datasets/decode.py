"""From files to arrays.

Every byte is treated as hostile: sizes are bounded by the catalog before anything is unpacked.
"""

from __future__ import annotations

import gzip
import zlib
from pathlib import Path
from typing import BinaryIO

import numpy as np
import numpy.typing as npt

from runners.datasets.catalog import Arrays, ArraySpec, DataSet

_IDX_UBYTE = 8
"""IDX's code for unsigned bytes, the only type the known files use."""


class Undecodable(ValueError):
    """The bytes are not what the catalog says. ``str()`` says what is wrong, without naming the file."""


def decode(data_set: DataSet, folder: Path) -> Arrays:
    """Read every array of ``data_set`` from the files in ``folder``.

    Raises:
        UndecodableFile: a file holds something else than the catalog says.
        OSError: a file cannot be read.
    """
    arrays: Arrays = {}
    for name, spec in data_set.arrays.items():
        try:
            with (folder / spec.file).open("rb") as file:
                arrays[name] = read_idx_gz(file, spec)
        except Undecodable as e:
            raise UndecodableFile(spec.file, str(e)) from e
    return arrays


class UndecodableFile(Undecodable):
    """``file`` cannot be decoded."""

    def __init__(self, file: str, detail: str) -> None:
        super().__init__(detail)
        self.file = file


def read_idx_gz(file: BinaryIO, spec: ArraySpec) -> npt.NDArray[np.uint8]:
    """Unpack a gzip file and read the IDX array in it; never holds more than the array's size and a header.

    Raises:
        Undecodable: not gzip, broken off, longer than declared (a gzip bomb ends here), or not the array of ``spec``.
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
