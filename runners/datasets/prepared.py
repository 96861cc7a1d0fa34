"""Prepared copies: unpacked or generated once by the runner, used by every sandbox.

Unpacking Fashion-MNIST takes half a second and 55 MB in each session, and generating its stand-in takes as long. A
prepared copy has one raw file per array, which many sessions map at once: they share its pages, and get private copies
only of pages that a learner writes to. If Keras itself reads the stand-in's files, the files are prepared instead.

A record lists the stamps of the prepared files and of the cache files they came from. A copy that does not match its
record, because a file was replaced, damaged or copied, is not used: the slow path is always correct. Files are replaced
by renaming and the record is written last, so a concurrent reader sees a mismatch, never a mixture.
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
"""A copy is made only if this many times its size is free."""


class Record(BaseModel):
    """The content of a prepared folder: arrays by name, or files.

    ``origin`` is ``real`` or ``stand-in N``, N the edition of the generators.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    origin: str
    sources: dict[str, FileStamp]
    arrays: dict[str, FileStamp]


@dataclass(frozen=True, slots=True)
class Readiness:
    """What sandboxes get for one data set, and why."""

    name: str
    state: CacheState
    detail: str
    prepared: bool


def prepare(cache_dir: Path, catalog: Catalog | None = None) -> list[Readiness]:
    """Make missing or stale prepared copies, in the catalog's order. Takes up to four seconds for each.

    Never raises for a damaged data set or a cache that is not writable: sessions then take the slow path or get the
    error, and the result says so.
    """
    cache, catalog = Cache(cache_dir), catalog or read_catalog()
    return [_prepare_one(cache, data_set) for data_set in catalog.values()]


def prepared_file(cache: Cache, data_set: DataSet, file: str) -> Path | None:
    """The stand-in's file that ``prepare`` made; None if the data set is real or is not prepared."""
    folder, path = _folder(cache, data_set), _folder(cache, data_set) / file
    try:
        record = Record.model_validate_json((folder / _RECORD).read_bytes())
        if cache.present(data_set) or record.origin != _origin(cache, data_set):
            return None
        return path if FileStamp.of(path.stat()) == record.arrays[file] else None
    except (OSError, ValidationError, KeyError):
        return None


def map_prepared(cache: Cache, data_set: DataSet) -> Arrays | None:
    """Map the prepared arrays, private and writable; None unless they match the current state of the cache."""
    folder = _folder(cache, data_set)
    try:
        record = Record.model_validate_json((folder / _RECORD).read_bytes())
        if record.origin != _origin(cache, data_set) or record.sources != cache.stamps(data_set):
            return None
        return {name: _map(folder / name, spec, record.arrays[name]) for name, spec in data_set.arrays.items()}
    except (OSError, ValidationError, KeyError, _Stale):
        return None


class _Stale(Exception):
    """A file does not match the record."""


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
            return Readiness(data_set.name, state, f"not enough space in {cache.root}", prepared=False)
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
    """Write a file atomically: readers see the old or the new one complete, even after a power failure."""
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
