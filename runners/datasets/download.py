"""One file over HTTP: resumed where it broke off, bounded by its known size, verified at its end."""

from __future__ import annotations

import os
import time
from pathlib import Path

import httpx

from runners.datasets.cache import wrong_digest
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


class NoConnection(FetchFailed):
    """The server cannot be reached at all."""

    def __init__(self, url: str, error: httpx.TransportError) -> None:
        super().__init__(
            f"{url}: no connection ({error})",
            "Check this machine's network or proxy, or bring the files in a folder and use --source FOLDER.",
        )


class HttpErrorStatus(FetchFailed):
    """The server answered with an error status."""

    def __init__(self, url: str, status: int) -> None:
        super().__init__(f"{url}: the server answered {status}", _TRY_A_MIRROR)
        self.status = status


class ConnectionBroken(FetchFailed):
    """The connection ended early, several times."""

    def __init__(self, url: str, have: int, size: int) -> None:
        super().__init__(
            f"{url}: broke off after {have:,} of {size:,} bytes",
            "What came is kept: fetch again to go on from there.",
        )


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


class Download:
    """``url`` into the file ``part``, which may hold the beginning already."""

    def __init__(self, http: httpx.Client, url: str, file: DataFile, part: Path, progress: DownloadProgress) -> None:
        self._http = http
        self._url = url
        self._file = file
        self._part = part
        self._progress = progress

    def run(self) -> None:
        """Leave the whole, verified file at ``part``.

        Raises:
            FetchFailed: after a few tries; of a wrong file nothing is kept, of a broken one what came.
        """
        resumed = self._have() > 0
        self._complete()
        wrong = wrong_digest(self._part, self._file)
        if wrong and resumed:  # the beginning may be of another file: once more, from nothing
            self._part.unlink()
            self._complete()
            wrong = wrong_digest(self._part, self._file)
        if wrong:
            self._part.unlink()
            raise WrongContent(self._file, self._url, wrong)

    def _complete(self) -> None:
        for number in range(_TRIES):
            try:
                if self._have() != self._file.size:
                    self._try()
                return
            except _Retry as e:
                if number == _TRIES - 1:
                    raise e.final from e.__cause__
                time.sleep(_PAUSE_S * 2**number)

    def _try(self) -> None:
        have = self._have()
        headers = {"accept-encoding": "identity"} | ({"range": f"bytes={have}-"} if have else {})
        try:
            with self._http.stream("GET", self._url, headers=headers) as answer:
                self._receive(answer, self._begin(answer, have))
        except (httpx.ConnectError, httpx.ConnectTimeout, httpx.UnsupportedProtocol, httpx.ProxyError) as e:
            raise NoConnection(self._url, e) from e
        except httpx.TransportError as e:
            raise _Retry(ConnectionBroken(self._url, self._have(), self._file.size)) from e
        except httpx.TooManyRedirects as e:
            raise FetchFailed(f"{self._url}: too many redirects", _TRY_A_MIRROR) from e
        if self._have() < self._file.size:
            raise _Retry(ConnectionBroken(self._url, self._have(), self._file.size))

    def _begin(self, answer: httpx.Response, have: int) -> int:
        """Decide by the answer's head where its first byte belongs."""
        if answer.status_code == 206 and answer.headers.get("content-range", "").startswith(f"bytes {have}-"):
            return have
        if answer.status_code in (206, 416):  # the server and the kept part do not fit
            self._part.unlink(missing_ok=True)
            raise _Retry(HttpErrorStatus(self._url, answer.status_code))
        if answer.status_code in (408, 429) or answer.status_code >= 500:
            raise _Retry(HttpErrorStatus(self._url, answer.status_code))
        if answer.status_code != 200:
            raise HttpErrorStatus(self._url, answer.status_code)
        offered = answer.headers.get("content-length", "")
        if offered.isdecimal() and int(offered) != self._file.size:
            wrong = f"the server offers {int(offered):,} bytes instead of {self._file.size:,}"
            raise WrongContent(self._file, self._url, wrong)
        return 0

    def _receive(self, answer: httpx.Response, start: int) -> None:
        """Append the body as sent, never more than the size allows."""
        have = start
        with self._part.open("r+b" if start else "wb") as part:
            part.seek(start)
            part.truncate()
            for block in answer.iter_raw():  # as it comes: what came before a break is kept
                have += len(block)
                if have > self._file.size:
                    part.close()
                    self._part.unlink()
                    raise WrongContent(self._file, self._url, f"it is longer than {self._file.size:,} bytes")
                part.write(block)
                self._progress.at(have)
            part.flush()
            os.fsync(part.fileno())

    def _have(self) -> int:
        """Bytes of the file that are there; a part that is too long counts as none."""
        size = self._part.stat().st_size if self._part.exists() else 0
        return size if size <= self._file.size else 0
