"""Fetches data sets from a URL or a folder into the cache, and verifies them first.

Each file is downloaded beside the cache and checked against its size and digests. The files move into place only when
every file of the data set is valid. If the cache lacks the data set, one folder is renamed, so that sandboxes see all
of it or nothing. After a failure, the next attempt fetches only the files that are not complete.
"""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import httpx

from runners.datasets.cache import Cache, wrong_digest
from runners.datasets.catalog import DataFile, DataSet, DataSetError
from runners.datasets.download import DiskFull, DownloadProgress, FetchFailed, WrongContent, download

_NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_UNREADABLE = 0o200


class FetchInProgress(DataSetError):
    """Another process is fetching the same data set."""

    def __init__(self, data_set: DataSet, process: str) -> None:
        super().__init__(
            f"{data_set.name} is already being fetched by process {process or 'unknown'}. "
            "Wait for it to finish, then try again."
        )


class CacheNotWritable(DataSetError):
    """The cache's folder cannot be created or written to."""

    def __init__(self, path: Path, error: OSError) -> None:
        super().__init__(
            f"{path} cannot be written ({error.strerror}). Make it writable for this user, or set LOCKSTEP_DATA_DIR."
        )


class AllSourcesFailed(FetchFailed):
    """Every source failed. Lists what was wrong with each."""

    def __init__(self, file: DataFile, reasons: Sequence[FetchFailed]) -> None:
        told = "\n".join(f"  - {reason.fact}" for reason in reasons)
        advice = dict.fromkeys(reason.advice for reason in reasons) or ["Use --source to name a mirror or a directory."]
        super().__init__(
            f"{file.name} could not be fetched:\n{told or '  - the catalog lists no URL'}", " ".join(advice)
        )


class Fetcher:
    """Fetches data sets into one cache. ``source``, a mirror's URL or a folder, replaces the catalog's URLs."""

    def __init__(self, cache: Cache, source: str | None = None, progress: DownloadProgress | None = None) -> None:
        self._cache = cache
        self._source = source
        self._progress = progress or DownloadProgress()

    def fetch(self, data_set: DataSet) -> int:
        """Fetch ``data_set`` into the cache; returns how many files were new.

        Raises:
            FetchInProgress, CacheNotWritable, DiskFull: nothing can be fetched now.
            FetchFailed: a file could not be fetched, or was not the right one. The cache is unchanged.
        """
        incoming = self._cache.root / ".incoming" / data_set.name
        try:
            incoming.mkdir(parents=True, exist_ok=True)
            with _alone(incoming.with_suffix(".lock"), data_set):
                wanted = [file for file in data_set.files.values() if not self._in_place(data_set, file)]
                self._check_room(wanted, incoming)
                with httpx.Client(follow_redirects=True, timeout=httpx.Timeout(30.0, connect=10.0)) as http:
                    for file in wanted:
                        self._obtain(http, data_set, file, incoming)
                self._put_in_place(data_set, incoming)
        except OSError as e:
            raise self._room_or_rights(e) from e
        return len(wanted)

    def _in_place(self, data_set: DataSet, file: DataFile) -> bool:
        path = self._cache.folder(data_set) / file.name
        if not _right(path, file):
            return False
        self._progress.begin(file.name, file.size)
        self._progress.end("already there")
        return True

    def _check_room(self, wanted: Sequence[DataFile], incoming: Path) -> None:
        missing = sum(file.size for file in wanted if not (incoming / file.name).exists())
        if shutil.disk_usage(incoming).free < missing:
            raise DiskFull(self._cache.root, missing)

    def _obtain(self, http: httpx.Client, data_set: DataSet, file: DataFile, incoming: Path) -> None:
        if _right(incoming / file.name, file):
            return
        reasons: list[FetchFailed] = []
        for place in self._places(data_set, file):
            part = incoming / f"{file.name}.part"
            self._progress.begin(file.name, file.size)
            try:
                self._bring(http, place, file, part)
            except FetchFailed as e:
                part.unlink(missing_ok=True)
                reasons.append(e)
                self._progress.end("failed")
                continue
            part.replace(incoming / file.name)
            self._progress.end("verified")
            return
        raise reasons[0] if len(reasons) == 1 else AllSourcesFailed(file, reasons)

    def _bring(self, http: httpx.Client, place: str, file: DataFile, part: Path) -> None:
        if _is_address(place):
            download(http, place, file, part, self._progress)
        else:
            _copy(Path(place), file, part)
        if wrong := wrong_digest(part, file):
            raise WrongContent(file, place, wrong)
        part.chmod(0o644)

    def _places(self, data_set: DataSet, file: DataFile) -> Sequence[str]:
        if self._source is None:
            return file.urls
        base = self._source.rstrip("/")
        places = [f"{base}/{data_set.name}/{file.name}", f"{base}/{file.name}"]
        if _is_address(base):
            return places
        return [place for place in places if Path(place).is_file()] or places[:1]

    def _put_in_place(self, data_set: DataSet, incoming: Path) -> None:
        folder = self._cache.folder(data_set)
        for leftover in set(incoming.iterdir()) - {incoming / name for name in data_set.files}:
            leftover.unlink()
        if folder.exists():
            for path in incoming.iterdir():
                path.replace(folder / path.name)
            incoming.rmdir()
        elif any(incoming.iterdir()):
            incoming.chmod(0o755)
            incoming.rename(folder)
        _flush_folder(self._cache.root)

    def _room_or_rights(self, error: OSError) -> DataSetError:
        if error.errno in _NO_ROOM:
            return DiskFull(self._cache.root, None)
        return CacheNotWritable(self._cache.root, error)


def _right(path: Path, file: DataFile) -> bool:
    return path.is_file() and path.stat().st_size == file.size and wrong_digest(path, file) is None


def _copy(source: Path, file: DataFile, part: Path) -> None:
    try:
        size = source.stat().st_size
        if size != file.size:
            raise WrongContent(file, str(source), f"it has {size:,} bytes instead of {file.size:,}")
        content = source.open("rb")
    except OSError as e:
        raise FetchFailed(
            f"{source} cannot be read ({e.strerror})", "Name a directory that contains it with --source."
        ) from e
    with content, part.open("wb") as target:
        shutil.copyfileobj(content, target)
        target.flush()
        os.fsync(target.fileno())


def _is_address(place: str) -> bool:
    return place.startswith(("http://", "https://"))


def _flush_folder(folder: Path) -> None:
    """Make renames in ``folder`` survive a power failure."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextmanager
def _alone(path: Path, data_set: DataSet) -> Iterator[None]:
    """Hold the lock of one data set; the kernel releases it if this process dies.

    Sessions see the folder, and whoever can read a file can lock it, so nobody may read the lock file. The process ID
    is in a file beside it.
    """
    number = path.with_suffix(".pid")
    lock = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, _UNREADABLE)
    try:
        os.fchmod(lock, _UNREADABLE)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise FetchInProgress(data_set, _first_words(number)) from None
        number.write_text(str(os.getpid()))
        yield
    finally:
        os.close(lock)


def _first_words(path: Path) -> str:
    try:
        return path.read_text()[:20].strip()
    except OSError:
        return ""
