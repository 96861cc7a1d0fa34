"""The cache: a folder of verified files that sandboxes read and never write.

```
<cache>/<data set>/<file>            the real files, all of them or none
<cache>/.incoming/<data set>/<file>  downloads on their way (see fetch.py)
<cache>/.prepared/<data set>/        arrays ready to be mapped into memory (see prepared.py)
```

A data set is *absent* (no folder: its stand-in is served), *whole*, or *damaged*. A damaged one is refused by name and
never replaced by the stand-in: a learner who expects real data must not train on part of it or on made-up data.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from runners.datasets.catalog import Arrays, DataFile, DataSet, DataSetError, UndecodableFile
from runners.datasets.decode import decode

_BLOCK = 1 << 20


class DamagedDataSet(DataSetError):
    """A file in the cache is not the one the catalog describes."""

    def __init__(self, data_set: DataSet, file: str, wrong: str) -> None:
        super().__init__(
            f"{data_set.title}: the file {data_set.name}/{file} in this node's cache was rejected: {wrong}. "
            f"It was not used. The operator can replace it with: lockstep datasets fetch {data_set.name}"
        )
        self.file = file
        self.wrong = wrong


class CacheState(StrEnum):
    absent = "absent"
    whole = "whole"
    damaged = "damaged"


@dataclass(frozen=True, slots=True)
class FileStamp:
    """A file's size in bytes and modification time in nanoseconds: they tell whether it has changed."""

    size: int
    changed_ns: int

    @classmethod
    def of(cls, status: os.stat_result) -> FileStamp:
        return cls(status.st_size, status.st_mtime_ns)


_verified: dict[Path, tuple[FileStamp, DataFile]] = {}
"""Files whose digests this process has verified, and against what: each state of a file is read once."""


@dataclass(frozen=True, slots=True)
class Cache:
    """The cache in the folder ``root``, which does not have to exist."""

    root: Path

    def folder(self, data_set: DataSet) -> Path:
        """Where the files of ``data_set`` belong."""
        return self.root / data_set.name

    def present(self, data_set: DataSet) -> bool:
        """Whether any real file is here. If so, loading gives the real data or an error, never the stand-in."""
        return self.folder(data_set).exists()

    def stamps(self, data_set: DataSet) -> dict[str, FileStamp]:
        found = {}
        for name in data_set.files:
            path = self.folder(data_set) / name
            if path.is_file():
                found[name] = FileStamp.of(path.stat())
        return found

    def glance(self, data_set: DataSet) -> tuple[CacheState, str]:
        """Check names and sizes only, which is quick. Returns the state, and what is wrong, if anything."""
        if not self.present(data_set):
            return CacheState.absent, ""
        try:
            for file in data_set.files.values():
                self._check_size(data_set, file)
        except DamagedDataSet as e:
            return CacheState.damaged, f"{e.file}: {e.wrong}"
        return CacheState.whole, ""

    def verify(self, data_set: DataSet) -> None:
        """Check every byte of every file, unless this process has checked that state of the file before.

        Raises:
            DamagedDataSet: a file is missing, unreadable, of another size, or of another digest.
        """
        for file in data_set.files.values():
            self._check_size(data_set, file)
            path = self.folder(data_set) / file.name
            stamp = FileStamp.of(path.stat())
            if _verified.get(path) == (stamp, file):
                continue
            wrong = wrong_digest(path, file)
            if wrong:
                raise DamagedDataSet(data_set, file.name, wrong)
            _verified[path] = (stamp, file)

    def read(self, data_set: DataSet) -> Arrays:
        """Verify and decode the real data set.

        Raises:
            DamagedDataSet: as ``verify``, or a file does not decode.
        """
        self.verify(data_set)
        try:
            return decode(data_set, self.folder(data_set))
        except UndecodableFile as e:
            raise DamagedDataSet(data_set, e.file, str(e)) from e

    def _check_size(self, data_set: DataSet, file: DataFile) -> None:
        path = self.folder(data_set) / file.name
        if not path.is_file():
            raise DamagedDataSet(data_set, file.name, "it is missing")
        if not os.access(path, os.R_OK):
            raise DamagedDataSet(data_set, file.name, "permission denied")
        size = path.stat().st_size
        if size != file.size:
            raise DamagedDataSet(data_set, file.name, f"it has {size:,} bytes instead of {file.size:,}")


def wrong_digest(path: Path, file: DataFile) -> str | None:
    """Compare the file's content with every recorded digest. Returns what is wrong, or None."""
    sums = {algorithm: hashlib.new(algorithm, usedforsecurity=False) for algorithm in file.digests}
    try:
        for block in _blocks(path):
            for digest in sums.values():
                digest.update(block)
    except OSError as e:
        return f"it cannot be read ({e.strerror})"
    for algorithm, digest in sums.items():
        found, wanted = digest.hexdigest(), file.digests[algorithm]
        if found != wanted:
            return f"its {algorithm.upper()} is {found[:12]}… instead of {wanted[:12]}…"
    return None


def _blocks(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            yield block
