"""Errors named for facts. Each carries its HTTP status, a stable code and a message in English, translated when shown.

::

    Problem
    ├── NotFound          404   CourseUnknown, LessonUnknown, … are made in the features
    ├── NotAllowed        403
    ├── TooLarge          413
    ├── Unreadable        422
    ├── TooMany           429
    └── Unavailable       503
        └── StorageDown         StorageBusy, StorageFull
"""

from __future__ import annotations

from http import HTTPStatus
from typing import ClassVar

from app.i18n import N_, gettext


class Problem(Exception):
    """Something a person is told about. ``values`` fill the message's ``{names}``."""

    status: ClassVar[int] = 500
    code: str = "internal"
    message: ClassVar[str] = N_("Something failed on our side. It has been logged.")
    retry_after_s: ClassVar[int | None] = None
    """Seconds after which the same request may succeed; a client gets it as ``Retry-After``."""

    def __init__(self, **values: object) -> None:
        self.values = values
        super().__init__(self.message.format(**values))

    def sentence(self) -> str:
        """The message in the language in use."""
        return gettext(self.message).format(**self.values)

    @property
    def http_status(self) -> int:
        """The status to answer with."""
        return self.status


class NotFound(Problem):
    status = 404
    code = "not_found"
    message = N_("There is nothing at this address.")


class NotAllowed(Problem):
    status = 403
    code = "not_allowed"
    message = N_("This request was not allowed.")


class CrossSite(NotAllowed):
    code = "cross_site"
    message = N_("This request came from another site, so it was not carried out.")


class TooLarge(Problem):
    status = 413
    code = "too_large"
    message = N_("The request is larger than {most_bytes:,} bytes.")


class Unreadable(Problem):
    status = 422
    code = "unreadable"
    message = N_("The request could not be understood: {reason}")


class TooMany(Problem):
    status = 429
    code = "too_many"
    message = N_("Too many requests. Wait a little.")


class Unavailable(Problem):
    status = 503
    code = "unavailable"
    message = N_("A part of Lockstep is not available right now.")


class StorageDown(Unavailable):
    """The database cannot be reached or written."""

    code = "storage_down"
    message = N_("The database cannot be read or written right now. Try again in a moment.")
    retry_after_s = 10


class StorageBusy(StorageDown):
    """Every connection to the database is in use, or others are writing, for as long as a request waits."""

    code = "storage_busy"
    message = N_("The server has too many requests to answer right now. Try again in a few seconds.")
    retry_after_s = 5


class StorageFull(StorageDown):
    """The disk of the database is full: it can be read, but nothing can be stored."""

    code = "storage_full"
    message = N_(
        "The server's disk is full, so nothing was run or saved. Everything that you saved before is still there. "
        "Try again in a few minutes. If this continues, tell the people who run this site."
    )
    retry_after_s = 60


class OfStatus(Problem):
    """An HTTP error of the framework, such as a method that is not allowed."""

    message = N_("The server answered with status {status}.")

    def __init__(self, status: int) -> None:
        super().__init__(status=status)
        self.code = HTTPStatus(status).name.lower()
        self._status = status

    @property
    def http_status(self) -> int:
        return self._status
