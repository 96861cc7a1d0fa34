"""Downloads one file over HTTP, bounded by its known size, and reports progress to a terminal or a log."""

from __future__ import annotations

import io
import os
import time
from pathlib import Path
from typing import TextIO

import httpx

from runners.datasets.catalog import DataFile, DataSetError

_TRIES = 4
_PAUSE_S = 0.25
"""Seconds before the second attempt; doubled before each further one."""
_REDRAW_S = 0.1
_MB = 1_000_000


class FetchFailed(DataSetError):
    """A file could not be fetched from one source: what happened (``fact``) and what to do (``advice``)."""

    def __init__(self, fact: str, advice: str) -> None:
        super().__init__(f"{fact}\n{advice}" if "\n" in fact else f"{fact}. {advice}")
        self.fact = fact
        self.advice = advice


_TRY_A_MIRROR = "Try a mirror with --source."
_BRING_A_FOLDER = (
    "Check this machine's network or proxy, or copy the files into a directory and use --source DIRECTORY."
)


class WrongContent(FetchFailed):
    """The downloaded content is not the file that the catalog describes."""

    def __init__(self, file: DataFile, place: str, wrong: str) -> None:
        super().__init__(
            f"{place} is not the {file.name} that was expected: {wrong}",
            f"It was not kept. {_TRY_A_MIRROR}",
        )


class DiskFull(DataSetError):
    """The disk of the cache is full."""

    def __init__(self, root: Path, needed: int | None) -> None:
        amount = f"{needed / 1_000_000:.1f} MB are" if needed else "more room is"
        super().__init__(
            f"Not enough space in {root}: {amount} needed. Free some space, or set LOCKSTEP_DATA_DIR to another disk."
        )


class DownloadProgress:
    """Writes progress to ``stream``, or nowhere; redraws in place if that is a terminal."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream or io.StringIO()
        self._redraws = self._stream.isatty()
        self._file, self._size, self._drawn_s = "", 0, 0.0

    def begin(self, file: str, size: int) -> None:
        """Start a file of ``size`` bytes; on a terminal, draw its line at once."""
        self._file, self._size, self._drawn_s = file, size, 0.0
        self.at(0)

    def at(self, have: int) -> None:
        """Note that ``have`` bytes have arrived; redraws the line at most ten times a second."""
        now = time.monotonic()
        if self._redraws and now - self._drawn_s >= _REDRAW_S:
            self._drawn_s = now
            share = 100 * have // max(self._size, 1)
            self._stream.write(f"\r\x1b[K{self._file}  {share:3d} %  {have / _MB:.1f} of {self._size / _MB:.1f} MB")
            self._stream.flush()

    def end(self, word: str) -> None:
        """Write the final line; ``word`` says how it ended."""
        start = "\r\x1b[K" if self._redraws else ""
        self._stream.write(f"{start}{self._file}  {self._size / _MB:.1f} MB  {word}\n")
        self._stream.flush()


class _Retry(Exception):
    """This attempt failed, but another one may succeed."""

    def __init__(self, final: FetchFailed) -> None:
        self.final = final


def download(http: httpx.Client, url: str, file: DataFile, part: Path, progress: DownloadProgress) -> None:
    """Download ``url`` to ``part``, exactly as many bytes as the file has; the caller verifies them.

    Raises:
        FetchFailed: after a few attempts.
    """
    for number in range(_TRIES):
        try:
            _try(http, url, file, part, progress)
            return
        except _Retry as e:
            if number == _TRIES - 1:
                raise e.final from e.__cause__
            time.sleep(_PAUSE_S * 2**number)


def _try(http: httpx.Client, url: str, file: DataFile, part: Path, progress: DownloadProgress) -> None:
    have = 0
    broken: httpx.TransportError | None = None
    try:
        with http.stream("GET", url, headers={"accept-encoding": "identity"}) as response, part.open("wb") as target:
            _check(response, url, file)
            for block in response.iter_raw():
                have += len(block)
                if have > file.size:
                    raise WrongContent(file, url, f"it is longer than {file.size:,} bytes")
                target.write(block)
                progress.at(have)
            target.flush()
            os.fsync(target.fileno())
    except (httpx.ConnectError, httpx.ConnectTimeout, httpx.UnsupportedProtocol, httpx.ProxyError) as e:
        raise FetchFailed(f"{url}: no connection ({e})", _BRING_A_FOLDER) from e
    except httpx.TooManyRedirects as e:
        raise FetchFailed(f"{url}: too many redirects", _TRY_A_MIRROR) from e
    except httpx.TransportError as e:
        broken = e
    if have < file.size:
        fact = f"{url}: the download stopped after {have:,} of {file.size:,} bytes"
        raise _Retry(FetchFailed(fact, "Fetch again.")) from broken


def _check(response: httpx.Response, url: str, file: DataFile) -> None:
    """Check a response's status and headers before its body is read."""
    status, offered = response.status_code, response.headers.get("content-length", "")
    if status != 200:
        failed = FetchFailed(f"{url}: the server responded with status {status}", _TRY_A_MIRROR)
        raise _Retry(failed) if status in (408, 429) or status >= 500 else failed
    if offered.isdecimal() and int(offered) != file.size:
        raise WrongContent(file, url, f"the server offers {int(offered):,} bytes instead of {file.size:,}")
