"""Errors named for facts. Each has an HTTP status, a stable code and an English message, translated when it is shown.

::

    LockstepError
    ├── NotFound            404   CourseNotFound, LessonNotFound, … are defined in the features
    ├── PermissionDenied    403
    ├── RequestTooLarge     413
    ├── UnsupportedMediaType  415
    ├── InvalidInput        422
    ├── TooManyRequests     429
    └── ServiceUnavailable  503
        └── DatabaseUnavailable   DatabaseBusy, DatabaseFull
"""

from __future__ import annotations

import re
from http import HTTPStatus
from typing import ClassVar

from app.i18n import N_, gettext


class LockstepError(Exception):
    """An error with a message for people. ``values`` fill in the message's ``{names}``."""

    status: int = 500
    code: str = "lockstep_error"
    """A stable code for programs, from the class name: ``lesson_not_found`` for ``LessonNotFound``."""
    message: ClassVar[str] = N_("Something went wrong on our side. The error was logged.")
    retry_after_s: int | None = None
    """Seconds after which the request may succeed, sent as ``Retry-After``."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls.code = re.sub(r"(?<!^)(?=[A-Z])", "_", cls.__name__).lower()

    def __init__(self, **values: object) -> None:
        self.values = values
        super().__init__(self.message.format(**values))

    @property
    def headers(self) -> dict[str, str]:
        """Headers of every response that shows this error."""
        return {} if self.retry_after_s is None else {"retry-after": str(self.retry_after_s)}

    def localized_message(self) -> str:
        """The message in the current language."""
        return gettext(self.message).format(**self.values)


class NotFound(LockstepError):
    status = 404
    message = N_("There is nothing at this address.")


class PermissionDenied(LockstepError):
    status = 403
    message = N_("This request is not allowed.")


class CrossSiteRequest(PermissionDenied):
    message = N_("This request came from another site, so it was rejected.")


class RequestTooLarge(LockstepError):
    status = 413
    message = N_("The request is larger than the limit of {most_bytes:,} bytes.")


class UnsupportedMediaType(LockstepError):
    status = 415
    message = N_("This address expects data of the type {expected}.")


class InvalidInput(LockstepError):
    status = 422
    message = N_("The request could not be understood: {reason}")


class TooManyRequests(LockstepError):
    """Errors that know how long to wait set ``retry_after_s``."""

    status = 429
    message = N_("Too many requests. Wait a moment, then try again.")
    retry_after_s: int | None = 60


class ServiceUnavailable(LockstepError):
    status = 503
    message = N_("Part of Lockstep is unavailable right now. Try again in a moment.")


class DatabaseUnavailable(ServiceUnavailable):
    """The database cannot be reached or written."""

    message = N_("The database is unavailable right now. Try again in a moment.")
    retry_after_s = 10


class DatabaseBusy(DatabaseUnavailable):
    """All connections are in use, or other transactions are writing, for longer than a request waits."""

    message = N_("The server is handling too many requests right now. Try again in a few seconds.")
    retry_after_s = 5


class DatabaseFull(DatabaseUnavailable):
    """The disk of the database is full: it can be read, but not written."""

    message = N_(
        "The server's disk is full, so nothing ran and nothing was saved. Everything that you saved "
        "before is still there. Try again in a few minutes. If this continues, tell the operator of "
        "this site."
    )
    retry_after_s = 60


class HttpStatusError(LockstepError):
    """An HTTP error of the framework, such as a method that is not allowed."""

    message = N_("The server responded with status {status}.")

    def __init__(self, status: int) -> None:
        super().__init__(status=status)
        self.code = HTTPStatus(status).name.lower()
        self.status = status
