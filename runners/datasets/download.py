"""One file over HTTP, bounded by its known size."""

from __future__ import annotations

import os
import time
from pathlib import Path

import httpx

from runners.datasets.catalog import DataFile, DataSetError
from runners.datasets.progress import DownloadProgress

_TRIES = 4
_PAUSE_S = 0.25
"""Before the second try; doubled before each further one."""


class FetchFailed(DataSetError):
    """A file could not be had from one place: the ``fact``, and the ``advice`` that follows from it."""

    def __init__(self, fact: str, advice: str) -> None:
        super().__init__(f"{fact}\n{advice}" if "\n" in fact else f"{fact}. {advice}")
        self.fact = fact
        self.advice = advice


_TRY_A_MIRROR = "Try a mirror with --source."
_BRING_A_FOLDER = "Check this machine's network or proxy, or bring the files in a folder and use --source FOLDER."


class WrongContent(FetchFailed):
    """What came is not the file the catalog describes."""

    def __init__(self, file: DataFile, place: str, wrong: str) -> None:
        super().__init__(
            f"{place} is not the {file.name} that was expected: {wrong}",
            f"Nothing of it was kept. {_TRY_A_MIRROR}",
        )


class DiskFull(DataSetError):
    """The disk of the cache is full."""

    def __init__(self, root: Path, needed: int | None) -> None:
        amount = f"{needed / 1_000_000:.1f} MB are" if needed else "more room is"
        super().__init__(f"No room in {root}: {amount} needed. Free some, or set LOCKSTEP_DATA_DIR to another disk.")


class _Retry(Exception):
    """This try failed in a way that may pass."""

    def __init__(self, final: FetchFailed) -> None:
        self.final = final


def download(http: httpx.Client, url: str, file: DataFile, part: Path, progress: DownloadProgress) -> None:
    """Write ``url`` to ``part``: as many bytes as the file has, to be verified by the caller.

    Raises:
        FetchFailed: after a few tries.
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
        raise _Retry(FetchFailed(f"{url}: broke off after {have:,} of {file.size:,} bytes", "Fetch again.")) from broken


def _check(response: httpx.Response, url: str, file: DataFile) -> None:
    """Decide by the head of a response whether its body is worth reading."""
    status, offered = response.status_code, response.headers.get("content-length", "")
    if status != 200:
        failed = FetchFailed(f"{url}: the server answered {status}", _TRY_A_MIRROR)
        raise _Retry(failed) if status in (408, 429) or status >= 500 else failed
    if offered.isdecimal() and int(offered) != file.size:
        raise WrongContent(file, url, f"the server offers {int(offered):,} bytes instead of {file.size:,}")
