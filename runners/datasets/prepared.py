"""Prepared copies: unpacked or made once by the runner, used by every sandbox.

Unpacking Fashion-MNIST takes half a second and 55 MB a session, making its stand-in as long. A prepared copy is one
raw file an array, which thirty sessions map at once: the pages are shared, and private only where a learner writes. Of
a stand-in whose files Keras itself reads, the files are made.

A record lists the stamps of the prepared files and of the cache files they came from. Whatever does not match the
record, because a file was replaced, damaged or copied, is simply not used: the slow way is always right. Files are
replaced by renaming and the record comes last, so a reader at the same moment sees a mismatch, never a mixture.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from pydantic import BaseModel, ConfigDict, ValidationError

from runners.datasets.cache import Cache, CacheState, DamagedDataSet, FileStamp
from runners.datasets.catalog import Arrays, ArraySpec, Catalog, DataSet, read_catalog
from runners.datasets.standins import EDITION, generate, write_file

_RECORD = "record.json"
_SPARE = 5
"""A copy is made only where so many times its size is free."""


class Record(BaseModel):
    """What lies in a prepared folder: arrays by their names, or files.

    ``origin`` is ``real`` or ``stand-in N``, N the edition of the generators.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    origin: str
    sources: dict[str, FileStamp]
    arrays: dict[str, FileStamp]


@dataclass(frozen=True, slots=True)
class Readiness:
    """What sandboxes get for one data set, and what there is to say about it."""

    name: str
    state: CacheState
    detail: str
    prepared: bool


def prepare(cache_dir: Path, catalog: Catalog | None = None) -> list[Readiness]:
    """Make prepared copies where they are missing or stale, in the catalog's order: up to four seconds for each.

    Never raises for a damaged data set or a cache that cannot be written: sessions then go the slow way, or get the
    refusal; the answer says so.
    """
    cache, catalog = Cache(cache_dir), catalog or read_catalog()
    return [_prepare_one(cache, data_set) for data_set in catalog.values()]


def prepared_file(cache: Cache, data_set: DataSet, file: str) -> Path | None:
    """The stand-in's file as it was made by ``prepare``, or None: the data set is real, or not prepared."""
    folder, path = _folder(cache, data_set), _folder(cache, data_set) / file
    try:
        record = Record.model_validate_json((folder / _RECORD).read_bytes())
        if cache.present(data_set) or record.origin != _origin(cache, data_set):
            return None
        return path if FileStamp.of(path.stat()) == record.arrays[file] else None
    except (OSError, ValidationError, KeyError):
        return None


def map_prepared(cache: Cache, data_set: DataSet) -> Arrays | None:
    """Map the prepared arrays, private and writable, or None if there are none that match the cache as it is now."""
    folder = _folder(cache, data_set)
    try:
        record = Record.model_validate_json((folder / _RECORD).read_bytes())
        if record.origin != _origin(cache, data_set) or record.sources != cache.stamps(data_set):
            return None
        return {name: _map(folder / name, spec, record.arrays[name]) for name, spec in data_set.arrays.items()}
    except (OSError, ValidationError, KeyError, _Stale):
        return None


class _Stale(Exception):
    """A file is not the one the record describes."""


def _prepare_one(cache: Cache, data_set: DataSet) -> Readiness:
    state = CacheState.whole if cache.present(data_set) else CacheState.absent
    if _is_prepared(cache, data_set):
        return Readiness(data_set.name, state, "", prepared=True)
    try:
        before = cache.stamps(data_set)
        if data_set.reader == "keras" and state is CacheState.whole:
            cache.verify(data_set)
            return Readiness(data_set.name, state, "", prepared=True)
        if shutil.disk_usage(cache.root).free < _SPARE * data_set.nbytes:
            return Readiness(data_set.name, state, f"too little room in {cache.root}", prepared=False)
        arrays = cache.read(data_set) if state is CacheState.whole else generate(data_set)
        record = Record(origin=_origin(cache, data_set), sources=before, arrays={})
        if data_set.reader == "keras":
            _write_files(_folder(cache, data_set), record, data_set, arrays)
        else:
            _write(_folder(cache, data_set), record, arrays)
    except DamagedDataSet as e:
        return Readiness(data_set.name, CacheState.damaged, str(e), prepared=False)
    except OSError as e:
        return Readiness(data_set.name, state, f"{cache.root} cannot be written ({e.strerror})", prepared=False)
    return Readiness(data_set.name, state, "", prepared=True)


def _is_prepared(cache: Cache, data_set: DataSet) -> bool:
    if data_set.reader == "keras":
        return all(prepared_file(cache, data_set, file) for file in data_set.files)
    return map_prepared(cache, data_set) is not None


def _make(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for above in (folder, folder.parent):
        above.chmod(0o755)  # sandboxes read it as another user


def _write_files(folder: Path, record: Record, data_set: DataSet, arrays: Arrays) -> None:
    """Make a stand-in's files."""
    _make(folder)
    stamps = {}
    for file in data_set.files:
        with tempfile.TemporaryDirectory() as desk:
            write_file(data_set, file, Path(desk) / file, lambda: arrays)
            stamps[file] = replace_file(folder / file, (Path(desk) / file).read_bytes())
    replace_file(folder / _RECORD, record.model_copy(update={"arrays": stamps}).model_dump_json().encode())


def _write(folder: Path, record: Record, arrays: Arrays) -> None:
    _make(folder)
    stamps = {name: replace_file(folder / name, np.ascontiguousarray(array).data) for name, array in arrays.items()}
    replace_file(folder / _RECORD, record.model_copy(update={"arrays": stamps}).model_dump_json().encode())


def replace_file(path: Path, content: bytes | memoryview) -> FileStamp:
    """Write a file so that others see the old one or the new one whole, after a power cut too."""
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with partial.open("wb") as file:
            file.write(content)
            file.flush()
            os.fchmod(file.fileno(), 0o644)
            os.fsync(file.fileno())
        partial.replace(path)
    except OSError:
        with suppress(OSError):
            partial.unlink()
        raise
    return FileStamp.of(path.stat())


def _map(path: Path, spec: ArraySpec, stamp: FileStamp) -> np.ndarray[tuple[int, ...], np.dtype[np.generic]]:
    with path.open("rb") as file:
        if FileStamp.of(os.fstat(file.fileno())) != stamp or stamp.size != spec.nbytes:
            raise _Stale
        return np.memmap(file, dtype=spec.dtype, mode="c", shape=spec.shape).view(np.ndarray)


def _origin(cache: Cache, data_set: DataSet) -> str:
    return "real" if cache.present(data_set) else f"stand-in {EDITION}"


def _folder(cache: Cache, data_set: DataSet) -> Path:
    return cache.root / ".prepared" / data_set.name
