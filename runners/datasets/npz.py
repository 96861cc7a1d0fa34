"""NumPy's ``.npz``, a zip of arrays: read within the catalog's sizes, and written reproducibly."""

from __future__ import annotations

import io
import struct
import tokenize
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from runners.datasets.catalog import Arrays, ArraySpec, Undecodable

_LONGEST_HEADER = 4096


def read_npz(path: Path, specs: dict[str, ArraySpec]) -> Arrays:
    """Read the arrays of ``specs`` and ignore anything else in the file. Nothing is ever unpickled.

    Raises:
        Undecodable: not a zip, damaged, or an array is missing or not the one of its spec.
        OSError: the file cannot be read.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            return {name: _read(archive, name, spec) for name, spec in specs.items()}
    except (zipfile.BadZipFile, zlib.error, struct.error, EOFError, NotImplementedError, RuntimeError) as e:
        raise Undecodable(f"it cannot be unpacked ({e})") from e


def _read(archive: zipfile.ZipFile, name: str, spec: ArraySpec) -> npt.NDArray[Any]:
    longest = spec.nbytes + _LONGEST_HEADER
    try:
        with archive.open(f"{name}.npy") as member:
            data = member.read(longest + 1)
    except KeyError:
        raise Undecodable(f"it does not contain {name}") from None
    if len(data) > longest:
        raise Undecodable(f"{name} unpacks to more than {longest:,} bytes")
    return parse_npy(data, name, spec)


def parse_npy(data: bytes, name: str, spec: ArraySpec) -> npt.NDArray[Any]:
    """Read an array in NumPy's own format, of the type, shape and order of ``spec``.

    Raises:
        Undecodable: it is another array, or values are missing or left over.
    """
    file = io.BytesIO(data)
    try:
        version = np.lib.format.read_magic(file)
        read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, fortran, dtype = read(file, max_header_size=_LONGEST_HEADER)
    except (ValueError, TypeError, SyntaxError, tokenize.TokenError, RecursionError, MemoryError) as e:
        raise Undecodable(f"{name} has no array header ({str(e)[:80]})") from e
    if (shape, dtype.str, fortran) != (spec.shape, np.dtype(spec.dtype).str, False):
        raise Undecodable(f"{name} is {dtype} {shape}, not {spec.dtype} {spec.shape}")
    if len(data) - file.tell() != spec.nbytes:
        raise Undecodable(f"{name} has {len(data) - file.tell():,} bytes of values, not {spec.nbytes:,}")
    return np.frombuffer(data, dtype, offset=file.tell()).reshape(shape)


def write_npz(path: Path, arrays: Arrays) -> None:
    """Write ``arrays`` in the layout of Keras's own files; lists of unequal length become object arrays."""
    with zipfile.ZipFile(path, "w") as archive:
        for name, array in arrays.items():
            packed = io.BytesIO()
            np.lib.format.write_array(packed, array, allow_pickle=array.dtype == object)
            archive.writestr(zipfile.ZipInfo(f"{name}.npy"), packed.getbuffer())
